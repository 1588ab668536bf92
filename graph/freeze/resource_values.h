#ifndef REQUANT_GRAPH_FREEZE_RESOURCE_VALUES_H_
#define REQUANT_GRAPH_FREEZE_RESOURCE_VALUES_H_

// Variables replaced by their values: whoever was handed a variable is handed a
// tensor instead.

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace requant {

// The value that takes a variable's place.
struct FrozenValue {
  // For messages.
  std::string variable;
  tensorflow::DataType dtype;
  tensorflow::TensorShapeProto shape;
  // The variable is read through a reference (VariableV2), not a handle.
  bool is_reference = false;
};

class ResourceValues {
 public:
  // `graph` must outlive this and not be changed by others meanwhile.
  explicit ResourceValues(tensorflow::GraphDef* graph);
  ~ResourceValues();

  // Makes everything that reads the variable node `name` (a VarHandleOp or a
  // ref variable) take a tensor: ReadVariableOp becomes Identity,
  // ResourceGather becomes GatherV2 and so on; functions that are handed the
  // variable (branches of If, bodies of While) get copies that take the tensor.
  // The variable node itself is left to the caller. Assignments that nothing
  // reads become NoOps, see dropped_assignments(). Any other use is an error
  // that names the node and the variable.
  absl::Status Replace(const std::string& name, const FrozenValue& value);

  // Names of the nodes that would have changed a variable.
  const std::vector<std::string>& dropped_assignments() const;

 private:
  class Rewriter;
  std::unique_ptr<Rewriter> rewriter_;
};

// Whether the op changes variables and does nothing else.
bool ChangesVariables(const std::string& op);

// The same for one that changes, saves or restores them.
bool OnlyChangesState(const std::string& op);

}  // namespace requant

#endif  // REQUANT_GRAPH_FREEZE_RESOURCE_VALUES_H_
