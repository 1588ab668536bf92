#ifndef REQUANT_GRAPH_FREEZE_FREEZE_VARIABLES_H_
#define REQUANT_GRAPH_FREEZE_FREEZE_VARIABLES_H_

// Which tensor of a checkpoint is the value of which variable.

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/freeze/checkpoint.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace requant {

// Returns whether the node stands for a variable.
bool IsVariable(const tensorflow::NodeDef& node);
// Returns whether readers get a reference (VariableV2) rather than a handle.
bool IsReferenceVariable(const tensorflow::NodeDef& node);

// What the node `restore_op` and those it depends on would read from a
// checkpoint.
struct RestorePlan {
  // By variable name.
  std::map<std::string, CheckpointTensor> variables;
  // The shapes of the graph's variables "x/part_N", by name: parts of "x".
  std::map<std::string, tensorflow::PartialTensorShape> parts;
};
RestorePlan FindRestored(const GraphIndex& index,
                         const std::string& restore_op);

// Returns where in the checkpoint input `input` of `node` is, if it is, through
// any Identity nodes, an output of a RestoreV2, RestoreSlice or Restore with
// constant names.
absl::StatusOr<CheckpointTensor> RestoredInput(const GraphIndex& index,
                                               const tensorflow::NodeDef& node,
                                               int input);

// The node and port that input `input` of `node` comes from, through any
// Identity nodes. The node is null when there is none.
struct Source {
  const tensorflow::NodeDef* node;
  int port;
};
Source SourceOf(const GraphIndex& index, const tensorflow::NodeDef& node,
                int input);

// A variable that is to become a constant.
struct FrozenVariable {
  std::string node;
  CheckpointTensor tensor;
  CheckpointEntry entry;
};

// Finds the variable's value: where the plan has it, else under its name, else
// as a part of a partitioned variable, else by TensorFlow 2's object names.
// Checks its type and shape against the node's.
absl::StatusOr<FrozenVariable> FindVariable(const tensorflow::NodeDef& node,
                                            const RestorePlan& plan,
                                            const Checkpoint& checkpoint);

}  // namespace requant

#endif  // REQUANT_GRAPH_FREEZE_FREEZE_VARIABLES_H_
