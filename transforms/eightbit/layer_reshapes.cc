#include "transforms/eightbit/layer_reshapes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/const_node.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.pb.h"
#include "transforms/eightbit/eightbit_nodes.h"
#include "transforms/eightbit/expose_matmuls.h"
#include "transforms/layers/graph_builder.h"
#include "transforms/layers/tensor_pattern.h"

namespace requant {
namespace {

using tensorflow::DT_FLOAT;
using tensorflow::DT_INT32;
using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::Tensor;

bool IsMarked(const FloatLayer& layer) {
  return layer.matmul->attr().contains(kExposedAttribute);
}

void Mark(const FloatLayer& layer) {
  if (IsMarked(layer)) return;
  (*layer.matmul->mutable_attr())[kExposedAttribute].set_s(
      layer.matmul->name());
}

// The last integers of a tensor that are constant, and whether these are all.
struct KnownIntegers {
  std::vector<int64_t> values;
  bool all = false;
};

KnownIntegers IntegersAtEndOf(const GraphIndex& index, NodeOutput tensor,
                              int depth = 3);

// Prepends those of the node's inputs from `end` backwards, as far as known.
KnownIntegers JoinedIntegers(const GraphIndex& index, const NodeDef& node,
                             int end, int depth) {
  KnownIntegers joined;
  joined.all = true;
  for (int i = end - 1; i >= 0 && joined.all; --i) {
    const KnownIntegers part =
        IntegersAtEndOf(index, TensorSource(index, node, i), depth - 1);
    joined.all = part.all;
    joined.values.insert(joined.values.begin(), part.values.begin(),
                         part.values.end());
  }
  return joined;
}

KnownIntegers IntegersAtEndOf(const GraphIndex& index, NodeOutput tensor,
                              int depth) {
  if (tensor.node == nullptr || depth == 0) return {};
  const NodeDef& node = *tensor.node;
  const int inputs = DataInputs(node);
  // Shapes and permutations are concatenated along their only dimension.
  if (node.op() == "ConcatV2" && inputs > 1) {
    return JoinedIntegers(index, node, inputs - 1, depth);
  }
  if (node.op() == "Pack") return JoinedIntegers(index, node, inputs, depth);
  const absl::StatusOr<Tensor> value = ConstValue(node);
  if (!value.ok() || value->dims() > 1) return {};
  KnownIntegers known;
  known.all = true;
  if (value->dtype() == DT_INT32) {
    const auto flat = value->flat<int32_t>();
    known.values.assign(flat.data(), flat.data() + flat.size());
  } else if (value->dtype() == tensorflow::DT_INT64) {
    const auto flat = value->flat<int64_t>();
    known.values.assign(flat.data(), flat.data() + flat.size());
  } else {
    return {};
  }
  return known;
}

// Moves what follows a Reshape of a MatMul's result before the Reshape.
class BiasMover {
 public:
  BiasMover(GraphIndex* index, const FloatLayerOptions& options)
      : builder_(index, options.outputs),
        excluded_ops_(options.excluded_ops.begin(), options.excluded_ops.end()),
        excluded_nodes_(options.excluded_nodes.begin(),
                        options.excluded_nodes.end()) {}

  void Move(const FloatLayer& layer) {
    if (layer.last() != layer.matmul) return;
    const std::optional<Use> reshape = OnlyReader(*layer.matmul);
    if (!reshape || reshape->node->op() != "Reshape" || reshape->input != 0 ||
        DataInputs(*reshape->node) != 2) {
      return;
    }
    std::vector<Step> steps = StepsAfter(*reshape->node, layer);
    if (steps.empty()) return;
    const std::string rows = AddSteps(layer, steps);
    NodeDef* last = steps.back().node;
    std::vector<std::string> inputs = {rows, reshape->node->input(1)};
    AppendControlInputs({reshape->node}, &inputs);
    const tensorflow::DataType type =
        TypeAttribute(*reshape->node, "Tshape", DT_INT32);
    const std::string device = reshape->node->device();
    // This also removes the former Reshape or the step before this one.
    std::vector<std::string> unread;
    for (const Step& step : steps) {
      if (step.node != last) unread.push_back(step.node->name());
    }
    builder_.ReplaceInputs(last, std::move(inputs));
    for (const std::string& name : unread) builder_.RemoveUnread(name);
    BecomeOp("Reshape", {{"T", DT_FLOAT}, {"Tshape", type}}, last);
    last->set_device(device);
    Mark(layer);
  }

 private:
  // A bias or an activation.
  struct Step {
    NodeDef* node;
    // The input that is moved, and the bias as a vector if it is not one yet.
    int input;
    std::optional<Tensor> vector;
    std::string bias_name;
  };

  std::optional<Use> OnlyReader(const NodeDef& node) const {
    if (builder_.IsOutput(node.name())) return std::nullopt;
    const std::vector<Use> uses = builder_.index().Uses(node.name());
    if (uses.size() != 1 || uses[0].port != 0 ||
        excluded_ops_.contains(uses[0].node->op()) ||
        excluded_nodes_.contains(uses[0].node->name()) ||
        TypeAttribute(*uses[0].node, "T", DT_FLOAT) != DT_FLOAT) {
      return std::nullopt;
    }
    return uses[0];
  }

  std::vector<Step> StepsAfter(const NodeDef& reshape,
                               const FloatLayer& layer) const {
    std::vector<Step> steps;
    const NodeDef* at = &reshape;
    std::optional<Use> use = OnlyReader(*at);
    if (use) {
      if (auto bias = BiasAt(reshape, *use, layer.weights.dim_size(1))) {
        steps.push_back(*std::move(bias));
        at = use->node;
        use = OnlyReader(*at);
      }
    }
    if (use && DataInputs(*use->node) == 1 &&
        (use->node->op() == "Relu" || use->node->op() == "Relu6")) {
      steps.push_back({use->node, 0, std::nullopt, ""});
    }
    return steps;
  }

  // Returns the step if `use` adds a constant that has a number for each of the
  // `columns` of the matrix that was reshaped.
  std::optional<Step> BiasAt(const NodeDef& reshape, const Use& use,
                             int64_t columns) const {
    const GraphIndex& index = builder_.index();
    const NodeDef& node = *use.node;
    const bool is_add = node.op() == "Add" || node.op() == "AddV2";
    const bool is_bias_add =
        node.op() == "BiasAdd" && use.input == 0 &&
        StringAttribute(node, "data_format", "NHWC") == "NHWC";
    if ((!is_add && !is_bias_add) || DataInputs(node) != 2) return std::nullopt;
    const NodeOutput bias = TensorSource(index, node, 1 - use.input);
    if (bias.node == nullptr || bias.node->op() != "Const") return std::nullopt;
    const absl::StatusOr<Tensor> value = ConstValue(*bias.node);
    if (!value.ok() || value->dtype() != DT_FLOAT || value->dims() < 1 ||
        value->NumElements() != columns) {
      return std::nullopt;
    }
    Step step = {use.node, use.input, std::nullopt, bias.node->name()};
    // BiasAdd takes nothing but a bias for the last dimension.
    if (is_bias_add && value->dims() == 1) return step;
    const std::vector<int64_t> known =
        IntegersAtEndOf(index, TensorSource(index, reshape, 1)).values;
    const auto& sizes = value->shape().dim_sizes();
    if (known.size() < sizes.size() ||
        !std::equal(sizes.rbegin(), sizes.rend(), known.rbegin())) {
      return std::nullopt;
    }
    if (value->dims() == 1) return step;
    Tensor vector(DT_FLOAT, {columns});
    std::copy_n(value->flat<float>().data(), columns,
                vector.flat<float>().data());
    step.vector = std::move(vector);
    return step;
  }

  // Adds the steps behind the MatMul, and returns the last one's name.
  std::string AddSteps(const FloatLayer& layer,
                       const std::vector<Step>& steps) {
    std::string rows = layer.matmul->name();
    for (const Step& step : steps) {
      NodeDef node = *step.node;
      node.set_name(step.node->name() + "/rows");
      node.mutable_attr()->erase("_output_shapes");
      node.set_input(step.input, rows);
      if (step.vector) {
        node.set_input(
            1 - step.input,
            builder_.AddConst(step.bias_name + "/vector", *step.vector));
      }
      rows = builder_.Add(std::move(node));
    }
    return rows;
  }

  GraphBuilder builder_;
  const absl::flat_hash_set<std::string> excluded_ops_;
  const absl::flat_hash_set<std::string> excluded_nodes_;
};

// Returns whether the node is a Transpose that leaves every dimension in its
// place.
bool KeepsOrder(const GraphIndex& index, const NodeDef& node) {
  if (node.op() != "Transpose") return false;
  const KnownIntegers order =
      IntegersAtEndOf(index, TensorSource(index, node, 1));
  for (size_t i = 0; i < order.values.size(); ++i) {
    if (order.values[i] != static_cast<int64_t>(i)) return false;
  }
  return order.all;
}

// Returns the tensor that `tensor` has the values of, in the same order, behind
// all nodes that change nothing but the shape.
std::string SameValues(const GraphIndex& index, const std::string& tensor) {
  static const auto* keepers = new absl::flat_hash_set<std::string>{
      "ExpandDims", "Identity", "Reshape", "Squeeze"};
  TensorName name = ParseTensorName(tensor);
  absl::flat_hash_set<std::string_view> seen;
  const NodeDef* node = index.Find(name.node);
  while (node != nullptr && name.port == 0 && !node->input().empty() &&
         (keepers->contains(node->op()) || KeepsOrder(index, *node)) &&
         seen.insert(node->name()).second) {
    name = ParseTensorName(node->input(0));
    node = index.Find(name.node);
  }
  return absl::StrCat(name.node, ":", name.port);
}

// Returns whether a node may be removed along with its last reader.
bool OnlyShapes(const NodeDef& node) {
  static const auto* ops = new absl::flat_hash_set<std::string>{
      "ExpandDims", "Shape", "Squeeze", "StridedSlice", "Transpose"};
  return IsConstantOrPassesOn(node) || ops->contains(node.op());
}

// Returns whether a Reshape to this shape is sure to give that very shape: no
// dimension is left for it to find.
bool IsComplete(const GraphIndex& index, NodeOutput shape, int depth = 64) {
  if (shape.node == nullptr || depth == 0) return false;
  const NodeDef& node = *shape.node;
  const int inputs = DataInputs(node);
  if (node.op() == "Shape") return true;
  if (node.op() == "StridedSlice" || node.op() == "GatherV2") {
    return IsComplete(index, TensorSource(index, node, 0), depth - 1);
  }
  if (node.op() == "ConcatV2" || node.op() == "Pack") {
    for (int i = 0; i < inputs - (node.op() == "ConcatV2" ? 1 : 0); ++i) {
      if (!IsComplete(index, TensorSource(index, node, i), depth - 1)) {
        return false;
      }
    }
    return inputs > 0;
  }
  const KnownIntegers known = IntegersAtEndOf(index, shape);
  return known.all &&
         absl::c_all_of(known.values, [](int64_t size) { return size >= 0; });
}

// Takes the shape of the layer's reshaped output from where the Reshape has it,
// so that no float values need to be made only for it.
void ForwardShapes(const FloatLayer& layer, GraphBuilder* builder) {
  GraphIndex& index = builder->index();
  for (const Use& reshape : index.Uses(layer.last()->name())) {
    const NodeDef& node = *reshape.node;
    if (node.op() != "Reshape" || reshape.input != 0 || DataInputs(node) != 2 ||
        !IsComplete(index, TensorSource(index, node, 1))) {
      continue;
    }
    const std::string shape = node.input(1);
    const tensorflow::DataType type = TypeAttribute(node, "Tshape", DT_INT32);
    for (const Use& use : index.Uses(node.name())) {
      if (use.node->op() != "Shape" || use.port != 0 ||
          TypeAttribute(*use.node, "out_type", DT_INT32) != type) {
        continue;
      }
      const std::string name = use.node->name();
      index.RedirectUses({name, 0}, ParseTensorName(shape));
      builder->RemoveUnread(name);
    }
  }
}

}  // namespace

absl::Status MoveBiases(const FloatLayerOptions& options, GraphDef* graph) {
  REQUANT_ASSIGN_OR_RETURN(GraphIndex index, GraphIndex::Create(graph));
  // Finding layers copies all weights.
  if (absl::c_none_of(graph->node(), [&](const NodeDef& node) {
        const NodeDef* source =
            node.op() == "Reshape" ? index.Producer(node, 0) : nullptr;
        return source != nullptr && source->op() == "MatMul";
      })) {
    return absl::OkStatus();
  }
  const FloatLayers found = FindFloatLayers(index, options);
  BiasMover mover(&index, options);
  for (const FloatLayer& layer : found.layers) mover.Move(layer);
  index.Commit();
  return absl::OkStatus();
}

absl::Status JoinLayers(const FloatLayerOptions& options, GraphDef* graph) {
  if (absl::c_none_of(graph->node(), [](const NodeDef& node) {
        return node.attr().contains(kExposedAttribute);
      })) {
    return absl::OkStatus();
  }
  REQUANT_ASSIGN_OR_RETURN(GraphIndex index, GraphIndex::Create(graph));
  GraphBuilder builder(&index, options.outputs, OnlyShapes);
  const FloatLayers found = FindFloatLayers(index, options);
  std::map<std::string, const FloatLayer*> givers;
  for (const FloatLayer& layer : found.layers) givers[layer.output] = &layer;
  for (const FloatLayer& layer : found.layers) {
    const std::string source = SameValues(index, layer.input);
    const auto giver = givers.find(source);
    if (source == layer.input || giver == givers.end()) continue;
    const FloatLayer& other = *giver->second;
    if (other.weights.dim_size(1) != layer.weights.dim_size(0) ||
        (!IsMarked(layer) && !IsMarked(other))) {
      continue;
    }
    const TensorName name = ParseTensorName(source);
    std::vector<std::string> inputs(layer.matmul->input().begin(),
                                    layer.matmul->input().end());
    inputs[0] = FormatTensorName(name.node, name.port);
    builder.ReplaceInputs(layer.matmul, std::move(inputs));
    ForwardShapes(other, &builder);
    Mark(layer);
  }
  index.Commit();
  return absl::OkStatus();
}

}  // namespace requant
