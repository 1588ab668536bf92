#ifndef REQUANT_TRANSFORMS_FEATURE_COLUMNS_FUSE_FEATURE_COLUMNS_H_
#define REQUANT_TRANSFORMS_FEATURE_COLUMNS_FUSE_FEATURE_COLUMNS_H_

// The transform fuse_feature_columns, for programs that call it by itself.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace requant {

struct FeatureColumnOptions {
  // Stack tables and take preprocessed records; else only simplify.
  bool fuse = true;
  // Nodes that keep their values and names.
  std::vector<std::string> outputs;
  // Put before the name of every node but the two new placeholders.
  std::string prefix;
};

struct FeatureColumnReport {
  // Whether there was anything to do.
  bool changed = false;
  // Whether the graph had fused columns already; nothing was done.
  bool was_fused = false;
  // What was done, in sentences: the columns in their order, their raw
  // placeholders, what preprocessing has to compute.
  std::vector<std::string> notes;
  // What was left, and why.
  std::vector<std::string> warnings;
};

// Changes *graph in place; a graph without columns stays as it is. Fails on
// graphs that are none (repeated names).
absl::StatusOr<FeatureColumnReport> FuseFeatureColumns(
    const FeatureColumnOptions& options, tensorflow::GraphDef* graph);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_FEATURE_COLUMNS_FUSE_FEATURE_COLUMNS_H_
