#ifndef REQUANT_GRAPH_NODE_TYPES_H_
#define REQUANT_GRAPH_NODE_TYPES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace requant {

// The types of a node's outputs, with the op's defaults for missing attributes.
// Opens TensorFlow's library for the op definitions. Fails, naming the node,
// for an unknown op or attributes that do not fit.
absl::StatusOr<std::vector<tensorflow::DataType>> OutputTypes(
    const tensorflow::NodeDef& node);

}  // namespace requant

#endif  // REQUANT_GRAPH_NODE_TYPES_H_
