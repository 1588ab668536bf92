#include "tests/kernels/legacy_matmul.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tensorflow/core/framework/tensor.h"
#include "tests/kernels/kernel_graph.h"

namespace requant {
namespace {

using tensorflow::DataType;
using tensorflow::Tensor;

DataType OutputType(const LegacyMatMul& matmul) {
  if (matmul.output_type != tensorflow::DT_INVALID) return matmul.output_type;
  if (absl::EndsWith(matmul.op, "Dequantize")) return tensorflow::DT_FLOAT;
  return absl::EndsWith(matmul.op, "Requantize") ? tensorflow::DT_QUINT8
                                                 : tensorflow::DT_QINT32;
}

std::string TypeText(DataType type) {
  return absl::StrCat("type: ", DataType_Name(type));
}

std::string AddWeightRange(const std::string& name, float value,
                           const Int8Layer& layer, const LegacyMatMul& matmul,
                           KernelGraph* graph) {
  if (!matmul.range_per_column) return graph->Constant(name, value);
  return graph->Constant(
      name,
      FloatTensor({layer.columns}, std::vector<float>(layer.columns, value)));
}

std::vector<std::string> AddInputs(const Int8Layer& layer,
                                   const LegacyMatMul& matmul,
                                   KernelGraph* graph) {
  const std::vector<int> weight_shape =
      matmul.transpose_b ? std::vector<int>{layer.columns, layer.depth}
                         : std::vector<int>{layer.depth, layer.columns};
  std::vector<std::string> inputs = {
      graph->Feed("a", CodeTensor(matmul.input_type, {layer.rows, layer.depth},
                                  layer.codes)),
      graph->Constant(
          "b", CodeTensor(tensorflow::DT_QINT8, weight_shape, layer.weights)),
      graph->Constant("bias",
                      matmul.quantized_bias.empty()
                          ? FloatTensor({layer.columns}, layer.bias)
                          : CodeTensor(tensorflow::DT_QINT32, {layer.columns},
                                       matmul.quantized_bias)),
      graph->Constant("min_a",
                      matmul.own_range ? matmul.min_a : layer.input_min),
      graph->Constant("max_a",
                      matmul.own_range ? matmul.max_a : layer.input_max),
      AddWeightRange("min_b", -layer.weight_max, layer, matmul, graph),
      AddWeightRange("max_b", layer.weight_max, layer, matmul, graph)};
  if (absl::EndsWith(matmul.op, "quantize")) {
    inputs.push_back(graph->Constant("min_out", matmul.output_min));
    inputs.push_back(graph->Constant("max_out", matmul.output_max));
  }
  return inputs;
}

std::vector<AttributeText> Attributes(const LegacyMatMul& matmul) {
  std::vector<AttributeText> attributes = {
      {"T1", TypeText(matmul.input_type)},
      {"T2", "type: DT_QINT8"},
      {"Toutput", TypeText(OutputType(matmul))},
      {"input_quant_mode", absl::StrCat("s: '", matmul.mode, "'")},
      {"transpose_b", matmul.transpose_b ? "b: true" : "b: false"}};
  if (matmul.op != kWithRelu) {
    attributes.emplace_back("Tbias", matmul.quantized_bias.empty()
                                         ? "type: DT_FLOAT"
                                         : "type: DT_QINT32");
  }
  return attributes;
}

}  // namespace

absl::StatusOr<LayerOutputs> RunLayer(const Int8Layer& layer,
                                      const LegacyMatMul& matmul) {
  KernelGraph graph;
  graph.Add("y", matmul.op, AddInputs(layer, matmul, &graph),
            Attributes(matmul));
  const DataType type = OutputType(matmul);
  LayerOutputs outputs;
  if (type == tensorflow::DT_FLOAT) {
    REQUANT_ASSIGN_OR_RETURN(const std::vector<Tensor> tensors,
                             graph.Run({"y"}));
    for (float value : Floats(tensors[0])) outputs.values.push_back(value);
    outputs.step = layer.SumScale();
    return outputs;
  }
  REQUANT_ASSIGN_OR_RETURN(const std::vector<Tensor> tensors,
                           graph.Run({"y", "y:1", "y:2"}));
  outputs.codes = Codes(tensors[0]);
  const double range = std::max(std::abs(Floats(tensors[1])[0]),
                                std::abs(Floats(tensors[2])[0]));
  outputs.step = range / (type == tensorflow::DT_QUINT8 ? 255.0 : 0x1p31);
  for (int code : outputs.codes) outputs.values.push_back(code * outputs.step);
  return outputs;
}

}  // namespace requant
