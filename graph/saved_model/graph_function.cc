#include "graph/saved_model/graph_function.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/const_node.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.pb.h"

namespace requant {
namespace {

using tensorflow::FunctionDef;
using tensorflow::NodeDef;
using tensorflow::OpDef;

absl::StatusOr<tensorflow::DataType> TypeOf(const NodeDef& node, int port) {
  REQUANT_ASSIGN_OR_RETURN(const std::vector<tensorflow::DataType> types,
                           OutputTypes(node));
  if (port < 0 || port >= static_cast<int>(types.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("node ", node.name(), " has no output ", port));
  }
  return types[port];
}

}  // namespace

GraphFunctionMaker::GraphFunctionMaker(
    const tensorflow::GraphDef& graph,
    std::function<bool(const NodeDef&)> captures)
    : graph_(graph), captures_(std::move(captures)), catalog_(graph.library()) {
  for (const NodeDef& node : graph.node()) nodes_[node.name()] = &node;
}

absl::StatusOr<const NodeDef*> GraphFunctionMaker::Find(
    std::string_view node) const {
  const auto found = nodes_.find(node);
  if (found != nodes_.end()) return found->second;
  return absl::NotFoundError(absl::StrCat("there is no node ", node));
}

absl::Status GraphFunctionMaker::AddArgument(const NodeDef& node,
                                             const char* prefix, Body* body) {
  REQUANT_ASSIGN_OR_RETURN(const tensorflow::DataType type, TypeOf(node, 0));
  OpDef* signature = body->function.definition.mutable_signature();
  std::string own = absl::StrCat(prefix, signature->input_arg_size());
  // Arguments and nodes share their names.
  while (nodes_.contains(own)) own += "_";
  OpDef::ArgDef* argument = signature->add_input_arg();
  argument->set_name(own);
  argument->set_type(type);
  if (node.op() == "VarHandleOp") {
    auto* handle = argument->add_handle_data();
    handle->set_dtype(node.attr().at("dtype").type());
    *handle->mutable_shape() = node.attr().at("shape").shape();
  }
  body->arguments[node.name()] = std::move(own);
  return absl::OkStatus();
}

absl::Status GraphFunctionMaker::Collect(std::vector<std::string> roots,
                                         Body* body) {
  while (!roots.empty()) {
    const TensorName name = ParseTensorName(roots.back());
    REQUANT_ASSIGN_OR_RETURN(const NodeDef* node, Find(name.node));
    const bool control = name.control();
    roots.pop_back();
    if (body->arguments.contains(node->name())) continue;
    if (captures_(*node)) {
      // Waiting for what is there when the function starts means nothing.
      if (control) continue;
      REQUANT_RETURN_IF_ERROR(AddArgument(*node, "captured_", body));
      body->function.captured.push_back(node->name());
      continue;
    }
    if (!body->nodes.insert(node->name()).second) continue;
    roots.insert(roots.end(), node->input().begin(), node->input().end());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> GraphFunctionMaker::NameInBody(
    std::string_view tensor, const Body& body) {
  const TensorName name = ParseTensorName(tensor);
  const auto argument = body.arguments.find(name.node);
  if (argument != body.arguments.end()) return argument->second;
  REQUANT_ASSIGN_OR_RETURN(const NodeDef* node, Find(name.node));
  const OpEntry* op = catalog_.Find(node->op());
  if (op == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("node ", node->name(), " has an unknown op"));
  }
  int64_t port = name.port;
  for (const OpDef::ArgDef& output : op->definition->output_arg()) {
    int64_t count = 1;
    if (IsList(output)) {
      const auto types = TypesOfArgument(output, *node, *op->definition);
      if (!types.has_value()) break;
      count = types->count;
    }
    if (port < count) {
      return absl::StrCat(node->name(), ":", output.name(), ":", port);
    }
    port -= count;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("node ", node->name(), " has no output ", name.port));
}

absl::Status GraphFunctionMaker::CopyNodes(Body* body) {
  FunctionDef& function = body->function.definition;
  for (const NodeDef& node : graph_.node()) {
    if (!body->nodes.contains(node.name())) continue;
    NodeDef* copy = function.add_node_def();
    *copy = node;
    copy->clear_input();
    for (const std::string& input : node.input()) {
      if (ParseTensorName(input).control()) {
        if (body->nodes.contains(NodeOf(input))) copy->add_input(input);
        continue;
      }
      REQUANT_ASSIGN_OR_RETURN(*copy->add_input(), NameInBody(input, *body));
    }
    const OpEntry* op = catalog_.Find(node.op());
    if (op != nullptr && op->definition->is_stateful()) {
      function.mutable_signature()->set_is_stateful(true);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<GraphFunction> GraphFunctionMaker::Make(const GraphPart& part) {
  Body body;
  FunctionDef& function = body.function.definition;
  OpDef* signature = function.mutable_signature();
  signature->set_name(part.name);
  for (const std::string& input : part.inputs) {
    REQUANT_ASSIGN_OR_RETURN(const NodeDef* node, Find(NodeOf(input)));
    REQUANT_RETURN_IF_ERROR(AddArgument(*node, "input_", &body));
  }
  std::vector<std::string> roots = part.effects;
  roots.insert(roots.end(), part.outputs.begin(), part.outputs.end());
  REQUANT_RETURN_IF_ERROR(Collect(std::move(roots), &body));
  REQUANT_RETURN_IF_ERROR(CopyNodes(&body));
  const auto add_result = [&](tensorflow::DataType type, std::string value) {
    OpDef::ArgDef* result = signature->add_output_arg();
    result->set_name(absl::StrCat("output_", signature->output_arg_size() - 1));
    result->set_type(type);
    (*function.mutable_ret())[result->name()] = std::move(value);
  };
  for (const std::string& output : part.outputs) {
    const TensorName name = ParseTensorName(output);
    REQUANT_ASSIGN_OR_RETURN(const NodeDef* node, Find(name.node));
    REQUANT_ASSIGN_OR_RETURN(const tensorflow::DataType type,
                             TypeOf(*node, name.port));
    REQUANT_ASSIGN_OR_RETURN(std::string value, NameInBody(output, body));
    add_result(type, std::move(value));
  }
  if (!part.effects.empty()) {
    NodeDef done = MakeConst("done", tensorflow::Tensor(1));
    while (nodes_.contains(done.name())) done.mutable_name()->append("_");
    for (const std::string& effect : part.effects) {
      done.add_input(absl::StrCat("^", effect));
      // They must run even if nobody uses the result.
      signature->add_control_output(effect);
      (*function.mutable_control_ret())[effect] = effect;
    }
    add_result(tensorflow::DT_INT32, done.name() + ":output:0");
    *function.add_node_def() = std::move(done);
  }
  return std::move(body.function);
}

}  // namespace requant
