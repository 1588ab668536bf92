#ifndef REQUANT_GRAPH_FREEZE_FREEZE_H_
#define REQUANT_GRAPH_FREEZE_FREEZE_H_

// A trained model made into one graph without variables.

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace requant {

// Which files. Either `saved_model`, or `meta_graph`, or `graph`; the latter
// two with a `checkpoint`.
struct ModelFiles {
  // A SavedModel directory, and the tags of the graph in it.
  std::string saved_model;
  std::set<std::string> tags;
  // A MetaGraphDef, such as TensorFlow's model.ckpt-1.meta.
  std::string meta_graph;
  // A GraphDef.
  std::string graph;
  // The checkpoint without its endings; by default that of the SavedModel, or
  // the one that `meta_graph` is named after.
  std::string checkpoint;
  // A SaverDef, which names the node that restores variables.
  std::string saver;
  // That node's name, by default what the model says or "save/restore_all".
  std::string restore_op;
};

// Returns the files that exist of those the model consists of; none of them may
// be overwritten.
std::vector<std::string> FilesOf(const ModelFiles& files);

struct FreezeOptions {
  ModelFiles files;
  // The nodes whose values are wanted; by default those of the SavedModel's
  // serving signature. They keep their names.
  std::vector<std::string> outputs;
  // Nodes that fill lookup tables, beside those that the model names itself.
  std::vector<std::string> initializers;
  bool clear_devices = true;
  // If not empty, only these variables are frozen.
  std::set<std::string> only_variables;
  // These variables stay variables.
  std::set<std::string> kept_variables;
};

struct FrozenGraph {
  tensorflow::GraphDef graph;
  std::vector<std::string> outputs;
  int variables = 0;
  int64_t variable_bytes = 0;
  int inlined_calls = 0;
  int tables = 0;
  // Sentences about what may surprise: assignments left out, variables kept.
  std::vector<std::string> notes;
};

// Reads the model, keeps what the outputs need, inlines functions, and replaces
// variables by their values from the checkpoint, which it reads one by one.
// Runs no graph. The result has passed VerifyGraph. A result of more than 2 GB
// is an error before any value is read. Code of TensorFlow's that this uses may
// abort on damaged files: programs call it in a child process.
absl::StatusOr<FrozenGraph> Freeze(const FreezeOptions& options);

}  // namespace requant

#endif  // REQUANT_GRAPH_FREEZE_FREEZE_H_
