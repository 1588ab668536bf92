#ifndef REQUANT_RUNTIME_SERVABLE_TENSORFLOW_VERSIONS_H_
#define REQUANT_RUNTIME_SERVABLE_TENSORFLOW_VERSIONS_H_

// Knows which versions of TensorFlow run which models.

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/servable/tensorflow_versions.pb.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace requant {

// The versions that were tried.
const TensorFlowVersions& TriedVersions();

// Returns the value of --ops for models that `version`, such as "2.15", is to
// run: `ops` itself, or if it is empty the better one of portable and legacy
// that the version has. Fails if it was not tried, or does not have `ops`.
absl::StatusOr<std::string> OpsForTensorFlow(const std::string& version,
                                             const std::string& ops);

// Fails if the graph, with its functions, has an op or an attribute that
// `version` lacks. Attributes with their default values must have been removed
// (StripDefaultValues).
absl::Status CheckTensorFlow(const std::string& version,
                             const tensorflow::GraphDef& graph);

// Returns whether kernels that the graph needs exist only while oneDNN is
// turned on.
bool NeedsOneDnn(const tensorflow::GraphDef& graph);

// Returns a sentence or two about the versions of TensorFlow that run the graph
// and what must be in their environment. Attributes are as for CheckTensorFlow.
std::string RequirementsText(const tensorflow::GraphDef& graph);

}  // namespace requant

#endif  // REQUANT_RUNTIME_SERVABLE_TENSORFLOW_VERSIONS_H_
