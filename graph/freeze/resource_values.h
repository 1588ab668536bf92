#ifndef REQUANT_GRAPH_FREEZE_RESOURCE_VALUES_H_
#define REQUANT_GRAPH_FREEZE_RESOURCE_VALUES_H_

// Variables replaced by their values: what was handed a variable is handed a
// tensor instead.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace requant {

// The value that takes a variable's place.
struct FrozenValue {
  // The variable's node.
  std::string variable;
  tensorflow::DataType dtype;
  tensorflow::TensorShapeProto shape;
  // The variable is read through a reference (VariableV2), not a handle.
  bool is_reference = false;
};

// Makes everything that reads the variable nodes (VarHandleOps and ref
// variables) take tensors: ReadVariableOp becomes Identity, ResourceGather
// becomes GatherV2 and so on; functions that are handed a variable (branches of
// If, bodies of While) get copies that take the tensor. The variable nodes
// themselves are left to the caller. Assignments that nothing reads become
// NoOps; returns the names of these nodes. Any other use is an error that names
// the node and the variable.
absl::StatusOr<std::vector<std::string>> HandOutValues(
    const std::vector<FrozenValue>& values, tensorflow::GraphDef* graph);

// Returns whether the op changes variables and does nothing else.
bool ChangesVariables(const std::string& op);

// Returns whether it only changes, saves or restores them.
bool OnlyChangesState(const std::string& op);

}  // namespace requant

#endif  // REQUANT_GRAPH_FREEZE_RESOURCE_VALUES_H_
