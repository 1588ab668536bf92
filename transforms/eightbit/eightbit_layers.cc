#include "transforms/eightbit/eightbit_layers.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "graph/const_node.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "transforms/eightbit/eightbit_nodes.h"
#include "transforms/layers/quantized_layer.h"

namespace requant {
namespace {

using tensorflow::DataType;
using tensorflow::DT_FLOAT;
using tensorflow::DT_INT32;
using tensorflow::DT_QINT32;
using tensorflow::DT_QINT8;
using tensorflow::DT_QUINT8;
using tensorflow::NodeDef;
using tensorflow::Tensor;

// Every range is wider, so that no scale is infinite.
constexpr float kLeastFloor = 1e-12f;
// QuantizeV2 makes a range at least so wide by itself.
constexpr float kWidthThatQuantizeEnsures = 0.01f;
// An input that is of normal size uses only part of a range that is wider.
constexpr float kDoubtfulFloor = 1;

NodeDef MakeIntConst(const std::string& name, int value) {
  Tensor tensor(DT_INT32, {1});
  tensor.flat<int32_t>()(0) = value;
  return MakeConst(name, tensor);
}

std::string Port(const std::string& node, int port) {
  return FormatTensorName(node, port);
}

void SetRangeOf(const std::string& tensor, NodeDef* node) {
  (*node->mutable_attr())[kRangeOfAttribute].set_s(tensor);
}

// What the two ops of a layer have in common.
void SetMatMulAttributes(bool shifted, DataType output, NodeDef* node) {
  SetTypes({{"T1", DT_QUINT8}, {"T2", DT_QINT8}, {"Toutput", output}}, node);
  (*node->mutable_attr())["input_quant_mode"].set_s(shifted ? "SCALED"
                                                            : "MIN_FIRST");
}

}  // namespace

EightbitLayers::EightbitLayers(GraphIndex* index, WeightRule rule,
                               const std::vector<std::string>& outputs)
    : builder_(index, outputs), rule_(rule) {}

EightbitLayers::WeightsKey EightbitLayers::KeyOf(const FloatLayer& layer) {
  return {layer.weights_node->name(), layer.transposed};
}

const QuantizedWeights& EightbitLayers::WeightsOf(
    const FloatLayer& layer) const {
  return weights_.at(KeyOf(layer)).weights;
}

absl::Status EightbitLayers::AddWeights(const FloatLayer& layer) {
  SharedWeights& shared = weights_[KeyOf(layer)];
  if (!shared.codes.empty()) return absl::OkStatus();
  const std::string& name = layer.weights_node->name();
  shared.weights = QuantizeWeights(layer.weights, rule_);
  const float range = shared.weights.range;
  REQUANT_ASSIGN_OR_RETURN(
      shared.codes,
      builder_.Add(MakeConst(name + "_qint8_const", shared.weights.codes)));
  REQUANT_ASSIGN_OR_RETURN(
      shared.min, builder_.Add(MakeScalarConst(name + "_min", -range)));
  REQUANT_ASSIGN_OR_RETURN(shared.max,
                           builder_.Add(MakeScalarConst(name + "_max", range)));
  return absl::OkStatus();
}

absl::Status EightbitLayers::NoteFloor(const FloatLayer& layer) {
  const double largest = LargestMagnitude(layer.bias);
  const double needed = LeastInputRange(largest, WeightsOf(layer).range);
  const std::string& name = layer.matmul->name();
  const auto floor = static_cast<float>(needed);
  const std::string input = layer.input;
  const NodeDef* source = builder_.index().Find(ParseTensorName(input).node);
  // The codes of a Relu6 layer end at 6, which is what clips its output.
  const bool ends_at_six =
      codes_.contains(input) && source != nullptr && source->op() == "Relu6";
  if (!std::isfinite(floor) || (ends_at_six && floor > 6)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "the bias of \"%s\" reaches %g, which no eight-bit layer with weights "
        "up to %g can add; leave it in float: excluded_nodes=%s",
        name, largest, WeightsOf(layer).range, name));
  }
  if (floor > kDoubtfulFloor) {
    warnings_.push_back(absl::StrFormat(
        "the bias of \"%s\" reaches %g, so its input is quantized over a range "
        "of %g at least; if the input is much smaller, leave the layer in "
        "float: excluded_nodes=%s",
        name, largest, floor, name));
  }
  float& known = floors_[input];
  known = std::max(known, floor);
  return absl::OkStatus();
}

absl::StatusOr<std::string> EightbitLayers::AddFlooredMax(
    const std::string& tensor, const std::string& max,
    const std::string& floor_name, const std::string& max_name) {
  const auto known = floors_.find(tensor);
  const float floor =
      std::max(kLeastFloor, known == floors_.end() ? 0 : known->second);
  REQUANT_ASSIGN_OR_RETURN(const std::string constant,
                           builder_.Add(MakeScalarConst(floor_name, floor)));
  return builder_.Add(
      MakeNode(max_name, "Maximum", {max, constant}, {{"T", DT_FLOAT}}));
}

absl::StatusOr<std::string> EightbitLayers::AddColumnSums(
    const FloatLayer& layer) {
  SharedWeights& shared = weights_.at(KeyOf(layer));
  if (!shared.column_sums.empty()) return shared.column_sums;
  const std::vector<int64_t> sums = ColumnSums(shared.weights.codes);
  const double step = shared.weights.range / 127.0;
  Tensor result(DT_FLOAT, {static_cast<int64_t>(sums.size())});
  for (size_t j = 0; j < sums.size(); ++j) {
    result.flat<float>()(j) = static_cast<float>(sums[j] * step);
  }
  REQUANT_ASSIGN_OR_RETURN(
      shared.column_sums,
      builder_.Add(
          MakeConst(layer.weights_node->name() + "_column_sums", result)));
  return shared.column_sums;
}

absl::StatusOr<EightbitLayers::Codes> EightbitLayers::AddQuantize(
    const FloatLayer& layer, const std::string& tensor) {
  const std::string prefix = EightbitPrefix(layer),
                    name = TensorAsPartOfName(tensor);
  const TensorName source = ParseTensorName(tensor);
  const std::string input = FormatTensorName(source.node, source.port);
  REQUANT_ASSIGN_OR_RETURN(
      const std::string flat_shape,
      builder_.Add(MakeIntConst(prefix + "_reshape_dims", -1)));
  REQUANT_ASSIGN_OR_RETURN(
      const std::string axis,
      builder_.Add(MakeIntConst(prefix + "_reduction_dims", 0)));
  REQUANT_ASSIGN_OR_RETURN(
      const std::string flat,
      builder_.Add(MakeNode(absl::StrCat(prefix, "_reshape_", name), "Reshape",
                            {input, flat_shape},
                            {{"T", DT_FLOAT}, {"Tshape", DT_INT32}})));
  std::vector<std::string> ends;
  for (const auto& [op, word] :
       {std::pair{"Min", "_min_"}, std::pair{"Max", "_max_"}}) {
    NodeDef node = MakeNode(absl::StrCat(prefix, word, name), op, {flat, axis},
                            {{"T", DT_FLOAT}, {"Tidx", DT_INT32}});
    (*node.mutable_attr())["keep_dims"].set_b(false);
    SetRangeOf(tensor, &node);
    REQUANT_ASSIGN_OR_RETURN(ends.emplace_back(),
                             builder_.Add(std::move(node)));
  }
  if (floors_.at(tensor) > kWidthThatQuantizeEnsures) {
    REQUANT_ASSIGN_OR_RETURN(
        ends[1],
        AddFlooredMax(tensor, ends[1], absl::StrCat(prefix, "_floor_", name),
                      absl::StrCat(prefix, "_floored_max_", name)));
  }
  NodeDef quantize =
      MakeNode(absl::StrCat(prefix, "_quantize_", name), "QuantizeV2",
               {input, ends[0], ends[1]}, {{"T", DT_QUINT8}});
  (*quantize.mutable_attr())["mode"].set_s("MIN_FIRST");
  Codes codes;
  codes.shifted = true;
  REQUANT_ASSIGN_OR_RETURN(codes.codes, builder_.Add(std::move(quantize)));
  codes.min = Port(codes.codes, 1);
  codes.max = Port(codes.codes, 2);
  REQUANT_ASSIGN_OR_RETURN(codes.zero, builder_.Add(MakeScalarConst(
                                           absl::StrCat(prefix, "_zero"), 0)));
  REQUANT_ASSIGN_OR_RETURN(
      codes.width,
      builder_.Add(MakeNode(absl::StrCat(prefix, "_width_", name), "Sub",
                            {codes.max, codes.min}, {{"T", DT_FLOAT}})));
  return codes;
}

absl::StatusOr<EightbitLayers::Codes> EightbitLayers::InputCodes(
    const FloatLayer& layer) {
  const std::string& tensor = layer.input;
  const auto known = codes_.find(tensor);
  if (known != codes_.end()) return known->second;
  REQUANT_ASSIGN_OR_RETURN(Codes codes, AddQuantize(layer, tensor));
  codes_.emplace(tensor, codes);
  return codes;
}

absl::StatusOr<std::string> EightbitLayers::AddBias(const FloatLayer& layer,
                                                    const Codes& input) {
  const std::string prefix = EightbitPrefix(layer);
  std::string bias;
  if (layer.bias_node != nullptr) {
    bias = layer.bias_node->name();
  } else {
    REQUANT_ASSIGN_OR_RETURN(
        bias, builder_.Add(MakeConst(prefix + "_zero_bias", layer.bias)));
  }
  if (!input.shifted) return bias;
  REQUANT_ASSIGN_OR_RETURN(const std::string sums, AddColumnSums(layer));
  REQUANT_ASSIGN_OR_RETURN(
      const std::string shift,
      builder_.Add(MakeNode(prefix + "_bias_shift", "Mul", {input.min, sums},
                            {{"T", DT_FLOAT}})));
  return builder_.Add(MakeNode(prefix + "_shifted_bias", "AddV2", {bias, shift},
                               {{"T", DT_FLOAT}}));
}

absl::StatusOr<std::vector<std::string>> EightbitLayers::MatMulInputs(
    const FloatLayer& layer, const Codes& input) {
  const SharedWeights& weights = weights_.at(KeyOf(layer));
  REQUANT_ASSIGN_OR_RETURN(std::string bias, AddBias(layer, input));
  return std::vector<std::string>{
      input.codes,
      weights.codes,
      std::move(bias),
      input.shifted ? input.zero : input.min,
      input.shifted ? input.width : input.max,
      weights.min,
      weights.max,
  };
}

absl::Status EightbitLayers::AddRequantize(const FloatLayer& layer) {
  Codes codes;
  REQUANT_ASSIGN_OR_RETURN(
      codes.codes, builder_.Add(MakeNode(
                       EightbitPrefix(layer) + "_requantize", "Requantize", {},
                       {{"Tinput", DT_QINT32}, {"out_type", DT_QUINT8}})));
  codes.min = Port(codes.codes, 1);
  codes.max = Port(codes.codes, 2);
  codes_.emplace(layer.output, codes);
  return absl::OkStatus();
}

absl::Status EightbitLayers::AddReluLayer(const FloatLayer& layer) {
  const std::string prefix = EightbitPrefix(layer);
  REQUANT_ASSIGN_OR_RETURN(const Codes input, InputCodes(layer));
  REQUANT_ASSIGN_OR_RETURN(std::vector<std::string> inputs,
                           MatMulInputs(layer, input));
  for (std::string& control : LayerControlInputs(layer)) {
    inputs.push_back(std::move(control));
  }
  NodeDef matmul =
      MakeNode(prefix + "_quantized_mat_mul", kQuantizedMatMulRelu, inputs, {});
  matmul.set_device(layer.matmul->device());
  SetMatMulAttributes(input.shifted, DT_QINT32, &matmul);
  REQUANT_ASSIGN_OR_RETURN(const std::string sum,
                           builder_.Add(std::move(matmul)));
  NodeDef range =
      MakeNode(prefix + "_requant_range", "RequantizationRange",
               {sum, Port(sum, 1), Port(sum, 2)}, {{"Tinput", DT_QINT32}});
  SetRangeOf(layer.output, &range);
  REQUANT_ASSIGN_OR_RETURN(const std::string ends,
                           builder_.Add(std::move(range)));
  std::string max = Port(ends, 1);
  if (layer.activation->op() == "Relu6") {
    REQUANT_ASSIGN_OR_RETURN(const std::string six,
                             builder_.Add(MakeScalarConst(prefix + "_six", 6)));
    REQUANT_ASSIGN_OR_RETURN(
        max, builder_.Add(MakeNode(prefix + "_requant_max", "Minimum",
                                   {max, six}, {{"T", DT_FLOAT}})));
  }
  REQUANT_ASSIGN_OR_RETURN(
      max, AddFlooredMax(layer.output, max, prefix + "_requant_floor",
                         prefix + "_requant_floored_max"));
  GraphIndex& index = builder_.index();
  index.SetInputs(index.Find(codes_.at(layer.output).codes),
                  {sum, Port(sum, 1), Port(sum, 2), ends, max});
  return absl::OkStatus();
}

absl::Status EightbitLayers::BecomeDequantizingMatMul(const FloatLayer& layer) {
  REQUANT_ASSIGN_OR_RETURN(const Codes input, InputCodes(layer));
  REQUANT_ASSIGN_OR_RETURN(std::vector<std::string> inputs,
                           MatMulInputs(layer, input));
  // The op has inputs for a range of its output, which it does not use.
  for (const auto& [word, value] :
       {std::pair{"_output_min", 0.0f}, std::pair{"_output_max", 1.0f}}) {
    REQUANT_ASSIGN_OR_RETURN(
        inputs.emplace_back(),
        builder_.Add(MakeScalarConst(EightbitPrefix(layer) + word, value)));
  }
  for (std::string& control : LayerControlInputs(layer)) {
    inputs.push_back(std::move(control));
  }
  NodeDef* node = layer.last();
  const std::string device = layer.matmul->device();
  REQUANT_RETURN_IF_ERROR(builder_.ReplaceInputs(node, std::move(inputs)));
  node->set_op(kFusedFloat);
  node->set_device(device);
  node->clear_attr();
  SetTypes({{"Tbias", DT_FLOAT}}, node);
  SetMatMulAttributes(input.shifted, DT_FLOAT, node);
  return absl::OkStatus();
}

absl::Status EightbitLayers::Quantize(const std::vector<FloatLayer>& layers) {
  KeepUnreadOutputs(layers, &builder_);
  for (const FloatLayer& layer : layers) {
    REQUANT_RETURN_IF_ERROR(AddWeights(layer));
    if (layer.activation != nullptr) {
      REQUANT_RETURN_IF_ERROR(AddRequantize(layer));
    }
  }
  for (const FloatLayer& layer : layers) {
    REQUANT_RETURN_IF_ERROR(NoteFloor(layer));
  }
  for (const FloatLayer& layer : layers) {
    REQUANT_RETURN_IF_ERROR(layer.activation != nullptr
                                ? AddReluLayer(layer)
                                : BecomeDequantizingMatMul(layer));
  }
  return RemoveFloatLayers(
      layers,
      [this](const FloatLayer& layer) { return codes_.at(layer.output).codes; },
      &builder_);
}

}  // namespace requant
