#include "transforms/layers/graph_builder.h"

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

// The names of the nodes that `node` reads.
std::vector<std::string> ProducersOf(const NodeDef& node) {
  std::vector<std::string> names;
  for (const std::string& input : node.input()) {
    names.emplace_back(ParseTensorName(input).node);
  }
  return names;
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

absl::Status GraphBuilder::ReplaceInputs(NodeDef* node,
                                         std::vector<std::string> inputs) {
  std::vector<std::string> old = ProducersOf(*node);
  index_->SetInputs(node, std::move(inputs));
  return RemoveUnreadFeeders(std::move(old));
}

absl::Status GraphBuilder::RemoveUnread(const std::string& name) {
  const NodeDef* node = index_->Find(name);
  if (node == nullptr || index_->HasUses(name) || IsOutput(name)) {
    return absl::OkStatus();
  }
  std::vector<std::string> feeders = ProducersOf(*node);
  REQUANT_RETURN_IF_ERROR(index_->Remove(name));
  return RemoveUnreadFeeders(std::move(feeders));
}

absl::Status GraphBuilder::RemoveUnreadFeeders(std::vector<std::string> names) {
  while (!names.empty()) {
    const std::string name = std::move(names.back());
    names.pop_back();
    const NodeDef* node = index_->Find(name);
    if (node == nullptr || !IsOnlyForItsReader(*node) ||
        index_->HasUses(name) || IsOutput(name)) {
      continue;
    }
    for (std::string& feeder : ProducersOf(*node)) {
      names.push_back(std::move(feeder));
    }
    REQUANT_RETURN_IF_ERROR(index_->Remove(name));
  }
  return absl::OkStatus();
}

}  // namespace requant
