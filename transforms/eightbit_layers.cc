#include "transforms/eightbit_layers.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "graph/const_node.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "transforms/quantized_layer.h"
#include "transforms/tensor_pattern.h"

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

using Types = std::vector<std::pair<const char*, DataType>>;

void SetTypes(const Types& types, NodeDef* node) {
  for (const auto& [attribute, type] : types) {
    (*node->mutable_attr())[attribute].set_type(type);
  }
}

NodeDef MakeNode(const std::string& name, const std::string& op,
                 const std::vector<std::string>& inputs, const Types& types) {
  NodeDef node;
  node.set_name(name);
  node.set_op(op);
  for (const std::string& input : inputs) node.add_input(input);
  SetTypes(types, &node);
  return node;
}

NodeDef MakeIntConst(const std::string& name, int value) {
  Tensor tensor(DT_INT32, {1});
  tensor.flat<int32_t>()(0) = value;
  return MakeConst(name, tensor);
}

std::string Port(const std::string& node, int port) {
  return FormatTensorName(node, port);
}

std::string Prefix(const FloatLayer& layer) {
  return absl::StrCat(layer.matmul->name(), "_eightbit");
}

// A tensor's name as part of a node's, as the original writes it.
std::string AsPartOfName(const std::string& tensor) {
  const TensorName name = ParseTensorName(tensor);
  return absl::StrReplaceAll(FormatTensorName(name.node, name.port),
                             {{":", "__port__"}});
}

void SetRangeOf(const std::string& tensor, NodeDef* node) {
  (*node->mutable_attr())[kRangeOfAttribute].set_s(tensor);
}

// The names of the nodes that `node` reads.
std::vector<std::string> Producers(const NodeDef& node) {
  std::vector<std::string> names;
  for (const std::string& input : node.input()) {
    names.emplace_back(ParseTensorName(input).node);
  }
  return names;
}

// Control inputs of the layer's nodes, which still order the new ones.
std::vector<std::string> ControlInputs(const FloatLayer& layer) {
  std::vector<std::string> inputs;
  for (const NodeDef* node : {layer.matmul, layer.bias_add, layer.activation}) {
    if (node == nullptr) continue;
    for (const std::string& input : node->input()) {
      if (absl::StartsWith(input, "^") &&
          !absl::c_linear_search(inputs, input)) {
        inputs.push_back(input);
      }
    }
  }
  return inputs;
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
    : index_(index), rule_(rule) {
  for (const std::string& output : outputs) {
    outputs_.insert(std::string(ParseTensorName(output).node));
  }
}

EightbitLayers::WeightsKey EightbitLayers::KeyOf(const FloatLayer& layer) {
  return {layer.weights_node->name(), layer.transposed};
}

const QuantizedWeights& EightbitLayers::WeightsOf(
    const FloatLayer& layer) const {
  return weights_.at(KeyOf(layer)).weights;
}

absl::StatusOr<std::string> EightbitLayers::Add(NodeDef node) {
  node.set_name(index_->FreeName(node.name()));
  REQUANT_ASSIGN_OR_RETURN(const NodeDef* added, index_->Add(std::move(node)));
  return added->name();
}

absl::Status EightbitLayers::AddWeights(const FloatLayer& layer) {
  SharedWeights& shared = weights_[KeyOf(layer)];
  if (!shared.codes.empty()) return absl::OkStatus();
  const std::string& name = layer.weights_node->name();
  shared.weights = QuantizeWeights(layer.weights, rule_);
  const float range = shared.weights.range;
  REQUANT_ASSIGN_OR_RETURN(shared.codes, Add(MakeConst(name + "_qint8_const",
                                                       shared.weights.codes)));
  REQUANT_ASSIGN_OR_RETURN(shared.min,
                           Add(MakeScalarConst(name + "_min", -range)));
  REQUANT_ASSIGN_OR_RETURN(shared.max,
                           Add(MakeScalarConst(name + "_max", range)));
  return absl::OkStatus();
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
      Add(MakeConst(layer.weights_node->name() + "_column_sums", result)));
  return shared.column_sums;
}

absl::StatusOr<EightbitLayers::Codes> EightbitLayers::AddQuantize(
    const FloatLayer& layer, const std::string& tensor) {
  const std::string prefix = Prefix(layer), name = AsPartOfName(tensor);
  const TensorName source = ParseTensorName(tensor);
  const std::string input = FormatTensorName(source.node, source.port);
  REQUANT_ASSIGN_OR_RETURN(const std::string flat_shape,
                           Add(MakeIntConst(prefix + "_reshape_dims", -1)));
  REQUANT_ASSIGN_OR_RETURN(const std::string axis,
                           Add(MakeIntConst(prefix + "_reduction_dims", 0)));
  REQUANT_ASSIGN_OR_RETURN(
      const std::string flat,
      Add(MakeNode(absl::StrCat(prefix, "_reshape_", name), "Reshape",
                   {input, flat_shape},
                   {{"T", DT_FLOAT}, {"Tshape", DT_INT32}})));
  std::vector<std::string> ends;
  for (const auto& [op, word] :
       {std::pair{"Min", "_min_"}, std::pair{"Max", "_max_"}}) {
    NodeDef node = MakeNode(absl::StrCat(prefix, word, name), op, {flat, axis},
                            {{"T", DT_FLOAT}, {"Tidx", DT_INT32}});
    (*node.mutable_attr())["keep_dims"].set_b(false);
    SetRangeOf(tensor, &node);
    REQUANT_ASSIGN_OR_RETURN(ends.emplace_back(), Add(std::move(node)));
  }
  NodeDef quantize =
      MakeNode(absl::StrCat(prefix, "_quantize_", name), "QuantizeV2",
               {input, ends[0], ends[1]}, {{"T", DT_QUINT8}});
  (*quantize.mutable_attr())["mode"].set_s("MIN_FIRST");
  Codes codes;
  codes.shifted = true;
  REQUANT_ASSIGN_OR_RETURN(codes.codes, Add(std::move(quantize)));
  codes.min = Port(codes.codes, 1);
  codes.max = Port(codes.codes, 2);
  REQUANT_ASSIGN_OR_RETURN(
      codes.zero, Add(MakeScalarConst(absl::StrCat(prefix, "_zero"), 0)));
  REQUANT_ASSIGN_OR_RETURN(
      codes.width, Add(MakeNode(absl::StrCat(prefix, "_width_", name), "Sub",
                                {codes.max, codes.min}, {{"T", DT_FLOAT}})));
  return codes;
}

absl::StatusOr<EightbitLayers::Codes> EightbitLayers::InputCodes(
    const FloatLayer& layer) {
  const NodeOutput source = TensorSource(*index_, *layer.matmul, 0);
  const std::string tensor =
      source.node == nullptr
          ? layer.input
          : absl::StrCat(source.node->name(), ":", source.port);
  const auto known = codes_.find(tensor);
  if (known != codes_.end()) return known->second;
  REQUANT_ASSIGN_OR_RETURN(Codes codes, AddQuantize(layer, tensor));
  codes_.emplace(tensor, codes);
  return codes;
}

absl::StatusOr<std::string> EightbitLayers::AddBias(const FloatLayer& layer,
                                                    const Codes& input) {
  const std::string prefix = Prefix(layer);
  std::string bias;
  if (layer.bias_node != nullptr) {
    bias = layer.bias_node->name();
  } else {
    REQUANT_ASSIGN_OR_RETURN(bias,
                             Add(MakeConst(prefix + "_zero_bias", layer.bias)));
  }
  if (!input.shifted) return bias;
  REQUANT_ASSIGN_OR_RETURN(const std::string sums, AddColumnSums(layer));
  REQUANT_ASSIGN_OR_RETURN(const std::string shift,
                           Add(MakeNode(prefix + "_bias_shift", "Mul",
                                        {input.min, sums}, {{"T", DT_FLOAT}})));
  return Add(MakeNode(prefix + "_shifted_bias", "AddV2", {bias, shift},
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
      codes.codes,
      Add(MakeNode(Prefix(layer) + "_requantize", "Requantize", {},
                   {{"Tinput", DT_QINT32}, {"out_type", DT_QUINT8}})));
  codes.min = Port(codes.codes, 1);
  codes.max = Port(codes.codes, 2);
  codes_.emplace(layer.output, codes);
  return absl::OkStatus();
}

absl::Status EightbitLayers::AddReluLayer(const FloatLayer& layer) {
  const std::string prefix = Prefix(layer);
  REQUANT_ASSIGN_OR_RETURN(const Codes input, InputCodes(layer));
  REQUANT_ASSIGN_OR_RETURN(std::vector<std::string> inputs,
                           MatMulInputs(layer, input));
  for (std::string& control : ControlInputs(layer)) {
    inputs.push_back(std::move(control));
  }
  NodeDef matmul =
      MakeNode(prefix + "_quantized_mat_mul", kQuantizedMatMulRelu, inputs, {});
  matmul.set_device(layer.matmul->device());
  SetMatMulAttributes(input.shifted, DT_QINT32, &matmul);
  REQUANT_ASSIGN_OR_RETURN(const std::string sum, Add(std::move(matmul)));
  NodeDef range =
      MakeNode(prefix + "_requant_range", "RequantizationRange",
               {sum, Port(sum, 1), Port(sum, 2)}, {{"Tinput", DT_QINT32}});
  SetRangeOf(layer.output, &range);
  REQUANT_ASSIGN_OR_RETURN(const std::string ends, Add(std::move(range)));
  std::string max = Port(ends, 1);
  if (layer.activation->op() == "Relu6") {
    REQUANT_ASSIGN_OR_RETURN(const std::string six,
                             Add(MakeScalarConst(prefix + "_six", 6)));
    REQUANT_ASSIGN_OR_RETURN(
        max, Add(MakeNode(prefix + "_requant_max", "Minimum", {max, six},
                          {{"T", DT_FLOAT}})));
  }
  index_->SetInputs(index_->Find(codes_.at(layer.output).codes),
                    {sum, Port(sum, 1), Port(sum, 2), ends, max});
  return absl::OkStatus();
}

void EightbitLayers::BecomeDequantize(const FloatLayer& layer) {
  NodeDef* node = layer.last();
  const Codes& codes = codes_.at(layer.output);
  index_->SetInputs(node, {codes.codes, codes.min, codes.max});
  node->set_op("Dequantize");
  node->clear_attr();
  SetTypes({{"T", DT_QUINT8}, {"dtype", DT_FLOAT}}, node);
  (*node->mutable_attr())["mode"].set_s("MIN_FIRST");
}

absl::Status EightbitLayers::BecomeDequantizingMatMul(const FloatLayer& layer) {
  REQUANT_ASSIGN_OR_RETURN(const Codes input, InputCodes(layer));
  REQUANT_ASSIGN_OR_RETURN(std::vector<std::string> inputs,
                           MatMulInputs(layer, input));
  // The op has inputs for a range of its output, which it does not use.
  for (const auto& [word, value] :
       {std::pair{"_output_min", 0.0f}, std::pair{"_output_max", 1.0f}}) {
    REQUANT_ASSIGN_OR_RETURN(inputs.emplace_back(),
                             Add(MakeScalarConst(Prefix(layer) + word, value)));
  }
  for (std::string& control : ControlInputs(layer)) {
    inputs.push_back(std::move(control));
  }
  NodeDef* node = layer.last();
  const std::string device = layer.matmul->device();
  index_->SetInputs(node, std::move(inputs));
  node->set_op(kFusedFloat);
  node->set_device(device);
  node->clear_attr();
  SetTypes({{"Tbias", DT_FLOAT}}, node);
  SetMatMulAttributes(input.shifted, DT_FLOAT, node);
  return absl::OkStatus();
}

absl::Status EightbitLayers::RemoveUnread(const std::string& name) {
  const NodeDef* node = index_->Find(name);
  if (node == nullptr || index_->HasUses(name) || outputs_.contains(name)) {
    return absl::OkStatus();
  }
  const std::vector<std::string> producers = Producers(*node);
  REQUANT_RETURN_IF_ERROR(index_->Remove(name));
  return RemoveUnreadConstants(producers);
}

absl::Status EightbitLayers::RemoveUnreadConstants(
    const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const NodeDef* node = index_->Find(name);
    if (node != nullptr &&
        (node->op() == "Const" || node->op() == "Identity")) {
      REQUANT_RETURN_IF_ERROR(RemoveUnread(name));
    }
  }
  return absl::OkStatus();
}

absl::Status EightbitLayers::RemoveFloatNodes(const FloatLayer& layer) {
  if (layer.activation != nullptr) index_->SetInputs(layer.activation, {});
  // From the last to the first, so that each one's reader is gone.
  for (const NodeDef* node : {layer.bias_add, layer.matmul}) {
    if (node == nullptr || node == layer.last()) continue;
    REQUANT_RETURN_IF_ERROR(RemoveUnread(std::string(node->name())));
  }
  return absl::OkStatus();
}

absl::Status EightbitLayers::Quantize(const std::vector<FloatLayer>& layers) {
  for (const FloatLayer& layer : layers) {
    // What nothing reads is an output, whether it is named as one or not.
    if (!index_->HasUses(layer.last()->name())) {
      outputs_.insert(layer.last()->name());
    }
    REQUANT_RETURN_IF_ERROR(AddWeights(layer));
    if (layer.activation != nullptr) {
      REQUANT_RETURN_IF_ERROR(AddRequantize(layer));
    }
  }
  for (const FloatLayer& layer : layers) {
    if (layer.activation != nullptr) {
      REQUANT_RETURN_IF_ERROR(AddReluLayer(layer));
    } else {
      const std::vector<std::string> producers = Producers(*layer.last());
      REQUANT_RETURN_IF_ERROR(BecomeDequantizingMatMul(layer));
      REQUANT_RETURN_IF_ERROR(RemoveUnreadConstants(producers));
    }
  }
  for (const FloatLayer& layer : layers) {
    REQUANT_RETURN_IF_ERROR(RemoveFloatNodes(layer));
  }
  // Now only float readers of the layers' last nodes are left.
  for (const FloatLayer& layer : layers) {
    if (layer.activation == nullptr) continue;
    const std::string name = layer.activation->name();
    if (index_->HasUses(name) || outputs_.contains(name)) {
      BecomeDequantize(layer);
    } else {
      REQUANT_RETURN_IF_ERROR(index_->Remove(name));
    }
  }
  return absl::OkStatus();
}

}  // namespace requant
