#include "transforms/feature_columns/feature_column_rewriter.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "graph/const_node.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"

namespace requant {

using tensorflow::DataType;
using tensorflow::NodeDef;
using tensorflow::Tensor;

FeatureColumnRewriter::FeatureColumnRewriter(
    GraphIndex* index, const std::vector<std::string>& outputs)
    : index_(index) {
  for (const std::string& output : outputs) {
    outputs_.emplace(ParseTensorName(output).node);
  }
}

absl::StatusOr<std::string> FeatureColumnRewriter::AddNode(
    const std::string& name, const std::string& op,
    std::vector<std::string> inputs,
    const std::map<std::string, DataType>& types) {
  NodeDef node;
  node.set_name(index_->FreeName(name));
  node.set_op(op);
  for (std::string& input : inputs) node.add_input(std::move(input));
  for (const auto& [attribute, type] : types) {
    (*node.mutable_attr())[attribute].set_type(type);
  }
  REQUANT_ASSIGN_OR_RETURN(NodeDef * added, index_->Add(std::move(node)));
  return added->name();
}

absl::StatusOr<std::string> FeatureColumnRewriter::AddConst(
    const std::string& name, const Tensor& value) {
  REQUANT_ASSIGN_OR_RETURN(
      NodeDef * added, index_->Add(MakeConst(index_->FreeName(name), value)));
  return added->name();
}

absl::StatusOr<std::string> FeatureColumnRewriter::AddIntegers(
    const std::string& name, const std::vector<int32_t>& values) {
  Tensor tensor(tensorflow::DT_INT32,
                tensorflow::TensorShape({static_cast<int64_t>(values.size())}));
  std::copy(values.begin(), values.end(), tensor.flat<int32_t>().data());
  return AddConst(name, tensor);
}

absl::StatusOr<std::string> FeatureColumnRewriter::AddScalar(
    const std::string& name, int32_t value) {
  return AddConst(name, Tensor(value));
}

absl::StatusOr<std::string> FeatureColumnRewriter::AddReshape(
    const std::string& name, const std::string& tensor,
    const std::vector<int32_t>& shape, DataType type) {
  REQUANT_ASSIGN_OR_RETURN(std::string shape_name,
                           AddIntegers(name + "/shape", shape));
  return AddNode(name, "Reshape", {tensor, std::move(shape_name)},
                 {{"T", type}, {"Tshape", tensorflow::DT_INT32}});
}

absl::StatusOr<std::string> FeatureColumnRewriter::AddPlaceholder(
    const std::string& name, DataType type, const std::vector<int64_t>& shape) {
  NodeDef node;
  node.set_name(name);
  node.set_op("Placeholder");
  (*node.mutable_attr())["dtype"].set_type(type);
  auto* sizes = (*node.mutable_attr())["shape"].mutable_shape();
  for (int64_t size : shape) sizes->add_dim()->set_size(size);
  REQUANT_ASSIGN_OR_RETURN(NodeDef * added, index_->Add(std::move(node)));
  return added->name();
}

absl::Status FeatureColumnRewriter::Replace(const TableLookup& lookup,
                                            const std::string& tensor) {
  std::vector<std::string> names;
  for (const NodeDef* alias : lookup.aliases) names.push_back(alias->name());
  std::vector<std::string> unread;
  const TensorName to = ParseTensorName(tensor);
  for (const std::string& name : names) {
    NodeDef* alias = index_->Find(name);
    if (alias == nullptr) continue;
    index_->RedirectUses({name, 0}, to);
    index_->RedirectUses({name, kControlPort}, {to.node, kControlPort});
    if (outputs_.count(name) > 0) {
      for (const std::string& input : alias->input()) {
        unread.emplace_back(ParseTensorName(input).node);
      }
      index_->SetInputs(alias, {tensor});
      alias->set_op("Identity");
      alias->clear_attr();
      (*alias->mutable_attr())["T"].set_type(lookup.type);
    }
  }
  // The last aliases first: they read those before them.
  unread.insert(unread.begin(), names.rbegin(), names.rend());
  for (const std::string& name : unread) {
    REQUANT_RETURN_IF_ERROR(RemoveUnread(name));
  }
  return absl::OkStatus();
}

absl::Status FeatureColumnRewriter::RemoveUnread(const std::string& node) {
  std::vector<std::string> candidates = {node};
  while (!candidates.empty()) {
    const std::string name = std::move(candidates.back());
    candidates.pop_back();
    const NodeDef* found = index_->Find(name);
    if (found == nullptr || index_->HasUses(name) || outputs_.count(name) > 0) {
      continue;
    }
    for (const std::string& input : found->input()) {
      candidates.emplace_back(ParseTensorName(input).node);
    }
    REQUANT_RETURN_IF_ERROR(index_->Remove(name));
  }
  return absl::OkStatus();
}

}  // namespace requant
