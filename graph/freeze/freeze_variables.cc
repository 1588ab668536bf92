#include "graph/freeze/freeze_variables.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "graph/const_node.h"
#include "graph/freeze/needed_nodes.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"

namespace requant {

using tensorflow::NodeDef;
using tensorflow::PartialTensorShape;
using tensorflow::Tensor;
using tensorflow::TensorShape;

namespace {

// Returns the variable's name; several nodes can stand for one variable.
std::string VariableName(const NodeDef& node) {
  const auto name = node.attr().find("shared_name");
  return name == node.attr().end() || name->second.s().empty()
             ? node.name()
             : name->second.s();
}

// Returns element `port` of a constant vector of strings.
absl::StatusOr<std::string> StringAt(const NodeDef* node, int port) {
  if (node == nullptr) return absl::NotFoundError("no constant");
  REQUANT_ASSIGN_OR_RETURN(const Tensor tensor, ConstValue(*node));
  if (tensor.dtype() != tensorflow::DT_STRING || port < 0 ||
      port >= tensor.NumElements()) {
    return absl::NotFoundError("no such string");
  }
  return std::string(tensor.flat<tensorflow::tstring>()(port));
}

PartialTensorShape DeclaredShape(const NodeDef& node) {
  PartialTensorShape shape;
  const auto found = node.attr().find("shape");
  if (found == node.attr().end() ||
      !PartialTensorShape::BuildPartialTensorShape(found->second.shape(),
                                                   &shape)
           .ok()) {
    return PartialTensorShape();
  }
  return shape;
}

absl::Status CheckFits(const NodeDef& node, const CheckpointTensor& tensor,
                       const CheckpointEntry& entry) {
  const auto dtype = node.attr().find("dtype");
  if (dtype != node.attr().end() && dtype->second.type() != entry.dtype) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the variable \"", node.name(), "\" is of type ",
        tensorflow::DataTypeString(dtype->second.type()),
        " in the graph, but \"", tensor.key, "\" in the checkpoint is of type ",
        tensorflow::DataTypeString(entry.dtype)));
  }
  const PartialTensorShape shape = DeclaredShape(node);
  // Old graphs write "any shape" as the shape of a scalar.
  const bool any = node.op() == "Variable" && shape.dims() == 0;
  if (!any && !shape.IsCompatibleWith(entry.shape)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the variable \"", node.name(), "\" has shape ", shape.DebugString(),
        " in the graph, but \"", tensor.key, "\" in the checkpoint has shape ",
        entry.shape.DebugString()));
  }
  return absl::OkStatus();
}

// Returns the number N of "x/part_N", or -1, and "x".
int PartNumber(const std::string& name, std::string* whole) {
  const size_t at = name.rfind("/part_");
  int number;
  if (at == std::string::npos ||
      !absl::SimpleAtoi(name.substr(at + 6), &number)) {
    return -1;
  }
  *whole = name.substr(0, at);
  return number;
}

// Without the graph's own restore nodes, what part of the whole a variable
// "x/part_N" is follows from the shapes of all parts: along one dimension they
// add up.
absl::StatusOr<CheckpointTensor> FindPart(const RestorePlan& plan,
                                          const std::string& name,
                                          const Checkpoint& checkpoint) {
  std::string whole;
  const int wanted = PartNumber(name, &whole);
  if (wanted < 0) return absl::NotFoundError("no part");
  REQUANT_ASSIGN_OR_RETURN(const CheckpointEntry entry,
                           checkpoint.Find({whole, ""}));
  for (int axis = 0; axis < entry.shape.dims(); ++axis) {
    int64_t offset = 0, total = 0, length = 0;
    for (int i = 0;; ++i) {
      const auto part = plan.parts.find(absl::StrCat(whole, "/part_", i));
      if (part == plan.parts.end()) break;
      const PartialTensorShape& shape = part->second;
      if (shape.dims() != entry.shape.dims() || shape.dim_size(axis) < 0) {
        return absl::NotFoundError("parts without shapes");
      }
      length = i == wanted ? shape.dim_size(axis) : length;
      total += shape.dim_size(axis);
      offset += i < wanted ? shape.dim_size(axis) : 0;
    }
    if (total != entry.shape.dim_size(axis)) continue;
    std::vector<std::string> slices(entry.shape.dims(), "-");
    slices[axis] = absl::StrCat(offset, ",", length);
    return CheckpointTensor{
        whole, absl::StrCat(absl::StrJoin(entry.shape.dim_sizes(), " "), " ",
                            absl::StrJoin(slices, ":"))};
  }
  return absl::NotFoundError("the parts do not add up");
}

absl::StatusOr<CheckpointTensor> Locate(const NodeDef& node,
                                        const RestorePlan& plan,
                                        const Checkpoint& checkpoint) {
  const std::string name = VariableName(node);
  const auto planned = plan.variables.find(name);
  if (planned != plan.variables.end()) return planned->second;
  for (const std::string& key : {name, node.name()}) {
    if (checkpoint.Contains(key)) return CheckpointTensor{key, ""};
  }
  const auto part = FindPart(plan, node.name(), checkpoint);
  if (part.ok()) return part;
  const auto& objects = checkpoint.KeysOfObjects();
  for (const std::string& key : {name, node.name()}) {
    const auto object = objects.find(key);
    if (object != objects.end()) return CheckpointTensor{object->second, ""};
  }
  return CheckpointTensor{name, ""};
}

}  // namespace

bool IsReferenceVariable(const NodeDef& node) {
  return node.op() == "VariableV2" || node.op() == "Variable" ||
         node.op() == "AutoReloadVariable";
}

bool IsVariable(const NodeDef& node) {
  return IsReferenceVariable(node) || node.op() == "VarHandleOp";
}

Source SourceOf(const GraphIndex& index, const NodeDef& node, int input) {
  const NodeDef* reader = &node;
  absl::flat_hash_set<const NodeDef*> seen;
  while (input < reader->input_size() && seen.insert(reader).second) {
    const NodeDef* producer = index.Producer(*reader, input);
    const int port = ParseTensorName(reader->input(input)).port;
    if (producer == nullptr || producer->op() != "Identity") {
      return {producer, port};
    }
    reader = producer;
    input = 0;
  }
  return {nullptr, 0};
}

absl::StatusOr<CheckpointTensor> RestoredInput(const GraphIndex& index,
                                               const NodeDef& node, int input) {
  const Source source = SourceOf(index, node, input);
  const std::string op = source.node == nullptr ? "" : source.node->op();
  if (op != "RestoreV2" && op != "RestoreSlice" && op != "Restore") {
    return absl::NotFoundError("not restored");
  }
  CheckpointTensor tensor;
  REQUANT_ASSIGN_OR_RETURN(
      tensor.key, StringAt(SourceOf(index, *source.node, 1).node, source.port));
  if (op == "Restore") return tensor;
  REQUANT_ASSIGN_OR_RETURN(
      tensor.shape_and_slice,
      StringAt(SourceOf(index, *source.node, 2).node, source.port));
  return tensor;
}

RestorePlan FindRestored(const GraphIndex& index,
                         const std::string& restore_op) {
  RestorePlan plan;
  const NodeSet restoring = NeededNodes(index, {restore_op});
  std::string whole;
  for (const NodeDef& node : index.graph().node()) {
    if (IsVariable(node) && PartNumber(node.name(), &whole) >= 0) {
      plan.parts.emplace(node.name(), DeclaredShape(node));
    }
    if (!restoring.contains(&node) ||
        (node.op() != "Assign" && node.op() != "AssignVariableOp")) {
      continue;
    }
    const NodeDef* variable = SourceOf(index, node, 0).node;
    if (variable == nullptr || !IsVariable(*variable)) continue;
    const auto tensor = RestoredInput(index, node, 1);
    if (tensor.ok()) plan.variables.emplace(VariableName(*variable), *tensor);
  }
  return plan;
}

absl::StatusOr<FrozenVariable> FindVariable(const NodeDef& node,
                                            const RestorePlan& plan,
                                            const Checkpoint& checkpoint) {
  FrozenVariable variable;
  variable.node = node.name();
  REQUANT_ASSIGN_OR_RETURN(variable.tensor, Locate(node, plan, checkpoint));
  const auto entry = checkpoint.Find(variable.tensor);
  if (!entry.ok()) {
    return absl::Status(
        entry.status().code(),
        absl::StrCat("the variable \"", node.name(),
                     "\" has no value: ", entry.status().message()));
  }
  variable.entry = *entry;
  REQUANT_RETURN_IF_ERROR(CheckFits(node, variable.tensor, variable.entry));
  return variable;
}

}  // namespace requant
