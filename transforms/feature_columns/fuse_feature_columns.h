#ifndef REQUANT_TRANSFORMS_FEATURE_COLUMNS_FUSE_FEATURE_COLUMNS_H_
#define REQUANT_TRANSFORMS_FEATURE_COLUMNS_FUSE_FEATURE_COLUMNS_H_

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "transforms/transform.h"

namespace requant {

// Is the transform fuse_feature_columns, with its parameters in `context`:
// changes *graph in place and returns whether there was anything to do; a graph
// without columns stays as it is. The notes say what was done: the columns in
// their order, their raw placeholders, what preprocessing has to compute. The
// warnings say what was left, and why. Fails on graphs that are none (repeated
// names).
absl::StatusOr<bool> FuseFeatureColumns(TransformContext& context,
                                        tensorflow::GraphDef* graph);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_FEATURE_COLUMNS_FUSE_FEATURE_COLUMNS_H_
