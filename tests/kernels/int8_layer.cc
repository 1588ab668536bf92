#include "tests/kernels/int8_layer.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/substitute.h"
#include "base/status_macros.h"
#include "graph/const_node.h"

namespace requant {
namespace {

using tensorflow::DataType;
using tensorflow::DT_FLOAT;
using tensorflow::DT_QINT32;
using tensorflow::DT_QINT8;
using tensorflow::DT_QUINT8;

// Calls `use` with a value of the quantized type.
template <typename Use>
void WithCodeType(DataType type, const Use& use) {
  switch (type) {
    case DT_QUINT8:
      return use(tensorflow::quint8());
    case DT_QINT8:
      return use(tensorflow::qint8());
    case DT_QINT32:
      return use(tensorflow::qint32());
    default:
      ADD_FAILURE() << "no codes in a tensor of type " << DataType_Name(type);
  }
}

DataType OutputType(const Int8MatMul& matmul) {
  if (absl::EndsWith(matmul.op, "Dequantize")) return DT_FLOAT;
  return absl::EndsWith(matmul.op, "Requantize") ? DT_QUINT8 : DT_QINT32;
}

// Returns a graph with the op as "y" and its input as "a".
GraphDef LayerGraph(const Int8Layer& layer, const Int8MatMul& matmul) {
  const auto [min, max] =
      matmul.input_range.value_or(std::pair(layer.input_min, layer.input_max));
  const bool float_bias = matmul.bias == BiasKind::kFloat;
  const std::pair<const char*, Tensor> constants[] = {
      {"b", CodeTensor(DT_QINT8, {layer.depth, layer.columns}, layer.weights)},
      {"bias", float_bias ? TensorOf<float>({layer.columns}, layer.bias)
                          : CodeTensor(DT_QINT32, {layer.columns},
                                       QuantizedBias(layer, matmul.bias))},
      {"min_a", Tensor(min)},
      {"max_a", Tensor(max)},
      {"min_b", Tensor(-layer.weight_max)},
      {"max_b", Tensor(layer.weight_max)},
      {"min_out", Tensor(0.0f)},
      {"max_out", Tensor(static_cast<float>(matmul.output_max))}};
  GraphDef graph;
  for (const auto& [name, value] : constants) {
    *graph.add_node() = MakeConst(name, value);
  }
  AddNodes(
      absl::Substitute(
          R"(a = Placeholder dtype=quint8
                  y = $0(a, b, bias, min_a, max_a, min_b, max_b$1) T1=quint8
                      T2=qint8 input_quant_mode='$2' transpose_b=$3 Toutput=$4)",
          matmul.op,
          absl::EndsWith(matmul.op, "quantize") ? ", min_out, max_out" : "",
          matmul.mode, matmul.transpose_b,
          tensorflow::DataTypeString(OutputType(matmul))),
      &graph);
  if (matmul.op != kWithRelu) {
    (*MutableNode(&graph, "y")->mutable_attr())["Tbias"].set_type(
        float_bias ? DT_FLOAT : DT_QINT32);
  }
  return graph;
}

}  // namespace

Tensor CodeTensor(DataType type, const tensorflow::TensorShape& shape,
                  const std::vector<int>& codes) {
  Tensor tensor(type, shape);
  WithCodeType(type, [&](auto code) {
    auto flat = tensor.flat<decltype(code)>();
    for (int i = 0; i < flat.size(); ++i) flat(i).value = codes[i];
  });
  return tensor;
}

std::vector<int> Codes(const Tensor& tensor) {
  std::vector<int> codes;
  WithCodeType(tensor.dtype(), [&](auto code) {
    const auto flat = tensor.flat<decltype(code)>();
    for (int i = 0; i < flat.size(); ++i) codes.push_back(flat(i).value);
  });
  return codes;
}

Int8Layer RandomLayer(float input_min, float input_max, int largest_weight) {
  Int8Layer layer;
  layer.input_min = input_min;
  layer.input_max = input_max;
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
  std::vector<double> outputs;
  for (int i = 0; i < layer.rows; ++i) {
    for (int j = 0; j < layer.columns; ++j) {
      double sum = 0;
      for (int k = 0; k < layer.depth; ++k) {
        sum += (layer.input_min +
                layer.codes[i * layer.depth + k] * layer.InputScale()) *
               layer.weights[k * layer.columns + j];
      }
      outputs.push_back(sum * layer.weight_max / 127 + layer.bias[j]);
    }
  }
  return outputs;
}

std::vector<double> WithoutNegatives(std::vector<double> values) {
  for (double& value : values) value = std::max(value, 0.0);
  return values;
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

std::vector<int> QuantizedBias(const Int8Layer& layer, BiasKind kind) {
  std::vector<int> sums(layer.columns, 0);
  for (int i = 0; i < layer.depth * layer.columns; ++i) {
    sums[i % layer.columns] += layer.weights[i];
  }
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

absl::StatusOr<LayerOutputs> RunLayer(const Int8Layer& layer,
                                      const Int8MatMul& matmul) {
  const DataType type = OutputType(matmul);
  std::vector<std::string> fetches = {"y"};
  if (type != DT_FLOAT) fetches.insert(fetches.end(), {"y:1", "y:2"});
  REQUANT_ASSIGN_OR_RETURN(
      const auto tensors,
      RunGraph(LayerGraph(layer, matmul),
               {{"a", CodeTensor(DT_QUINT8, {layer.rows, layer.depth},
                                 layer.codes)}},
               fetches));
  LayerOutputs outputs;
  if (type == DT_FLOAT) {
    const std::vector<float> values = ValuesOf(tensors[0]);
    outputs.values.assign(values.begin(), values.end());
    outputs.step = layer.SumScale();
    return outputs;
  }
  outputs.codes = Codes(tensors[0]);
  const double range =
      std::max(std::abs(ValuesOf(tensors[1])[0]), ValuesOf(tensors[2])[0]);
  outputs.step = range / (type == DT_QUINT8 ? 255 : 0x1p31);
  for (int code : outputs.codes) outputs.values.push_back(code * outputs.step);
  return outputs;
}

}  // namespace requant
