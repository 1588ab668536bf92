#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "graph/const_node.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "transforms/eightbit/eightbit_nodes.h"
#include "transforms/layers/float_layer.h"
#include "transforms/layers/graph_builder.h"
#include "transforms/layers/quantized_layer.h"
#include "transforms/layers/quantized_weights.h"
#include "transforms/transform.h"

namespace requant {
namespace {

using tensorflow::DataType;
using tensorflow::DT_FLOAT;
using tensorflow::DT_INT32;
using tensorflow::DT_QINT32;
using tensorflow::DT_QINT8;
using tensorflow::DT_QUINT8;
using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::Tensor;

// Every range is made at least this wide, so that no scale is infinite.
constexpr float kLeastFloor = 1e-12f;
// QuantizeV2 itself makes every range at least this wide.
constexpr float kWidthThatQuantizeEnsures = 0.01f;
// An input of ordinary magnitude uses only part of a range wider than this.
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

// Codes of inputs are MIN_FIRST unless they are shifted.
std::string InputMode(bool shifted) { return shifted ? "SCALED" : "MIN_FIRST"; }

// Rewrites float layers into eight-bit ones. For the MatMul M, an input X that
// is not already quantized is quantized over its run-time range:
//
//   M_eightbit_quantize_X = QuantizeV2(X, M_eightbit_min_X, M_eightbit_max_X)
//
// A layer with Relu or Relu6 becomes
//
//   M_eightbit_quantized_mat_mul = QuantizedMatMulWithBiasAndRelu
//   M_eightbit_requant_range     = RequantizationRange
//   M_eightbit_requantize        = Requantize to quint8
//
// whose quint8 the following layers read; for float readers the layer's last
// node becomes a Dequantize. The last node of any other layer becomes a
// QuantizedMatMulWithBiasAndDequantize, since no legacy kernel that requantizes
// keeps negative values.
//
// With a MIN_FIRST input that can be negative, a float bias gives wrong results
// (TensorFlow >= 2.14 computes garbage). So the matmul takes the codes of
// QuantizeV2 as SCALED codes of x − min in [0, max − min], and the missing
// term, min · Σ_k w[k][j], is added to the bias in the graph.
//
// The kernels hold the bias as qint32 at the scale of the input and the
// weights. If a batch leaves a Relu layer nearly dead, its range is so narrow
// that the next layer's bias would silently saturate. So a layer requests a
// range at least as wide as its readers' biases need:
//
//   M_eightbit_requant_floored_max = Maximum(RequantizationRange:1, a constant)
//
// A QuantizeV2 does the same where the range that it ensures by itself is too
// narrow.
class EightbitLayers {
 public:
  // `outputs` are the names of the graph's outputs.
  EightbitLayers(GraphIndex* index, WeightRule rule,
                 const std::vector<std::string>& outputs)
      : builder_(index, outputs), rule_(rule) {}

  // Rewrites all of `layers`, which must belong to the index's graph.
  absl::Status Quantize(const std::vector<FloatLayer>& layers) {
    KeepUnreadOutputs(layers, &builder_);
    for (const FloatLayer& layer : layers) {
      AddWeights(layer);
      if (layer.activation != nullptr) AddRequantize(layer);
    }
    for (const FloatLayer& layer : layers) {
      REQUANT_RETURN_IF_ERROR(NoteFloor(layer));
    }
    for (const FloatLayer& layer : layers) {
      if (layer.activation != nullptr) {
        AddReluLayer(layer);
      } else {
        BecomeDequantizingMatMul(layer);
      }
    }
    RemoveFloatLayers(
        layers,
        [this](const FloatLayer& layer) {
          return codes_.at(layer.output).codes;
        },
        &builder_);
    return absl::OkStatus();
  }

  // Returns the weights of a layer that has been rewritten.
  const QuantizedWeights& WeightsOf(const FloatLayer& layer) const {
    return weights_.at(KeyOf(layer)).weights;
  }

  // Returns warnings about layers that may be inaccurate in eight bits.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  // A quint8 tensor with its range.
  struct Codes {
    std::string codes, min, max;
    // Set for a QuantizeV2: as its `min` may be negative, the codes are of x −
    // min.
    bool shifted = false;
    std::string zero, width;
  };
  struct SharedWeights {
    QuantizedWeights weights;
    std::string codes, min, max;
    // Σ_k w[k][j], computed from the codes; empty until a layer needs it.
    std::string column_sums;
  };
  using WeightsKey = std::pair<std::string, bool>;

  static WeightsKey KeyOf(const FloatLayer& layer) {
    return {layer.weights_node->name(), layer.transposed};
  }

  void AddWeights(const FloatLayer& layer) {
    SharedWeights& shared = weights_[KeyOf(layer)];
    if (!shared.codes.empty()) return;
    const std::string& name = layer.weights_node->name();
    shared.weights = QuantizeWeights(layer.weights, rule_);
    const float range = shared.weights.range;
    shared.codes =
        builder_.AddConst(name + "_qint8_const", shared.weights.codes);
    shared.min = builder_.AddScalar(name + "_min", -range);
    shared.max = builder_.AddScalar(name + "_max", range);
  }

  // Records the width that the layer's bias requires of its input's range.
  absl::Status NoteFloor(const FloatLayer& layer) {
    const double largest = LargestMagnitude(layer.bias);
    const double needed = LeastInputRange(largest, WeightsOf(layer).range);
    const std::string& name = layer.matmul->name();
    const auto floor = static_cast<float>(needed);
    const std::string input = layer.input;
    const NodeDef* source = builder_.index().Find(ParseTensorName(input).node);
    // The codes of a Relu6 layer must end at 6, because that clips its output.
    const bool ends_at_six =
        codes_.contains(input) && source != nullptr && source->op() == "Relu6";
    if (!std::isfinite(floor) || (ends_at_six && floor > 6)) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "the bias of \"%s\" reaches %g, which no eight-bit layer with "
          "weights up to %g can add; leave it in float: excluded_nodes=%s",
          name, largest, WeightsOf(layer).range, name));
    }
    if (floor > kDoubtfulFloor) {
      warnings_.push_back(absl::StrFormat(
          "the bias of \"%s\" reaches %g, so its input is quantized over a "
          "range of %g at least; if the input is much smaller, leave the layer "
          "in float: excluded_nodes=%s",
          name, largest, floor, name));
    }
    float& known = floors_[input];
    known = std::max(known, floor);
    return absl::OkStatus();
  }

  // Limits `max`, the maximum of the range of `tensor`, from below.
  std::string AddFlooredMax(const std::string& tensor, const std::string& max,
                            const std::string& floor_name,
                            const std::string& max_name) {
    const auto known = floors_.find(tensor);
    const float floor =
        std::max(kLeastFloor, known == floors_.end() ? 0 : known->second);
    const std::string constant = builder_.AddScalar(floor_name, floor);
    return builder_.AddNode(max_name, "Maximum", {max, constant},
                            {{"T", DT_FLOAT}});
  }

  std::string AddColumnSums(const FloatLayer& layer) {
    SharedWeights& shared = weights_.at(KeyOf(layer));
    if (!shared.column_sums.empty()) return shared.column_sums;
    const std::vector<int64_t> sums = ColumnSums(shared.weights.codes);
    const double step = shared.weights.range / 127.0;
    Tensor result(DT_FLOAT, {static_cast<int64_t>(sums.size())});
    for (size_t j = 0; j < sums.size(); ++j) {
      result.flat<float>()(j) = static_cast<float>(sums[j] * step);
    }
    shared.column_sums =
        builder_.AddConst(layer.weights_node->name() + "_column_sums", result);
    return shared.column_sums;
  }

  Codes InputCodes(const FloatLayer& layer) {
    const std::string& tensor = layer.input;
    const auto known = codes_.find(tensor);
    if (known != codes_.end()) return known->second;
    Codes codes = AddQuantize(layer, tensor);
    codes_.emplace(tensor, codes);
    return codes;
  }

  Codes AddQuantize(const FloatLayer& layer, const std::string& tensor) {
    const std::string prefix = EightbitPrefix(layer),
                      name = TensorAsPartOfName(tensor);
    const TensorName source = ParseTensorName(tensor);
    const std::string input = FormatTensorName(source.node, source.port);
    const std::string flat_shape =
        builder_.Add(MakeIntConst(prefix + "_reshape_dims", -1));
    const std::string axis =
        builder_.Add(MakeIntConst(prefix + "_reduction_dims", 0));
    const std::string flat = builder_.AddNode(
        absl::StrCat(prefix, "_reshape_", name), "Reshape", {input, flat_shape},
        {{"T", DT_FLOAT}, {"Tshape", DT_INT32}});
    std::vector<std::string> ends;
    for (const auto& [op, word] :
         {std::pair{"Min", "_min_"}, std::pair{"Max", "_max_"}}) {
      NodeDef node =
          MakeNode(absl::StrCat(prefix, word, name), op, {flat, axis},
                   {{"T", DT_FLOAT}, {"Tidx", DT_INT32}});
      (*node.mutable_attr())["keep_dims"].set_b(false);
      SetRangeOf(tensor, &node);
      ends.emplace_back() = builder_.Add(std::move(node));
    }
    if (floors_.at(tensor) > kWidthThatQuantizeEnsures) {
      ends[1] =
          AddFlooredMax(tensor, ends[1], absl::StrCat(prefix, "_floor_", name),
                        absl::StrCat(prefix, "_floored_max_", name));
    }
    NodeDef quantize =
        MakeNode(absl::StrCat(prefix, "_quantize_", name), "QuantizeV2",
                 {input, ends[0], ends[1]}, {{"T", DT_QUINT8}});
    (*quantize.mutable_attr())["mode"].set_s("MIN_FIRST");
    Codes codes;
    codes.shifted = true;
    codes.codes = builder_.Add(std::move(quantize));
    codes.min = Port(codes.codes, 1);
    codes.max = Port(codes.codes, 2);
    codes.zero = builder_.AddScalar(absl::StrCat(prefix, "_zero"), 0);
    codes.width = builder_.AddNode(absl::StrCat(prefix, "_width_", name), "Sub",
                                   {codes.max, codes.min}, {{"T", DT_FLOAT}});
    return codes;
  }

  std::string AddBias(const FloatLayer& layer, const Codes& input) {
    const std::string prefix = EightbitPrefix(layer);
    const std::string bias =
        layer.bias_node != nullptr
            ? layer.bias_node->name()
            : builder_.AddConst(prefix + "_zero_bias", layer.bias);
    if (!input.shifted) return bias;
    const std::string sums = AddColumnSums(layer);
    const std::string shift = builder_.AddNode(
        prefix + "_bias_shift", "Mul", {input.min, sums}, {{"T", DT_FLOAT}});
    return builder_.AddNode(prefix + "_shifted_bias", "AddV2", {bias, shift},
                            {{"T", DT_FLOAT}});
  }

  std::vector<std::string> MatMulInputs(const FloatLayer& layer,
                                        const Codes& input) {
    const std::string bias = AddBias(layer, input);
    const SharedWeights& weights = weights_.at(KeyOf(layer));
    return {input.codes,
            weights.codes,
            bias,
            input.shifted ? input.zero : input.min,
            input.shifted ? input.width : input.max,
            weights.min,
            weights.max};
  }

  // Leaves the inputs unset, so that layers can be rewritten in any order.
  void AddRequantize(const FloatLayer& layer) {
    Codes codes;
    codes.codes =
        builder_.AddNode(EightbitPrefix(layer) + "_requantize", "Requantize",
                         {}, {{"Tinput", DT_QINT32}, {"out_type", DT_QUINT8}});
    codes.min = Port(codes.codes, 1);
    codes.max = Port(codes.codes, 2);
    codes_.emplace(layer.output, codes);
  }

  void AddReluLayer(const FloatLayer& layer) {
    const std::string prefix = EightbitPrefix(layer);
    const Codes input = InputCodes(layer);
    std::vector<std::string> inputs = MatMulInputs(layer, input);
    AppendControlInputs({layer.matmul, layer.bias_add, layer.activation},
                        &inputs);
    NodeDef matmul =
        MakeNode(prefix + "_quantized_mat_mul", kQuantizedMatMulRelu, inputs,
                 {{"T1", DT_QUINT8}, {"T2", DT_QINT8}, {"Toutput", DT_QINT32}});
    (*matmul.mutable_attr())["input_quant_mode"].set_s(
        InputMode(input.shifted));
    matmul.set_device(layer.matmul->device());
    const std::string sum = builder_.Add(std::move(matmul));
    NodeDef range =
        MakeNode(prefix + "_requant_range", "RequantizationRange",
                 {sum, Port(sum, 1), Port(sum, 2)}, {{"Tinput", DT_QINT32}});
    SetRangeOf(layer.output, &range);
    const std::string ends = builder_.Add(std::move(range));
    std::string max = Port(ends, 1);
    if (layer.activation->op() == "Relu6") {
      const std::string six = builder_.AddScalar(prefix + "_six", 6);
      max = builder_.AddNode(prefix + "_requant_max", "Minimum", {max, six},
                             {{"T", DT_FLOAT}});
    }
    max = AddFlooredMax(layer.output, max, prefix + "_requant_floor",
                        prefix + "_requant_floored_max");
    GraphIndex& index = builder_.index();
    index.SetInputs(index.Find(codes_.at(layer.output).codes),
                    {sum, Port(sum, 1), Port(sum, 2), ends, max});
  }

  void BecomeDequantizingMatMul(const FloatLayer& layer) {
    const Codes input = InputCodes(layer);
    std::vector<std::string> inputs = MatMulInputs(layer, input);
    AppendUnusedRange(layer, &builder_, &inputs);
    NodeDef* node = layer.last();
    const std::string device = layer.matmul->device();
    builder_.ReplaceInputs(node, std::move(inputs));
    BecomeFused(kFusedFloat, DT_FLOAT, DT_FLOAT, InputMode(input.shifted),
                device, node);
  }

  GraphBuilder builder_;
  const WeightRule rule_;
  std::map<WeightsKey, SharedWeights> weights_;
  // The quint8 form of float tensors ("x:0").
  absl::flat_hash_map<std::string, Codes> codes_;
  // The least maximum that suffices for all layers that read a float tensor.
  absl::flat_hash_map<std::string, float> floors_;
  std::vector<std::string> warnings_;
};

// Returns a description of what becomes of the layer's output.
std::string OutputOf(const FloatLayer& layer, const GraphIndex& index) {
  const std::string kind = layer.activation == nullptr ? "float" : "quint8";
  const NodeDef* last = index.Find(ParseTensorName(layer.output).node);
  const bool dequantized = last != nullptr && last->op() == "Dequantize";
  return dequantized ? kind + ", also as float" : kind;
}

absl::Status Run(TransformContext& context, GraphDef* graph) {
  return QuantizeEightbit(context, graph).status();
}

}  // namespace

absl::StatusOr<int> QuantizeEightbit(TransformContext& context,
                                     GraphDef* graph) {
  const Parameters& parameters = context.parameters;
  REQUANT_ASSIGN_OR_RETURN(const WeightRule rule,
                           WeightRuleOf(parameters.String("target")));
  if (parameters.Bool("per_channel")) {
    return absl::UnimplementedError(
        absl::StrCat("per_channel is not possible: the kernels of ",
                     kQuantizedMatMulRelu, " and ", kFusedFloat,
                     " take one range for all columns of the weights"));
  }
  REQUANT_ASSIGN_OR_RETURN(GraphIndex index, GraphIndex::Create(graph));
  REQUANT_ASSIGN_OR_RETURN(const FloatLayers found,
                           FindLayersToQuantize(index, &context));
  std::vector<LayerTableRow> rows = {
      {"layer", {"size", "activation", "levels", "weight error", "output"}}};
  for (const FloatLayer& layer : found.layers) {
    rows.push_back({layer.matmul->name(),
                    {absl::StrCat(layer.weights.dim_size(0), " x ",
                                  layer.weights.dim_size(1)),
                     layer.activation ? layer.activation->op() : "none"}});
  }
  EightbitLayers eightbit(&index, rule, context.outputs);
  if (absl::Status status = eightbit.Quantize(found.layers); !status.ok()) {
    // On an error, only the error is reported.
    context.warnings.clear();
    return status;
  }
  context.warnings.insert(context.warnings.end(), eightbit.warnings().begin(),
                          eightbit.warnings().end());
  for (size_t i = 0; i < found.layers.size(); ++i) {
    const QuantizedWeights& weights = eightbit.WeightsOf(found.layers[i]);
    rows[i + 1].cells.insert(
        rows[i + 1].cells.end(),
        {absl::StrCat(weights.levels),
         absl::StrFormat("%.2f %%", 100 * weights.relative_error),
         OutputOf(found.layers[i], index)});
  }
  index.Commit();
  NoteLayers(found, rows, &context);
  return static_cast<int>(found.layers.size());
}

REQUANT_REGISTER_TRANSFORM(
    Run,
    {"quantize_eightbit",
     "Computes MatMul layers in eight bits, with ranges found in every run.",
     "Finds MatMul with constant float weights, with or without a bias and a "
     "Relu or Relu6, and gives it quint8 inputs and symmetric qint8 weights; "
     "everything else stays float. Ranges of inputs and outputs are computed "
     "by Min, Max and RequantizationRange nodes, which the freeze transforms "
     "make constant; each names the float tensor whose range it is in the "
     "attribute _requant_range_of. Layers with Relu hand quint8 on to the next "
     "one; others give float. The graph is right for inputs with negative "
     "values on every TensorFlow from 2.14 on. The range of a layer that is "
     "nearly dead in a batch is wide enough for the biases of the next ones. "
     "How many levels the weights have follows from the target: CPUs without "
     "VNNI saturate silently where two neighbouring weights are large. Prints "
     "a table of the layers, and why the others were left.",
     {TargetParameter(),
      ExcludedParameter("excluded_ops", "nodes of this type"),
      ExcludedParameter("excluded_nodes", "this node"),
      {"per_channel", ParameterType::kBool,
       "One range for each column of the weights. The kernels do not have it: "
       "true is an error.",
       "false"}},
     "weights frozen into constants"});

}  // namespace requant
