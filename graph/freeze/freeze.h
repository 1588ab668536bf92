#ifndef REQUANT_GRAPH_FREEZE_FREEZE_H_
#define REQUANT_GRAPH_FREEZE_FREEZE_H_

// A trained model made into one graph without variables.

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/freeze/freeze_model.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace requant {

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
