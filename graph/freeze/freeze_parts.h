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
#include "graph/freeze/freeze.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/framework/types.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace requant {

struct FreezeInput {
  tensorflow::GraphDef graph;
  // The checkpoint's prefix, or "".
  std::string checkpoint;
  // The node that restores the variables, or "".
  std::string restore_op;
  // The nodes that initialize the model after loading.
  std::vector<std::string> initializers;
  // The asset files whose names nodes hold, by node.
  std::map<std::string, std::string> assets;
  // All signatures that users see, by their keys.
  std::map<std::string, tensorflow::SignatureDef> signatures;
};

// Replaces function calls by the nodes of the functions' bodies.

struct InlineOptions {
  // Nodes whose values are wanted. A call among them becomes an Identity (or
  // IdentityN) with the same name.
  std::vector<std::string> outputs;
  // Nodes that are wanted for their effects. A call among them becomes a node
  // with the same name that depends on everything its function must run.
  std::vector<std::string> effects;
  // A result with more nodes than this is an error. They are counted before any
  // is made, as if all outputs of a function were used.
  int64_t max_nodes = 5'000'000;
};

// Inlines the calls (PartitionedCall, StatefulPartitionedCall, and nodes whose
// op is a function) that the nodes of `options` depend on, including nested
// ones, and returns their number. A body's node gets the name "call/node".
// Functions that are called conditionally (If, While) stay. Other calls stay in
// the graph but become meaningless: the caller keeps only what it asked for.
// Loads TensorFlow's library for the op definitions; its code for functions may
// abort on damaged ones.
absl::StatusOr<int> InlineFunctions(const InlineOptions& options,
                                    tensorflow::GraphDef* graph);

// Replaces variables by their values: what received a variable receives a
// tensor instead.

// The value that replaces a variable.
struct FrozenValue {
  // The variable's node.
  std::string variable;
  tensorflow::DataType dtype;
  tensorflow::TensorShapeProto shape;
  // Whether it is read through a reference (VariableV2) and not a handle.
  bool is_reference = false;
};

// Makes all readers of the variable nodes (VarHandleOps and ref variables) take
// tensors: ReadVariableOp becomes Identity, ResourceGather becomes GatherV2 and
// so on; functions that receive a variable (branches of If, bodies of While)
// get copies that take the tensor. The variable nodes themselves are left to
// the caller. Assignments whose results are unused become NoOps; returns the
// names of these nodes. Any other use is an error that names the node and the
// variable.
absl::StatusOr<std::vector<std::string>> HandOutValues(
    const std::vector<FrozenValue>& values, tensorflow::GraphDef* graph);

// Returns whether the op changes variables and does nothing else.
bool ChangesVariables(const std::string& op);

// Returns whether the op only changes, saves or restores variables.
bool OnlyChangesState(const std::string& op);

// Makes lookup tables fill themselves. A frozen graph has no node that its user
// runs first, so every lookup waits for the table's initializer. TensorFlow
// runs it every time, which is allowed for unchanged content and cheap.

// Makes the tables that `outputs` need fill themselves from constants: text
// files and tables in the checkpoint become constants of the graph. `model`'s
// graph has been moved into `index`. Returns the number of tables, and appends
// to `vocabularies` those that were filled from files. A table without an
// initializer or with unknown content is an error that names it.
absl::StatusOr<int> KeepTablesFilled(
    const std::vector<std::string>& outputs, const FreezeInput& model,
    const std::function<absl::StatusOr<const Checkpoint*>()>& checkpoint,
    GraphIndex* index, std::vector<VocabularyNode>* vocabularies);

// Returns whether the node fills a table.
bool IsTableInitializer(const tensorflow::NodeDef& node);

// A table's content: two vectors of equal length.
struct TableContent {
  tensorflow::Tensor keys;
  tensorflow::Tensor values;
};

// Maps lines to entries, as in TensorFlow's InitializeTableFromTextFile.
struct VocabularyFormat {
  static constexpr int64_t kWholeLine = -2;
  static constexpr int64_t kLineNumber = -1;

  tensorflow::DataType key_dtype;
  tensorflow::DataType value_dtype;
  // A column of the line, or one of the two constants above.
  int64_t key_index;
  int64_t value_index;
  char delimiter = '\t';
  // The number of lines to read, or -1 for all.
  int64_t size = -1;
  // The number of lines to skip first.
  int64_t offset = 0;
};

// Reads the entries. Fails, naming the line, if one does not fit.
absl::StatusOr<TableContent> ReadVocabulary(const std::string& path,
                                            const VocabularyFormat& format);

// Drops repeated entries, which TensorFlow's tables accept once but not when
// they are filled again with the same content. Fails if a key has two values.
// Content that does not consist of two vectors is unchanged.
absl::Status DropRepeatedKeys(TableContent* content);

}  // namespace requant

#endif  // REQUANT_GRAPH_FREEZE_FREEZE_PARTS_H_
