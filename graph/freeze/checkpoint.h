#ifndef REQUANT_GRAPH_FREEZE_CHECKPOINT_H_
#define REQUANT_GRAPH_FREEZE_CHECKPOINT_H_

// Reads the values of variables from disk, one at a time, and determines which
// value belongs to which variable.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.pb.h"

namespace tensorflow {
class BundleReader;
namespace checkpoint {
class TensorSliceReader;
}
}  // namespace tensorflow

namespace requant {

// Returns the existing files of the checkpoint, sorted: `prefix` with ".index",
// ".meta" and ".data-…", and files that match `prefix` itself.
std::vector<std::string> CheckpointFiles(const std::string& prefix);

// Refuses a checkpoint whose files include a pipe or device, on which
// TensorFlow would block.
absl::Status CheckCheckpointFiles(const std::string& prefix);

// A tensor of a checkpoint or a part of one.
struct CheckpointTensor {
  std::string key;
  // "" for the whole tensor, else its shape and the slice as TensorFlow's
  // RestoreV2 takes them: "10 3 0,4:-" is rows 0 to 3 of a 10x3 matrix.
  std::string shape_and_slice;
};

struct CheckpointEntry {
  tensorflow::DataType dtype;
  tensorflow::TensorShape shape;
  // The size of the values. A slice of strings counts as the whole tensor, or
  // as 0 in the first format, whose index has no string sizes.
  int64_t bytes;
};

class Checkpoint {
 public:
  // Opens a checkpoint that TensorFlow writes as `prefix`.index and
  // `prefix`.data-…, or before 1.0 wrote as a file `prefix`. In that first
  // format `prefix` may be a pattern for several files,
  // "model.ckpt-?????-of-00002". Reads only the index.
  static absl::StatusOr<std::unique_ptr<Checkpoint>> Open(
      const std::string& prefix);

  ~Checkpoint();

  bool Contains(const std::string& key) const;

  // Returns the entry of `tensor` without reading its values. Fails if there is
  // none, suggesting a similar name, or if the slice does not fit.
  absl::StatusOr<CheckpointEntry> Find(const CheckpointTensor& tensor) const;

  absl::StatusOr<tensorflow::Tensor> Read(const CheckpointTensor& tensor) const;

  // Fails unless the data files exist and are as long as the index requires.
  // Does not open them.
  absl::Status CheckData() const;

  // Returns the keys of variables by name if this is a TensorFlow 2 checkpoint,
  // whose keys are paths through the program's objects; else empty.
  const std::map<std::string, std::string>& KeysOfObjects() const;

 private:
  explicit Checkpoint(std::string prefix);

  absl::Status OpenFirstFormat();
  // Returns the index's entry for the whole tensor.
  absl::StatusOr<CheckpointEntry> IndexEntry(const std::string& key) const;
  std::vector<std::string> Keys() const;
  std::map<std::string, std::string> ReadObjects() const;

  const std::string prefix_;
  // Null if the checkpoint is in the first format.
  std::unique_ptr<tensorflow::BundleReader> reader_;
  // Null unless the checkpoint is in the first format.
  std::unique_ptr<tensorflow::checkpoint::TensorSliceReader> first_format_;
  // Read on first use.
  mutable std::optional<std::map<std::string, std::string>> objects_;
};

// Returns whether the node stands for a variable.
bool IsVariable(const tensorflow::NodeDef& node);
// Returns whether reading it gives a reference (VariableV2), not a handle.
bool IsReferenceVariable(const tensorflow::NodeDef& node);

// What the node `restore_op` and its dependencies would read from a checkpoint.
struct RestorePlan {
  // The tensors by variable name.
  std::map<std::string, CheckpointTensor> variables;
  // The shapes of the graph's variables "x/part_N" (slices of "x") by name.
  std::map<std::string, tensorflow::PartialTensorShape> parts;
};
RestorePlan FindRestored(const GraphIndex& index,
                         const std::string& restore_op);

// Returns where an input of `node` is in the checkpoint, provided that it
// comes, possibly through Identity nodes, from a RestoreV2, RestoreSlice or
// Restore with constant names.
absl::StatusOr<CheckpointTensor> RestoredInput(const GraphIndex& index,
                                               const tensorflow::NodeDef& node,
                                               int input);

// The node and port that an input of a node comes from, possibly through
// Identity nodes. The node is null if there is none.
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

// Finds the variable's value by the plan, else by its name, else as a part of a
// partitioned variable, else by TensorFlow 2's object names. Checks its type
// and shape against the node's.
absl::StatusOr<FrozenVariable> FindVariable(const tensorflow::NodeDef& node,
                                            const RestorePlan& plan,
                                            const Checkpoint& checkpoint);

}  // namespace requant

#endif  // REQUANT_GRAPH_FREEZE_CHECKPOINT_H_
