#include "transforms/preparation/fold_weights.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/const_node.h"
#include "graph/constant_store.h"
#include "graph/op_catalog.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.pb.h"
#include "transforms/layers/graph_builder.h"
#include "transforms/layers/plain_product.h"
#include "transforms/layers/tensor_pattern.h"

namespace requant {
namespace {

using tensorflow::DT_FLOAT;
using tensorflow::GraphDef;
using tensorflow::NodeDef;

constexpr char kMostBytes[] = "1073741824";

// The nodes that compute weights are few.
constexpr size_t kMostNodes = 1000;

bool IsControlFlow(const std::string& op) {
  static const auto* ops = new absl::flat_hash_set<std::string>{
      "Enter", "Exit", "LoopCond", "Merge", "NextIteration", "Switch"};
  return ops->contains(op);
}

// Returns whether the node has the same result in every run if its inputs have.
bool IsRepeatable(const NodeDef& node, OpCatalog* ops) {
  const int inputs = DataInputs(node);
  if (inputs < node.input_size() || (inputs == 0 && node.op() != "Const") ||
      absl::StartsWith(node.op(), "Placeholder") || IsControlFlow(node.op())) {
    return false;
  }
  const OpEntry* op = ops->Find(node.op());
  return op != nullptr && op->registration != nullptr &&
         !op->definition->is_stateful();
}

// Returns `node` and all that it depends on, in the order found, if that is
// only constants and what is computed from them; else nothing.
std::vector<const NodeDef*> ConstantPart(const GraphIndex& index,
                                         const NodeDef& node, OpCatalog* ops) {
  std::vector<const NodeDef*> part = {&node};
  absl::flat_hash_set<const NodeDef*> seen = {&node};
  for (size_t next = 0; next < part.size(); ++next) {
    if (part.size() > kMostNodes || !IsRepeatable(*part[next], ops)) return {};
    for (int i = 0; i < part[next]->input_size(); ++i) {
      const NodeDef* input = index.Producer(*part[next], i);
      if (input == nullptr) return {};
      if (seen.insert(input).second) part.push_back(input);
    }
  }
  return part;
}

// The part of a graph that makes the factors, in which a sum keeps each of them
// in use: with a placeholder in it, the sum itself cannot be folded.
class FactorGraph {
 public:
  FactorGraph(const GraphIndex& index, const GraphDef& graph)
      : index_(index), ops_(graph.library()) {
    *graph_.mutable_versions() = graph.versions();
    input_ = index.FreeName("requant_fold/input");
    NodeDef* input = graph_.add_node();
    *input = MakeNode(input_, "Placeholder", {}, {{"dtype", DT_FLOAT}});
  }

  void Add(const std::string& tensor) {
    if (sums_.count(tensor) > 0) return;
    const NodeDef& maker = *index_.Find(ParseTensorName(tensor).node);
    for (const NodeDef* node : ConstantPart(index_, maker, &ops_)) {
      if (!added_.insert(node).second) continue;
      NodeDef* copy = graph_.add_node();
      *copy = *node;
      // TensorFlow computes with it.
      FillIn(copy);
    }
    const std::string sum = index_.FreeName(
        absl::StrCat("requant_fold/sum", static_cast<int>(sums_.size())));
    sums_[tensor] = sum;
    *graph_.add_node() =
        MakeNode(sum, "AddV2", {tensor, input_}, {{"T", DT_FLOAT}});
  }

  // Returns the factors that TensorFlow has folded.
  absl::StatusOr<std::map<std::string, tensorflow::Tensor>> Fold(
      const RegisteredTransform& fold) {
    TransformContext context;
    context.inputs = {input_};
    for (const auto& [tensor, sum] : sums_) context.outputs.push_back(sum);
    std::map<std::string, std::vector<std::string>> parameters;
    parameters["max_constant_size_in_bytes"] = {kMostBytes};
    context.parameters = Parameters(std::move(parameters));
    REQUANT_RETURN_IF_ERROR(fold.run(context, &graph_));
    REQUANT_ASSIGN_OR_RETURN(const GraphIndex folded,
                             GraphIndex::Create(&graph_));
    std::map<std::string, tensorflow::Tensor> values;
    for (const auto& [tensor, sum] : sums_) {
      const NodeDef* node = folded.Find(sum);
      if (node == nullptr) continue;
      const NodeOutput source = TensorSource(folded, *node, 0);
      if (source.node == nullptr || source.node->op() != "Const") continue;
      REQUANT_ASSIGN_OR_RETURN(values[tensor], ConstValue(*source.node));
    }
    return values;
  }

 private:
  const GraphIndex& index_;
  OpCatalog ops_;
  GraphDef graph_;
  std::string input_;
  absl::flat_hash_set<const NodeDef*> added_;
  std::map<std::string, std::string> sums_;
};

}  // namespace

std::vector<ComputedFactor> FindComputedFactors(
    const GraphIndex& index, const FloatLayerOptions& options) {
  OpCatalog ops(index.graph().library());
  std::vector<ComputedFactor> factors;
  for (const NodeDef& node : index.graph().node()) {
    if ((node.op() != "MatMul" && !IsOtherProduct(node)) ||
        !IsFloatProduct(node) ||
        absl::c_linear_search(options.excluded_ops, node.op()) ||
        absl::c_linear_search(options.excluded_nodes, node.name())) {
      continue;
    }
    for (int i = 0; i < std::min(DataInputs(node), 2); ++i) {
      const NodeOutput source = TensorSource(index, node, i);
      if (source.node == nullptr || source.node->op() == "Const" ||
          ConstantPart(index, *source.node, &ops).empty()) {
        continue;
      }
      factors.push_back({node.name(), i,
                         absl::StrCat(source.node->name(), ":", source.port)});
    }
  }
  return factors;
}

absl::Status FoldFactors(const TransformRegistry& registry,
                         const std::vector<ComputedFactor>& factors,
                         GraphDef* graph) {
  if (factors.empty()) return absl::OkStatus();
  REQUANT_ASSIGN_OR_RETURN(const RegisteredTransform* fold,
                           registry.Find("fold_constants"));
  REQUANT_ASSIGN_OR_RETURN(GraphIndex index, GraphIndex::Create(graph));
  FactorGraph part(index, *graph);
  for (const ComputedFactor& factor : factors) part.Add(factor.tensor);
  REQUANT_ASSIGN_OR_RETURN(const auto values, part.Fold(*fold));
  std::map<std::string, std::string> names;
  for (const ComputedFactor& factor : factors) {
    const auto value = values.find(factor.tensor);
    if (value == values.end()) continue;
    std::string& name = names[factor.tensor];
    if (name.empty()) {
      name = index.FreeName(
          absl::StrCat(ParseTensorName(factor.tensor).node, "/folded"));
      REQUANT_RETURN_IF_ERROR(
          index.Add(MakeConst(name, value->second)).status());
    }
    index.SetInput(index.Find(factor.product), factor.input, name);
  }
  return absl::OkStatus();
}

}  // namespace requant
