#include "graph/op_catalog.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text/nearest_name.h"
#include "graph/tensorflow_library.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op_def_util.h"
#include "tensorflow/core/framework/types.h"

namespace requant {

using tensorflow::AttrValue;
using tensorflow::DataType;
using tensorflow::FunctionDef;
using tensorflow::FunctionDefLibrary;
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

// Returns the value of an attribute of `node`, or the op's default, or null.
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
