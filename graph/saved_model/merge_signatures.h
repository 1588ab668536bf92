#ifndef REQUANT_GRAPH_SAVED_MODEL_MERGE_SIGNATURES_H_
#define REQUANT_GRAPH_SAVED_MODEL_MERGE_SIGNATURES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace requant {

// Makes signatures that compute the same from equal inputs use the same nodes.
// (Keras exports each model as "serve" and as "serving_default".) `graph` is a
// frozen graph of all `signatures`; it does not change, but the merged
// signatures no longer name some of its nodes. Returns the keys of those
// signatures. Loads TensorFlow's library.
absl::StatusOr<std::vector<std::string>> MergeSignatures(
    const tensorflow::GraphDef& graph,
    std::map<std::string, tensorflow::SignatureDef>* signatures);

}  // namespace requant

#endif  // REQUANT_GRAPH_SAVED_MODEL_MERGE_SIGNATURES_H_
