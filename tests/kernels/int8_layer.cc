#include "tests/kernels/int8_layer.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/substitute.h"
#include "base/status_macros.h"

namespace requant {
namespace {

using tensorflow::DataType;
using tensorflow::DT_FLOAT;
using tensorflow::DT_QINT32;
using tensorflow::DT_QINT8;
using tensorflow::DT_QUINT8;

DataType OutputType(const Int8MatMul& matmul) {
  if (matmul.output_type != tensorflow::DT_INVALID) return matmul.output_type;
  if (absl::EndsWith(matmul.op, "Dequantize")) return DT_FLOAT;
  return absl::EndsWith(matmul.op, "Requantize") ? DT_QUINT8 : DT_QINT32;
}

bool TakesOutputRange(const Int8MatMul& matmul) {
  if (matmul.op != kNewMatMul) return absl::EndsWith(matmul.op, "quantize");
  const DataType type = OutputType(matmul);
  return type == DT_QUINT8 || type == DT_QINT8;
}

Tensor WeightTensor(const Int8Layer& layer, const Int8MatMul& matmul) {
  if (!matmul.transposed_weights) {
    return CodeTensor(DT_QINT8,
                      matmul.transpose_b
                          ? tensorflow::TensorShape{layer.columns, layer.depth}
                          : tensorflow::TensorShape{layer.depth, layer.columns},
                      layer.weights);
  }
  std::vector<int> transposed;
  for (int j = 0; j < layer.columns; ++j) {
    for (int k = 0; k < layer.depth; ++k) {
      transposed.push_back(layer.weights[k * layer.columns + j]);
    }
  }
  return CodeTensor(DT_QINT8, {layer.columns, layer.depth}, transposed);
}

Tensor WeightRange(const Int8Layer& layer, const Int8MatMul& matmul,
                   float sign) {
  if (!matmul.range_per_column) return Tensor(sign * layer.weight_max);
  std::vector<float> range;
  for (int j = 0; j < layer.columns; ++j) {
    range.push_back(sign * layer.ColumnMax(j));
  }
  return TensorOf<float>({layer.columns}, range);
}

Tensor BiasTensor(const Int8Layer& layer, BiasKind kind) {
  return kind == BiasKind::kFloat ? TensorOf<float>({layer.columns}, layer.bias)
                                  : CodeTensor(DT_QINT32, {layer.columns},
                                               QuantizedBias(layer, kind));
}

std::string Attributes(const Int8MatMul& matmul) {
  const std::string type = TypeText(matmul.input_type);
  const std::string bias = matmul.bias == BiasKind::kFloat ? "float" : "qint32";
  const DataType output = OutputType(matmul);
  std::string text =
      absl::Substitute(" T1=$0 T2=qint8 input_quant_mode='$1' transpose_b=$2",
                       type, matmul.mode, matmul.transpose_b);
  if (matmul.op != kWithRelu) absl::StrAppend(&text, " Tbias=", bias);
  if (matmul.op != kNewMatMul) {
    return absl::StrCat(text, " Toutput=", TypeText(output));
  }
  return text + absl::Substitute(
                    " Tout=$0 output_quant_mode='$1' fused_ops=['BiasAdd'$2] "
                    "Tdevice_inputs=[$3,qint8,$4] "
                    "Thost_inputs=[float,float,float,float$5] "
                    "Tdevice_outputs=[$0] Thost_outputs=[$6]",
                    TypeText(output), matmul.output_mode, matmul.fused_ops,
                    type, bias, TakesOutputRange(matmul) ? ",float,float" : "",
                    output == DT_FLOAT ? "" : "float,float");
}

}  // namespace

float Int8Layer::ColumnMax(int column) const {
  return column_factors.empty() ? weight_max
                                : weight_max * column_factors[column];
}

Int8Layer RandomLayer(float input_min, float input_max, int largest_weight) {
  Int8Layer layer;
  layer.input_min = input_min;
  layer.input_max = input_max;
  layer.weight_max = 0.75f;
  std::mt19937 random(1);
  for (int i = 0; i < layer.rows * layer.depth; ++i) {
    layer.codes.push_back(random() % 256);
  }
  for (int i = 0; i < layer.depth * layer.columns; ++i) {
    layer.weights.push_back(
        static_cast<int>(random() % (2 * largest_weight + 1)) - largest_weight);
  }
  for (int i = 0; i < layer.columns; ++i) {
    layer.bias.push_back(static_cast<int>(random() % 2001) * 1e-3f - 1);
  }
  return layer;
}

std::vector<double> ExactOutputs(const Int8Layer& layer) {
  return ExactOutputs(layer, layer.input_min, layer.InputScale());
}

std::vector<double> ExactOutputs(const Int8Layer& layer, double offset,
                                 double step) {
  std::vector<double> outputs;
  for (int i = 0; i < layer.rows; ++i) {
    for (int j = 0; j < layer.columns; ++j) {
      double sum = 0;
      for (int k = 0; k < layer.depth; ++k) {
        sum += (offset + layer.codes[i * layer.depth + k] * step) *
               layer.weights[k * layer.columns + j];
      }
      outputs.push_back(sum * layer.ColumnMax(j) / 127 + layer.bias[j]);
    }
  }
  return outputs;
}

std::vector<double> WithoutNegatives(std::vector<double> values) {
  for (double& value : values) value = std::max(value, 0.0);
  return values;
}

std::vector<int> ColumnSums(const Int8Layer& layer) {
  std::vector<int> sums(layer.columns, 0);
  for (int i = 0; i < layer.depth * layer.columns; ++i) {
    sums[i % layer.columns] += layer.weights[i];
  }
  return sums;
}

std::vector<int> QuantizedBias(const Int8Layer& layer, BiasKind kind) {
  const std::vector<int> sums = ColumnSums(layer);
  std::vector<int> bias;
  for (int j = 0; j < layer.columns; ++j) {
    const double zero_point =
        kind == BiasKind::kQuantizedWithZeroPoint
            ? sums[j] * layer.input_min / layer.InputScale()
            : 0;
    bias.push_back(
        std::nearbyint(layer.bias[j] / layer.SumScale() + zero_point));
  }
  return bias;
}

double Smallest(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}

double Largest(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end());
}

double LargestDifference(const std::vector<double>& a,
                         const std::vector<double>& b) {
  double largest = 0;
  for (int i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(a[i] - b[i]));
  }
  return largest;
}

void AddMatMul(const Int8Layer& layer, const Int8MatMul& matmul,
               KernelGraph* graph) {
  const auto [min, max] =
      matmul.input_range.value_or(std::pair(layer.input_min, layer.input_max));
  graph->Feed("a", CodeTensor(matmul.input_type, {layer.rows, layer.depth},
                              layer.codes));
  graph->Constant("b", WeightTensor(layer, matmul));
  graph->Constant("bias", BiasTensor(layer, matmul.bias));
  for (const auto& [name, value] : {std::pair("min_a", min), {"max_a", max}}) {
    if (matmul.op == kNewMatMul) {
      graph->Feed(name, Tensor(value));
    } else {
      graph->Constant(name, value);
    }
  }
  graph->Constant("min_b", WeightRange(layer, matmul, -1));
  graph->Constant("max_b", WeightRange(layer, matmul, 1));
  graph->Constant("min_out", matmul.output_min);
  graph->Constant("max_out", matmul.output_max);
  graph->Add(
      absl::StrCat("y = ", matmul.op, "(a, b, bias, min_a, max_a, min_b, max_b",
                   TakesOutputRange(matmul) ? ", min_out, max_out)" : ")",
                   Attributes(matmul)));
}

absl::StatusOr<LayerOutputs> RunMatMul(const Int8Layer& layer,
                                       const Int8MatMul& matmul,
                                       KernelGraph* graph) {
  const DataType type = OutputType(matmul);
  LayerOutputs outputs;
  if (type == DT_FLOAT) {
    REQUANT_ASSIGN_OR_RETURN(const auto tensors, graph->Run({"y"}));
    for (float value : ValuesOf(tensors[0])) outputs.values.push_back(value);
    outputs.step = layer.SumScale();
    return outputs;
  }
  REQUANT_ASSIGN_OR_RETURN(const auto tensors, graph->Run({"y", "y:1", "y:2"}));
  outputs.codes = Codes(tensors[0]);
  const double min = ValuesOf(tensors[1])[0], max = ValuesOf(tensors[2])[0];
  const bool min_first = matmul.output_mode == "MIN_FIRST";
  const double range =
      min_first ? max - min : std::max(std::abs(min), std::abs(max));
  outputs.step = range / (type == DT_QUINT8  ? 255
                          : type == DT_QINT8 ? 127
                                             : 0x1p31);
  for (int code : outputs.codes) {
    outputs.values.push_back(code * outputs.step + (min_first ? min : 0));
  }
  return outputs;
}

absl::StatusOr<LayerOutputs> RunLayer(const Int8Layer& layer,
                                      const Int8MatMul& matmul) {
  KernelGraph graph;
  AddMatMul(layer, matmul, &graph);
  return RunMatMul(layer, matmul, &graph);
}

}  // namespace requant
