#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/message_text.h"
#include "base/status_macros.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "transforms/eightbit/eightbit_nodes.h"
#include "transforms/layers/graph_builder.h"
#include "transforms/layers/quantized_layer.h"
#include "transforms/layers/tensor_pattern.h"
#include "transforms/transform.h"

// A layer with Relu becomes one QuantizedMatMulWithBiasAndReluAndRequantize,
// under the Requantize's name. For a layer without Relu that kernel, like
// …AndRequantize, would clip negative outputs to 0, so the layer becomes
// …AndDequantize, whose float output replaces the Dequantize after it and is
// quantized again for readers of the quint8. An existing …AndDequantize only
// gets another bias, which is always qint32 (quantized_layer.h says why).

namespace requant {
namespace {

using tensorflow::DataType;
using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::Tensor;

// Returns whether a node may be removed once nothing reads it: a layer's
// matmul, its constants, and the nodes that computed its range and bias.
bool MayBeRemoved(const NodeDef& node) {
  static const auto* ops = new absl::flat_hash_set<std::string>{
      "AddV2", "Const", "Maximum",        "Minimum",
      "Mul",   "Sub",   kQuantizedMatMul, kQuantizedMatMulRelu};
  return ops->contains(node.op());
}

// Fuses layers one by one.
class Fuser {
 public:
  Fuser(TransformContext* context, GraphIndex* index)
      : builder_(index, context->outputs, MayBeRemoved),
        index_(index),
        has_outputs_(!context->outputs.empty()),
        compat_(context->parameters.Bool("compat")) {}

  absl::Status Fuse(QuantizedLayer layer) {
    if (!compat_) MakeWeightRangeSymmetric(&layer);
    RemoveInputLimits(layer);
    if (layer.requantize == nullptr) return QuantizeBiasOnly(layer);
    return layer.relu ? FuseRelu(layer) : FuseFloat(layer);
  }

  const std::vector<std::string>& fused() const { return fused_; }

 private:
  // Changes only the bias of a layer that is already fused, or of one without
  // Relu, which the original does not fuse.
  absl::Status QuantizeBiasOnly(const QuantizedLayer& layer) {
    REQUANT_ASSIGN_OR_RETURN(std::string bias, AddBias(layer));
    std::vector<std::string> inputs(layer.matmul->input().begin(),
                                    layer.matmul->input().end());
    inputs[kBias] = std::move(bias);
    inputs[kMinA] = layer.min_a;
    inputs[kMaxA] = layer.max_a;
    builder_.ReplaceInputs(layer.matmul, std::move(inputs));
    auto& attributes = *layer.matmul->mutable_attr();
    attributes["Tbias"].set_type(BiasType(layer));
    if (!layer.scaled) attributes["input_quant_mode"].set_s("MIN_FIRST");
    fused_.push_back(layer.matmul->name());
    return absl::OkStatus();
  }

  DataType BiasType(const QuantizedLayer& layer) const {
    return compat_ && layer.source == LayerSource::kOther
               ? layer.bias.dtype()
               : tensorflow::DT_QINT32;
  }

  // Returns the replacement of the layer's bias, which it adds if need be.
  absl::StatusOr<std::string> AddBias(const QuantizedLayer& layer) {
    if (BiasType(layer) == layer.bias.dtype()) {
      return layer.matmul->input(kBias);
    }
    REQUANT_ASSIGN_OR_RETURN(
        const Tensor bias, compat_ ? CompatBias(layer) : QuantizedBias(layer));
    return builder_.AddConst(layer.matmul->name() + "/bias_qint32", bias);
  }

  static bool IsLimit(const NodeDef* node) {
    return node != nullptr &&
           (node->op() == "Minimum" || node->op() == "Maximum");
  }

  // Returns a tensor holding the constant that `reader` reads at `input`: the
  // frozen one if the limits that quantize_eightbit puts on it have no effect,
  // and otherwise a new constant `name`.
  std::string WithoutLimits(const NodeDef& reader, int input,
                            const std::string& name) {
    const std::optional<float> value = ConstantInput(*index_, reader, input);
    const NodeDef* node = &reader;
    while (value && IsLimit(index_->Producer(*node, input)) &&
           ConstantInput(*index_, *node, input) == value) {
      node = index_->Producer(*node, input);
      input = 0;
    }
    if (!value || ConstantInput(*index_, *node, input) == value) {
      return node->input(input);
    }
    return builder_.AddScalar(name, *value);
  }

  // Makes the range of the QuantizeV2 that feeds the layer constant.
  void RemoveInputLimits(const QuantizedLayer& layer) {
    constexpr int kMax = 2;
    NodeDef* quantize = index_->Producer(*layer.matmul, kA);
    if (quantize == nullptr || quantize->op() != "QuantizeV2" ||
        !IsLimit(index_->Producer(*quantize, kMax))) {
      return;
    }
    std::vector<std::string> inputs(quantize->input().begin(),
                                    quantize->input().end());
    inputs[kMax] =
        WithoutLimits(*quantize, kMax, quantize->name() + "/input_max");
    builder_.ReplaceInputs(quantize, std::move(inputs));
  }

  // Returns the inputs of the fused node: the matmul's inputs with the bias
  // replaced and with the weight range of `layer`, then the output range.
  absl::StatusOr<std::vector<std::string>> FusedInputs(
      const QuantizedLayer& layer) {
    std::vector<std::string> inputs(layer.matmul->input().begin(),
                                    layer.matmul->input().begin() + kInputs);
    const std::string& base = layer.matmul->name();
    REQUANT_ASSIGN_OR_RETURN(inputs[kBias], AddBias(layer));
    inputs[kMinA] = layer.min_a;
    inputs[kMaxA] = layer.max_a;
    if (ConstantInput(*index_, *layer.matmul, kMinW) != layer.weight_min) {
      inputs[kMinW] =
          builder_.AddScalar(base + "/weight_min", layer.weight_min);
    }
    inputs.push_back(layer.requantize->input(kOutMin));
    inputs.push_back(layer.requantize->input(kOutMax));
    inputs.back() = WithoutLimits(*layer.requantize, kOutMax,
                                  layer.requantize->name() + "/output_max");
    // For the kernel, code 0 means 0 whatever minimum it is given, and the next
    // layer must be given the same minimum.
    if (layer.relu && !compat_ && layer.output.min != 0) {
      inputs[kInputs] =
          builder_.AddScalar(layer.requantize->name() + "/output_min", 0);
    }
    return inputs;
  }

  // Turns `node` into a fused op without renaming it.
  void Become(NodeDef* node, const std::string& op, DataType output,
              const QuantizedLayer& layer, std::vector<std::string> inputs) {
    AppendControlInputs({layer.matmul, layer.requantize, node}, &inputs);
    const std::string device = layer.matmul->device();
    builder_.ReplaceInputs(node, std::move(inputs));
    BecomeFused(op, BiasType(layer), output,
                layer.scaled ? "SCALED" : (compat_ ? "" : "MIN_FIRST"), device,
                node);
    fused_.push_back(node->name());
  }

  absl::Status FuseRelu(const QuantizedLayer& layer) {
    REQUANT_ASSIGN_OR_RETURN(std::vector<std::string> inputs,
                             FusedInputs(layer));
    Become(layer.requantize, kFusedRelu, tensorflow::DT_QUINT8, layer,
           std::move(inputs));
    return absl::OkStatus();
  }

  bool IsOutput(const NodeDef& node) const {
    return has_outputs_ ? builder_.IsOutput(node.name())
                        : !index_->HasUses(node.name());
  }

  // Returns whether `node` dequantizes to float over the range of `requantize`.
  static bool IsDequantizeOf(const NodeDef& requantize, const NodeDef& node) {
    return node.op() == "Dequantize" && node.input_size() >= 3 &&
           node.input(1) == FormatTensorName(requantize.name(), 1) &&
           node.input(2) == FormatTensorName(requantize.name(), 2) &&
           TypeAttribute(node, "dtype", tensorflow::DT_FLOAT) ==
               tensorflow::DT_FLOAT;
  }

  // Returns the nodes that only turn the layer's quint8 output into float.
  std::vector<NodeDef*> Dequantizers(const NodeDef& requantize) const {
    std::vector<NodeDef*> found;
    for (const Use& use : index_->Uses(requantize.name())) {
      if (use.input == 0 && use.port == 0 &&
          IsDequantizeOf(requantize, *use.node)) {
        found.push_back(use.node);
      }
    }
    std::sort(found.begin(), found.end(),
              [](NodeDef* a, NodeDef* b) { return a->name() < b->name(); });
    return found;
  }

  absl::Status FuseFloat(const QuantizedLayer& layer) {
    REQUANT_ASSIGN_OR_RETURN(std::vector<std::string> inputs,
                             FusedInputs(layer));
    NodeDef* requantize = layer.requantize;
    const bool is_output = IsOutput(*requantize);
    const std::vector<NodeDef*> dequantizers = Dequantizers(*requantize);
    NodeDef* fused;
    if (dequantizers.empty()) {
      fused = index_->Find(
          builder_.AddNode(requantize->name() + "/dequantized", "", {}, {}));
    } else {
      fused = dequantizers.front();
    }
    Become(fused, kFusedFloat, tensorflow::DT_FLOAT, layer, std::move(inputs));
    for (NodeDef* other : dequantizers) {
      if (other != fused) {
        ReplaceDequantizer(other, *fused);
      }
    }
    if (index_->HasUses(requantize->name()) || is_output) {
      QuantizeAgain(requantize, *fused);
    } else {
      builder_.RemoveUnread(std::string(requantize->name()));
    }
    return absl::OkStatus();
  }

  void ReplaceDequantizer(NodeDef* dequantizer, const NodeDef& fused) {
    if (IsOutput(*dequantizer)) {
      index_->SetInputs(dequantizer, {fused.name()});
      dequantizer->set_op("Identity");
      dequantizer->clear_attr();
      (*dequantizer->mutable_attr())["T"].set_type(tensorflow::DT_FLOAT);
      return;
    }
    index_->RedirectUses({dequantizer->name(), 0}, {fused.name(), 0});
    index_->RedirectUses({dequantizer->name(), kControlPort},
                         {fused.name(), kControlPort});
    builder_.RemoveUnread(std::string(dequantizer->name()));
  }

  // Turns the Requantize into a QuantizeV2 of the float output; the outputs of
  // both are quint8, min and max.
  void QuantizeAgain(NodeDef* requantize, const NodeDef& fused) {
    builder_.ReplaceInputs(
        requantize,
        {fused.name(), requantize->input(kOutMin), requantize->input(kOutMax)});
    requantize->set_op("QuantizeV2");
    auto& attributes = *requantize->mutable_attr();
    attributes.clear();
    attributes["T"].set_type(tensorflow::DT_QUINT8);
    attributes["mode"].set_s("MIN_FIRST");
    // A Requantize uses its range as given, however narrow.
    attributes["ensure_minimum_range"].set_f(0);
  }

  GraphBuilder builder_;
  GraphIndex* index_;
  const bool has_outputs_;
  const bool compat_;
  std::vector<std::string> fused_;
};

// Reads the layers that end with a Requantize, in compat mode only those with
// Relu, as in the original. Then reads the matmuls of which only the bias
// changes: those already fused with a Dequantize and, in compat mode, those
// without Relu.
absl::StatusOr<std::vector<QuantizedLayer>> ReadLayers(const GraphIndex& index,
                                                       GraphDef* graph,
                                                       bool compat) {
  std::vector<QuantizedLayer> layers;
  for (NodeDef& node : *graph->mutable_node()) {
    if (node.op() != "Requantize" || node.input_size() < kOutMax + 1) continue;
    NodeDef* matmul = index.Producer(node, kAccumulator);
    if (matmul == nullptr || matmul->input_size() < kInputs) continue;
    if (matmul->op() == kQuantizedMatMulRelu ||
        (matmul->op() == kQuantizedMatMul && !compat)) {
      REQUANT_ASSIGN_OR_RETURN(layers.emplace_back(),
                               ReadLayer(index, matmul, &node, compat));
    }
  }
  for (NodeDef& node : *graph->mutable_node()) {
    if (node.input_size() < kInputs) continue;
    const bool of_the_original = compat && node.op() == kQuantizedMatMul &&
                                 SourceOf(index, node) != LayerSource::kOther;
    if (of_the_original ||
        (node.op() == kFusedFloat &&
         TypeAttribute(node, "Tbias") == tensorflow::DT_FLOAT)) {
      REQUANT_ASSIGN_OR_RETURN(layers.emplace_back(),
                               ReadMatMul(index, &node, compat));
    }
  }
  return layers;
}

absl::Status FuseQuantizedMatMulAndRequantize(TransformContext& context,
                                              GraphDef* graph) {
  REQUANT_ASSIGN_OR_RETURN(GraphIndex index, GraphIndex::Create(graph));
  // All layers are read before the first is changed: a layer's input range
  // comes from the layer before it.
  REQUANT_ASSIGN_OR_RETURN(
      std::vector<QuantizedLayer> layers,
      ReadLayers(index, graph, context.parameters.Bool("compat")));
  Fuser fuser(&context, &index);
  for (QuantizedLayer& layer : layers) {
    REQUANT_RETURN_IF_ERROR(fuser.Fuse(std::move(layer)));
  }
  index.Commit();
  context.notes.push_back(
      layers.empty() ? "no layer to fuse"
                     : absl::StrCat("fuses ", CountText(layers.size(), "layer"),
                                    ": ", absl::StrJoin(fuser.fused(), ", ")));
  return absl::OkStatus();
}

REQUANT_REGISTER_TRANSFORM(
    FuseQuantizedMatMulAndRequantize,
    {"fuse_quantized_matmul_and_requantize",
     "Fuses each quantized matmul with the Requantize after it into one op.",
     "A layer with Relu becomes QuantizedMatMulWithBiasAndReluAndRequantize; "
     "one without becomes QuantizedMatMulWithBiasAndDequantize, because the "
     "requantizing kernel would clip its negative outputs. Biases become "
     "qint32 at the kernel's own scale, with the zero point of inputs that can "
     "be negative folded in. Ranges that are not constant are an error. "
     "Running it again changes nothing.",
     {{"compat", ParameterType::kBool,
       "Compute biases exactly as the original did, mistakes included, and do "
       "not fuse layers without Relu.",
       "false"}},
     "freeze_requantization_ranges, freeze_min and freeze_max"});

}  // namespace
}  // namespace requant