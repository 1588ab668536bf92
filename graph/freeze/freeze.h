#ifndef REQUANT_GRAPH_FREEZE_FREEZE_H_
#define REQUANT_GRAPH_FREEZE_FREEZE_H_

// Freezes a trained model into one graph without variables.

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace requant {

// The model's files: `saved_model`, or else `meta_graph` or `graph` together
// with a `checkpoint`.
struct ModelFiles {
  // A SavedModel directory, and the tags of the graph to use.
  std::string saved_model;
  std::set<std::string> tags;
  // A MetaGraphDef, such as TensorFlow's model.ckpt-1.meta.
  std::string meta_graph;
  // A GraphDef.
  std::string graph;
  // The checkpoint's prefix; by default that of the SavedModel, or the one that
  // `meta_graph` is named after.
  std::string checkpoint;
  // A SaverDef, which names the node that restores variables.
  std::string saver;
  // That node's name, by default the model's own or "save/restore_all".
  std::string restore_op;
};

// Returns the existing files of the model, none of which may be overwritten.
std::vector<std::string> FilesOf(const ModelFiles& files);

struct FreezeOptions {
  ModelFiles files;
  // The nodes whose values are wanted, which keep their names; by default those
  // of the SavedModel's serving signature, or of all its signatures.
  std::vector<std::string> outputs;
  bool all_signatures = false;
  // Nodes that fill lookup tables, besides those that the model names.
  std::vector<std::string> initializers;
  bool clear_devices = true;
  // If this is not empty, only these variables are frozen.
  std::set<std::string> only_variables;
  // These variables are not frozen.
  std::set<std::string> kept_variables;
  // The result may exceed the 2 GB of a file, if it stays in memory.
  bool stays_in_memory = false;
};

// A node that fills a table from a vocabulary file, before the file's content
// became constants and the node one that takes those.
struct VocabularyNode {
  tensorflow::NodeDef initializer;
  // The file's path.
  std::string path;
};

struct FrozenGraph {
  tensorflow::GraphDef graph;
  std::vector<std::string> outputs;
  int variables = 0;
  int64_t variable_bytes = 0;
  int inlined_calls = 0;
  int tables = 0;
  // Those of the tables that were filled from files.
  std::vector<VocabularyNode> vocabularies;
  // Sentences on surprising effects: assignments omitted, variables kept.
  std::vector<std::string> notes;
};

// Reads the model, keeps what the outputs need, inlines functions, and replaces
// variables by their values, which are read one by one from the checkpoint.
// Runs no graph. The result has passed VerifyGraph. Fails before reading any
// value if the result would exceed 2 GB and must not. The TensorFlow code that
// this uses may abort on damaged files, so programs call it in a child process.
absl::StatusOr<FrozenGraph> Freeze(const FreezeOptions& options);

}  // namespace requant

#endif  // REQUANT_GRAPH_FREEZE_FREEZE_H_
