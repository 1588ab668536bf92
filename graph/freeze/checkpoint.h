#ifndef REQUANT_GRAPH_FREEZE_CHECKPOINT_H_
#define REQUANT_GRAPH_FREEZE_CHECKPOINT_H_

// The values of variables on disk, read one at a time, and which of them is the
// value of which variable.

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

// Returns the files of the checkpoint that exist: `prefix` with ".index",
// ".meta" and ".data-…", and those that `prefix` itself names, sorted.
std::vector<std::string> CheckpointFiles(const std::string& prefix);

// Refuses a checkpoint with a pipe or device among its files, which TensorFlow
// would wait for.
absl::Status CheckCheckpointFiles(const std::string& prefix);

// A tensor of a checkpoint, or a part of one.
struct CheckpointTensor {
  std::string key;
  // "" for the whole tensor, else its shape and the part as TensorFlow's
  // RestoreV2 takes them: "10 3 0,4:-" is rows 0 to 3 of a 10x3 matrix.
  std::string shape_and_slice;
};

struct CheckpointEntry {
  tensorflow::DataType dtype;
  tensorflow::TensorShape shape;
  // How much the values take. For a part of a string tensor: the whole tensor;
  // 0 for strings of the first format, whose index does not say.
  int64_t bytes;
};

class Checkpoint {
 public:
  // Opens the checkpoint that TensorFlow writes as `prefix`.index and
  // `prefix`.data-…, or wrote before 1.0 as one file `prefix`; in that first
  // format `prefix` may be a pattern, "model.ckpt-?????-of-00002", of several
  // files. Reads the index only.
  static absl::StatusOr<std::unique_ptr<Checkpoint>> Open(
      const std::string& prefix);

  ~Checkpoint();

  bool Contains(const std::string& key) const;

  // Returns what `tensor` is, at no cost whatever its size. Fails when there is
  // none, naming one that is spelled alike, or the slice does not fit.
  absl::StatusOr<CheckpointEntry> Find(const CheckpointTensor& tensor) const;

  absl::StatusOr<tensorflow::Tensor> Read(const CheckpointTensor& tensor) const;

  // Fails unless the files with the values are there and as long as the index
  // needs them. Does not open them.
  absl::Status CheckData() const;

  // Returns the keys of variables by their names, for checkpoints of TensorFlow
  // 2, whose keys are paths through the program's objects; else empty.
  const std::map<std::string, std::string>& KeysOfObjects() const;

 private:
  explicit Checkpoint(std::string prefix);

  absl::Status OpenFirstFormat();
  // Returns the index's entry for the whole tensor.
  absl::StatusOr<CheckpointEntry> IndexEntry(const std::string& key) const;
  std::vector<std::string> Keys() const;
  std::map<std::string, std::string> ReadObjects() const;

  const std::string prefix_;
  // Null for a checkpoint of the first format.
  std::unique_ptr<tensorflow::BundleReader> reader_;
  // Null for any other.
  std::unique_ptr<tensorflow::checkpoint::TensorSliceReader> first_format_;
  // Read when first asked for.
  mutable std::optional<std::map<std::string, std::string>> objects_;
};

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

#endif  // REQUANT_GRAPH_FREEZE_CHECKPOINT_H_
