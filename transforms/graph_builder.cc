#include "transforms/graph_builder.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "graph/const_node.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace requant {
namespace {

using tensorflow::NodeDef;

// What may be removed along with its only reader.
bool IsOnlyForItsReader(const NodeDef& node) {
  static const auto* ops = new absl::flat_hash_set<std::string>{
      "Const", "Identity", "ConcatV2", "Concat", "Reshape"};
  return ops->contains(node.op());
}

}  // namespace

void SetTypes(const AttributeTypes& types, NodeDef* node) {
  for (const auto& [attribute, type] : types) {
    (*node->mutable_attr())[attribute].set_type(type);
  }
}

NodeDef MakeNode(const std::string& name, const std::string& op,
                 const std::vector<std::string>& inputs,
                 const AttributeTypes& types) {
  NodeDef node;
  node.set_name(name);
  node.set_op(op);
  for (const std::string& input : inputs) node.add_input(input);
  SetTypes(types, &node);
  return node;
}

GraphBuilder::GraphBuilder(GraphIndex* index,
                           const std::vector<std::string>& outputs)
    : index_(index) {
  for (const std::string& output : outputs) {
    outputs_.insert(std::string(ParseTensorName(output).node));
  }
}

absl::StatusOr<std::string> GraphBuilder::Add(NodeDef node) {
  node.set_name(index_->FreeName(node.name()));
  REQUANT_ASSIGN_OR_RETURN(const NodeDef* added, index_->Add(std::move(node)));
  return added->name();
}

absl::StatusOr<std::string> GraphBuilder::AddConst(
    const std::string& name, const tensorflow::Tensor& value) {
  return Add(MakeConst(name, value));
}

absl::StatusOr<std::string> GraphBuilder::AddScalar(const std::string& name,
                                                    float value) {
  return Add(MakeScalarConst(name, value));
}

absl::Status GraphBuilder::RemoveUnread(const std::string& name) {
  std::vector<std::string> open = {name};
  bool first = true;
  while (!open.empty()) {
    const std::string current = std::move(open.back());
    open.pop_back();
    const NodeDef* node = index_->Find(current);
    const bool may_go = node != nullptr && (first || IsOnlyForItsReader(*node));
    first = false;
    if (!may_go || index_->HasUses(current) || IsOutput(current)) continue;
    for (const std::string& input : node->input()) {
      open.emplace_back(ParseTensorName(input).node);
    }
    REQUANT_RETURN_IF_ERROR(index_->Remove(current));
  }
  return absl::OkStatus();
}

}  // namespace requant
