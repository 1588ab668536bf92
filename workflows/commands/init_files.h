#ifndef REQUANT_WORKFLOWS_COMMANDS_INIT_FILES_H_
#define REQUANT_WORKFLOWS_COMMANDS_INIT_FILES_H_

// What `requant init` writes for a model: a dataset declaration and a workflow.

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace requant {

// The files' names.
inline constexpr char kInitDeclaration[] = "data.textproto";
inline constexpr char kInitWorkflow[] = "workflow.textproto";

// A model, and what it says of itself.
struct InitModel {
  // A SavedModel directory, or a graph's file.
  std::string path;
  bool is_saved_model = false;
  // A name for the workflow: the model's, of letters, digits, "_", "-" and ".".
  std::string name;
  // The signature's key, for a SavedModel.
  std::string signature_key;
  // A graph without names from a signature has its placeholders here, and what
  // looks like its outputs.
  tensorflow::SignatureDef signature;
  // Its outputs that are sums, for a SavedModel.
  std::set<std::string> sums;
};

// Reads what `path` refers to (FindSavedModel, ReadGraph). For "" the signature
// is the only one, or serving_default.
absl::StatusOr<InitModel> ReadInitModel(const std::string& path,
                                        const std::string& signature);

struct InitFiles {
  // The files' contents.
  std::string declaration;
  std::string workflow;
  // Sentences on what was guessed, and on what is left to fill in.
  std::vector<std::string> guessed;
  std::vector<std::string> gaps;
};

// Makes the files for records in `data`, paths or globs, or for records that
// are not known yet if there are none. Relative paths start at the current
// folder, but in the files at `folder`, which need not exist. Reads the records
// to count them.
absl::StatusOr<InitFiles> MakeInitFiles(const InitModel& model,
                                        const std::vector<std::string>& data,
                                        const std::string& folder);

// Returns `path` as files in `folder` write it: relative to the folder, but
// absolute if it is so and leads elsewhere.
std::string PathFrom(const std::string& folder, const std::string& path);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_COMMANDS_INIT_FILES_H_
