#include "transforms/layers/graph_builder.h"

#include "graph/const_node.h"
#include "tensorflow/core/framework/attr_value.pb.h"

namespace requant {

using tensorflow::NodeDef;

bool IsConstantOrPassesOn(const NodeDef& node) {
  static const auto* ops = new absl::flat_hash_set<std::string>{
      "Const", "Identity", "ConcatV2", "Concat", "Reshape"};
  return ops->contains(node.op());
}

std::vector<std::string> ProducersOf(const NodeDef& node) {
  std::vector<std::string> names;
  for (const std::string& input : node.input()) {
    names.emplace_back(ParseTensorName(input).node);
  }
  return names;
}

void SetTypes(const AttributeTypes& types, NodeDef* node) {
  for (const auto& [attribute, type] : types) {
    (*node->mutable_attr())[attribute].set_type(type);
  }
}

void BecomeOp(const std::string& op, const AttributeTypes& types,
              NodeDef* node) {
  node->set_op(op);
  node->clear_attr();
  SetTypes(types, node);
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
                           const std::vector<std::string>& outputs,
                           bool (*may_go)(const NodeDef&))
    : index_(index), may_go_(may_go) {
  for (const std::string& output : outputs) {
    outputs_.insert(std::string(ParseTensorName(output).node));
  }
}

std::string GraphBuilder::Add(NodeDef node) {
  node.set_name(index_->FreeName(node.name()));
  return (*index_->Add(std::move(node)))->name();
}

std::string GraphBuilder::AddNode(const std::string& name,
                                  const std::string& op,
                                  const std::vector<std::string>& inputs,
                                  const AttributeTypes& types) {
  return Add(MakeNode(name, op, inputs, types));
}

std::string GraphBuilder::AddConst(const std::string& name,
                                   const tensorflow::Tensor& value) {
  return Add(MakeConst(name, value));
}

std::string GraphBuilder::AddScalar(const std::string& name, float value) {
  return Add(MakeScalarConst(name, value));
}

void GraphBuilder::ReplaceInputs(NodeDef* node,
                                 std::vector<std::string> inputs) {
  std::vector<std::string> old = ProducersOf(*node);
  index_->SetInputs(node, std::move(inputs));
  RemoveUnreadFeeders(std::move(old));
}

void GraphBuilder::RemoveUnread(const std::string& name) {
  const NodeDef* node = index_->Find(name);
  if (node == nullptr || index_->HasUses(name) || IsOutput(name)) {
    return;
  }
  std::vector<std::string> feeders = ProducersOf(*node);
  index_->Remove(name).IgnoreError();
  RemoveUnreadFeeders(std::move(feeders));
}

void GraphBuilder::RemoveUnreadFeeders(std::vector<std::string> names) {
  while (!names.empty()) {
    const std::string name = std::move(names.back());
    names.pop_back();
    const NodeDef* node = index_->Find(name);
    if (node == nullptr || !may_go_(*node) || index_->HasUses(name) ||
        IsOutput(name)) {
      continue;
    }
    for (std::string& feeder : ProducersOf(*node)) {
      names.push_back(std::move(feeder));
    }
    index_->Remove(name).IgnoreError();
  }
}

}  // namespace requant
