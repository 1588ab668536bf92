#ifndef REQUANT_GRAPH_FREEZE_FREEZE_PARTS_H_
#define REQUANT_GRAPH_FREEZE_FREEZE_PARTS_H_

// The parts of freezing; see freeze.h.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/freeze/checkpoint.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace requant {

struct FreezeInput {
  tensorflow::GraphDef graph;
  // Prefix of the checkpoint; there may be none.
  std::string checkpoint;
  // The node that restores the variables; "" when there is none.
  std::string restore_op;
  // The nodes that prepare the model when it is loaded.
  std::vector<std::string> initializers;
  // Files that nodes hold the names of, by node.
  std::map<std::string, std::string> assets;
  // The nodes that the serving signature returns.
  std::vector<std::string> outputs;
};

// Function calls replaced by the nodes of the functions' bodies.

struct InlineOptions {
  // Nodes whose values are wanted. A call among them becomes an Identity (or
  // IdentityN) of the same name.
  std::vector<std::string> outputs;
  // Nodes that are wanted for what they do. A call among them becomes a node of
  // the same name that depends on all that its function has to run.
  std::vector<std::string> effects;
  // More nodes than this in the result are an error. They are counted before
  // any is made, as if all outputs of a function were used.
  int64_t max_nodes = 5'000'000;
};

// Inlines the calls (PartitionedCall, StatefulPartitionedCall, and nodes whose
// op is a function) that the nodes of `options` depend on, nested ones too, and
// returns their number. A body's node gets the name "call/node". Functions that
// are called conditionally (If, While) stay. Other calls stay in the graph but
// are no longer meaningful: the caller keeps only what it asked for. Opens
// TensorFlow's library for the op definitions; its code for functions may
// abort on damaged ones.
absl::StatusOr<int> InlineFunctions(const InlineOptions& options,
                                    tensorflow::GraphDef* graph);

// Variables replaced by their values: what was handed a variable is handed a
// tensor instead.

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

// Lookup tables that fill themselves. A frozen graph has no node that its user
// runs first, so every lookup waits for the table's initializer, which
// TensorFlow runs each time: with the same content that is allowed and costs
// little.

// Makes the tables that `outputs` need fill themselves, from constants: text
// files and tables in the checkpoint become constants of the graph. `model`'s
// graph has been moved into `index`. Returns the number of tables. A table with
// no initializer, or one whose content is not known, is an error that names it.
absl::StatusOr<int> KeepTablesFilled(
    const std::vector<std::string>& outputs, const FreezeInput& model,
    const std::function<absl::StatusOr<const Checkpoint*>()>& checkpoint,
    GraphIndex* index);

// A table's content: vectors of equal length.
struct TableContent {
  tensorflow::Tensor keys;
  tensorflow::Tensor values;
};

// How a line becomes an entry, as in TensorFlow's InitializeTableFromTextFile.
struct VocabularyFormat {
  static constexpr int64_t kWholeLine = -2;
  static constexpr int64_t kLineNumber = -1;

  tensorflow::DataType key_dtype;
  tensorflow::DataType value_dtype;
  // A column of the line, or one of the two above.
  int64_t key_index;
  int64_t value_index;
  char delimiter = '\t';
  // How many lines to take; -1 for all.
  int64_t size = -1;
  // How many lines to pass over first.
  int64_t offset = 0;
};

// Reads the entries. A line that does not fit is an error with its number.
absl::StatusOr<TableContent> ReadVocabulary(const std::string& path,
                                            const VocabularyFormat& format);

// Drops entries that repeat an earlier one: TensorFlow's tables take them once,
// but not when they are filled again with the same content. The same key with
// another value is an error. Content that is not two vectors is left alone.
absl::Status DropRepeatedKeys(TableContent* content);

}  // namespace requant

#endif  // REQUANT_GRAPH_FREEZE_FREEZE_PARTS_H_
