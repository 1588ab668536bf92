#ifndef REQUANT_GRAPH_SAVED_MODEL_SAVED_MODEL_FOLDER_H_
#define REQUANT_GRAPH_SAVED_MODEL_SAVED_MODEL_FOLDER_H_

// A SavedModel as a folder: where it is, what it is called, and whether the
// values of its variables are there.

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace requant {

// Returns the SavedModel directory that `path` means: that directory or its
// saved_model.pb itself, or one that has the SavedModel in it as model servers
// lay it out ("saved_model", "1", "saved_model/1"). Several versions are an
// error that lists them.
absl::StatusOr<std::string> FindSavedModel(const std::string& path);

// Returns what people call the model in this directory: the name of the folder,
// without a version and "saved_model" below it. "gpt-j" for
// "models/gpt-j/saved_model/1".
std::string SavedModelName(const std::string& directory);

// Fails when `graph` has variables and the directory lacks their values, or a
// part of them. Reads the checkpoint's index only.
absl::Status CheckVariables(const std::string& directory,
                            const tensorflow::GraphDef& graph);

}  // namespace requant

#endif  // REQUANT_GRAPH_SAVED_MODEL_SAVED_MODEL_FOLDER_H_
