#ifndef REQUANT_GRAPH_SAVED_MODEL_SAVED_MODEL_EXPORT_H_
#define REQUANT_GRAPH_SAVED_MODEL_SAVED_MODEL_EXPORT_H_

// Turns a frozen graph back into a SavedModel that TensorFlow loads and serves
// like the one that it was frozen from: the same signatures, the same names of
// inputs and outputs, tables that are filled when the model is loaded, and the
// vocabulary files among its assets.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "graph/freeze/freeze.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace requant {

struct ExportOptions {
  // The SavedModel directory that the graph was frozen from, and the tags of
  // its graph.
  std::string source;
  std::set<std::string> tags;
  // What the model offers, by keys.
  std::map<std::string, tensorflow::SignatureDef> signatures;
  // The tables that Freeze filled from files; they read the files again.
  std::vector<VocabularyNode> vocabularies;
  // What the model says of itself, as its meta_graph_version.
  std::string version;
  // A larger graph gets variables in place of its largest constants, until it
  // is a sixteenth of this. Loaders copy a graph several times, but not a
  // variable.
  int64_t most_graph_bytes = int64_t{256} << 20;
  // Smaller constants stay, because a variable is several nodes.
  int64_t least_variable_bytes = 4096;
};

struct ExportedModel {
  int64_t graph_bytes = 0;
  int variables = 0;
  int64_t variable_bytes = 0;
  int tables = 0;
  std::vector<std::string> assets;
};

// Writes the SavedModel into `folder`, which must exist and be empty. `graph`
// is the result of Freeze with all signatures, perhaps transformed since, with
// the same names of inputs and outputs. Equal arguments give equal files.
// TensorFlow's library is opened. Fails, naming it, if a signature's input or
// output is no longer in the graph.
absl::StatusOr<ExportedModel> ExportSavedModel(const ExportOptions& options,
                                               tensorflow::GraphDef graph,
                                               const std::string& folder);

}  // namespace requant

#endif  // REQUANT_GRAPH_SAVED_MODEL_SAVED_MODEL_EXPORT_H_
