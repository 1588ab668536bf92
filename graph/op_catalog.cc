#include "graph/op_catalog.h"

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/text/nearest_name.h"
#include "graph/graph_index.h"
#include "graph/tensorflow_library.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op_def_util.h"
#include "tensorflow/core/framework/types.h"

namespace requant {

using tensorflow::AttrValue;
using tensorflow::DataType;
using tensorflow::FunctionDef;
using tensorflow::FunctionDefLibrary;
using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::OpDef;
using tensorflow::OpRegistrationData;
using tensorflow::OpRegistry;

namespace {

bool IsUsableType(DataType type) {
  return tensorflow::DataType_IsValid(type) && type != tensorflow::DT_INVALID &&
         !tensorflow::IsRefType(type);
}

std::unique_ptr<OpEntry> MakeEntry(const OpDef& definition,
                                   const OpRegistrationData* registration) {
  const auto& outputs = definition.output_arg();
  auto entry = std::make_unique<OpEntry>();
  entry->definition = &definition;
  entry->registration = registration;
  entry->one_tensor_per_output =
      std::none_of(outputs.begin(), outputs.end(), IsList);
  for (int i = 0; i < outputs.size(); ++i) {
    entry->output_index.emplace(outputs[i].name(), i);
  }
  return entry;
}

// Returns an attribute of `node`, or the op's default for it, or null.
const AttrValue* AttributeOrDefault(const NodeDef& node,
                                    const OpDef& definition,
                                    const std::string& name) {
  const auto found = node.attr().find(name);
  if (found != node.attr().end()) return &found->second;
  const OpDef::AttrDef* declared = tensorflow::FindAttr(name, definition);
  return declared != nullptr && declared->has_default_value()
             ? &declared->default_value()
             : nullptr;
}

// Returns the number of tensors in the outputs before `output`, or -1.
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

bool IsTooVariable(const OpDef& definition) {
  const auto lists = [](const auto& arguments) {
    return std::count_if(arguments.begin(), arguments.end(), IsList);
  };
  return definition.attr_size() > kMaxVariableParts ||
         lists(definition.input_arg()) > kMaxVariableParts ||
         (definition.output_arg_size() > kMaxVariableParts &&
          lists(definition.output_arg()) > 0);
}

OpCatalog::OpCatalog(const FunctionDefLibrary& library) {
  entries_.reserve(library.function_size() + 256);
  for (const FunctionDef& function : library.function()) {
    const OpDef& signature = function.signature();
    entries_.emplace(signature.name(), IsTooVariable(signature)
                                           ? nullptr
                                           : MakeEntry(signature, nullptr));
  }
}

const OpEntry* OpCatalog::Find(const std::string& op) {
  auto found = entries_.find(op);
  if (found == entries_.end()) {
    const OpRegistrationData* registration = OpRegistry::Global()->LookUp(op);
    found =
        entries_
            .emplace(op, registration == nullptr
                             ? nullptr
                             : MakeEntry(registration->op_def, registration))
            .first;
  }
  return found->second.get();
}

std::string OpCatalog::DidYouMeanOp(std::string_view op) {
  if (names_.empty()) {
    tensorflow::OpList ops;
    OpRegistry::Global()->Export(false, &ops);
    for (const OpDef& definition : ops.op()) {
      names_.push_back(definition.name());
    }
  }
  return DidYouMean(op, names_);
}

DataType ArgumentTypes::At(int64_t index) const {
  const DataType plain =
      list == nullptr ? type : list->type(static_cast<int>(index));
  if (!IsUsableType(plain)) return tensorflow::DT_INVALID;
  return is_ref ? tensorflow::MakeRefType(plain) : plain;
}

std::optional<ArgumentTypes> TypesOfArgument(const OpDef::ArgDef& argument,
                                             const NodeDef& node,
                                             const OpDef& definition) {
  ArgumentTypes types;
  types.is_ref = argument.is_ref();
  if (!argument.type_list_attr().empty()) {
    const AttrValue* value =
        AttributeOrDefault(node, definition, argument.type_list_attr());
    if (value == nullptr || !value->has_list()) return std::nullopt;
    types.list = &value->list();
    types.count = value->list().type_size();
    return types;
  }
  types.count = 1;
  if (!argument.number_attr().empty()) {
    const AttrValue* value =
        AttributeOrDefault(node, definition, argument.number_attr());
    if (value == nullptr || value->value_case() != AttrValue::kI ||
        value->i() < 0 || value->i() > INT32_MAX) {
      return std::nullopt;
    }
    types.count = value->i();
  }
  types.type = argument.type();
  if (!argument.type_attr().empty()) {
    const AttrValue* value =
        AttributeOrDefault(node, definition, argument.type_attr());
    if (value == nullptr || value->value_case() != AttrValue::kType) {
      return std::nullopt;
    }
    types.type = value->type();
  }
  if (!IsUsableType(types.type)) return std::nullopt;
  return types;
}

std::optional<int64_t> CountTensors(
    const google::protobuf::RepeatedPtrField<OpDef::ArgDef>& arguments,
    const NodeDef& node, const OpDef& definition) {
  int64_t count = 0;
  for (const OpDef::ArgDef& argument : arguments) {
    const auto types = TypesOfArgument(argument, node, definition);
    if (!types.has_value()) return std::nullopt;
    count += types->count;
  }
  return count;
}

Output OutputAt(const NodeDef& node, const OpEntry& op, int port) {
  const OpDef& definition = *op.definition;
  int64_t rest = port;
  int first = 0;
  if (op.one_tensor_per_output) {
    if (port >= definition.output_arg_size()) return {Output::kOutOfRange};
    first = port;
    rest = 0;
  }
  for (int i = first; i < definition.output_arg_size(); ++i) {
    const auto types =
        TypesOfArgument(definition.output_arg(i), node, definition);
    if (!types.has_value()) return {Output::kUnknown};
    if (rest < types->count) {
      const DataType type = types->At(rest);
      return {
          type == tensorflow::DT_INVALID ? Output::kUnknown : Output::kKnown,
          type};
    }
    rest -= types->count;
  }
  return {Output::kOutOfRange};
}

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
  const BodyName name = Parse(input);
  if (name.kind == BodyTensor::kNode) return FindOutput(name);
  if (name.kind == BodyTensor::kUnknown || name.number > 0 ||
      IsList(function_->signature().input_arg(name.index))) {
    return {};
  }
  return {BodyTensor::kArgument, name.index, 0};
}

BodyName GraphBody::Parse(std::string_view input) const {
  BodyName name;
  name.control = absl::ConsumePrefix(&input, "^");
  size_t colon = name.control ? std::string_view::npos : input.find(':');
  const std::string_view head = input.substr(0, colon);
  const std::string_view rest =
      colon == std::string_view::npos ? "" : input.substr(colon + 1);
  std::string_view number = rest;
  bool numbered = !rest.empty();
  if (const auto found = arguments_.find(head); found != arguments_.end()) {
    name.kind = BodyTensor::kArgument;
    name.index = found->second;
  } else if (const auto node = node_ids_.find(head); node != node_ids_.end()) {
    name.kind = BodyTensor::kNode;
    name.index = node->second;
    if (name.control) return name;
    name.op = catalog_->Find((*nodes_)[name.index].op());
    if (name.op == nullptr) return name;
    colon = rest.find(':');
    const auto found = name.op->output_index.find(rest.substr(0, colon));
    if (found == name.op->output_index.end()) return {};
    name.output = found->second;
    numbered = colon != std::string_view::npos;
    if (numbered) number = rest.substr(colon + 1);
  }
  if (numbered &&
      (!absl::SimpleAtoi(number, &name.number) || name.number < 0)) {
    return {};
  }
  return name;
}

BodyTensor GraphBody::FindOutput(const BodyName& name) const {
  if (name.op == nullptr) return {};
  const NodeDef& node = (*nodes_)[name.index];
  const OpDef& definition = *name.op->definition;
  const auto& declared = definition.output_arg(name.output);
  const int64_t number = std::max<int64_t>(name.number, 0);
  if (IsList(declared)) {
    const auto types = TypesOfArgument(declared, node, definition);
    if (!types.has_value() || number >= types->count) return {};
    // Without a number the name stands for the whole list.
    if (name.number < 0 && types->count != 1) return {};
  } else if (number != 0) {
    return {};
  }
  const int64_t before = TensorsBefore(name.output, node, *name.op);
  if (before < 0 || before + number > std::numeric_limits<int>::max()) {
    return {};
  }
  return {BodyTensor::kNode, name.index, static_cast<int>(before + number)};
}

const std::string& GraphBody::NameOf(const BodyTensor& tensor) const {
  return tensor.kind == BodyTensor::kArgument
             ? function_->signature().input_arg(tensor.index).name()
             : (*nodes_)[tensor.index].name();
}

absl::StatusOr<std::vector<DataType>> OutputTypes(const NodeDef& node) {
  REQUANT_RETURN_IF_ERROR(LoadTensorFlow());
  const OpDef* op = nullptr;
  if (!OpRegistry::Global()->LookUpOpDef(node.op(), &op).ok()) {
    return absl::NotFoundError(
        absl::StrCat("node \"", node.name(), "\" has the op \"", node.op(),
                     "\", which TensorFlow does not know"));
  }
  NodeDef complete = node;
  tensorflow::AddDefaultsToNodeDef(*op, &complete);
  tensorflow::DataTypeVector types;
  const absl::Status status =
      tensorflow::OutputTypesForNode(complete, *op, &types);
  if (!status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "node \"", node.name(), "\" (", node.op(), "): ", status.message()));
  }
  return std::vector<DataType>(types.begin(), types.end());
}

}  // namespace requant
