#include "graph/graph_body.h"

#include <cstddef>
#include <limits>

#include "absl/strings/numbers.h"
#include "graph/graph_index.h"

namespace requant {

using tensorflow::FunctionDef;
using tensorflow::GraphDef;
using tensorflow::NodeDef;

namespace {

// Returns the number of tensors in the outputs before `output`; -1: not known.
int64_t TensorsBefore(int output, const NodeDef& node, const OpEntry& op) {
  if (op.one_tensor_per_output) return output;
  int64_t count = 0;
  for (int i = 0; i < output; ++i) {
    const auto types =
        TypesOfArgument(op.definition->output_arg(i), node, *op.definition);
    if (!types.has_value()) return -1;
    count += types->count;
  }
  return count;
}

}  // namespace

GraphBody::GraphBody(const GraphDef& graph, OpCatalog* catalog)
    : nodes_(&graph.node()), catalog_(catalog) {
  IndexNodes();
}

GraphBody::GraphBody(const FunctionDef& function, OpCatalog* catalog)
    : nodes_(&function.node_def()), function_(&function), catalog_(catalog) {
  const auto& arguments = function.signature().input_arg();
  for (int32_t i = 0; i < arguments.size(); ++i) {
    arguments_.emplace(arguments[i].name(), i);
  }
  IndexNodes();
}

void GraphBody::IndexNodes() {
  node_ids_.reserve(nodes_->size());
  for (int32_t i = 0; i < nodes_->size(); ++i) {
    node_ids_.emplace((*nodes_)[i].name(), i);
  }
}

std::string_view GraphBody::name() const {
  return function_ == nullptr ? std::string_view()
                              : std::string_view(function_->signature().name());
}

BodyTensor GraphBody::Find(std::string_view input) const {
  if (input.empty() || input[0] == '^') return {};
  if (function_ == nullptr) {
    const TensorName name = ParseTensorName(input);
    const auto node = node_ids_.find(name.node);
    if (node == node_ids_.end()) return {};
    return {BodyTensor::kNode, node->second, name.port};
  }
  const size_t colon = input.find(':');
  const std::string_view head = input.substr(0, colon);
  const std::string_view rest =
      colon == std::string_view::npos ? "" : input.substr(colon + 1);
  if (const auto found = arguments_.find(head); found != arguments_.end()) {
    const auto& argument = function_->signature().input_arg(found->second);
    if (IsList(argument) || (!rest.empty() && rest != "0")) return {};
    return {BodyTensor::kArgument, found->second, 0};
  }
  const auto node = node_ids_.find(head);
  return node == node_ids_.end() ? BodyTensor()
                                 : FindOutput(node->second, rest);
}

BodyTensor GraphBody::FindOutput(int32_t node, std::string_view output) const {
  const NodeDef& definition = (*nodes_)[node];
  const OpEntry* op = catalog_->Find(definition.op());
  if (op == nullptr) return {};
  const size_t colon = output.find(':');
  const auto argument = op->output_index.find(output.substr(0, colon));
  if (argument == op->output_index.end()) return {};
  int64_t number = 0;
  if (colon != std::string_view::npos &&
      (!absl::SimpleAtoi(output.substr(colon + 1), &number) || number < 0)) {
    return {};
  }
  const auto& declared = op->definition->output_arg(argument->second);
  if (IsList(declared)) {
    const auto types = TypesOfArgument(declared, definition, *op->definition);
    if (!types.has_value() || number >= types->count) return {};
    // Without a number it stands for all of the list.
    if (colon == std::string_view::npos && types->count != 1) return {};
  } else if (number != 0) {
    return {};
  }
  const int64_t before = TensorsBefore(argument->second, definition, *op);
  if (before < 0 || before + number > std::numeric_limits<int>::max()) {
    return {};
  }
  return {BodyTensor::kNode, node, static_cast<int>(before + number)};
}

const std::string& GraphBody::NameOf(const BodyTensor& tensor) const {
  return tensor.kind == BodyTensor::kArgument
             ? function_->signature().input_arg(tensor.index).name()
             : (*nodes_)[tensor.index].name();
}

}  // namespace requant
