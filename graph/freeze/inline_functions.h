#ifndef REQUANT_GRAPH_FREEZE_INLINE_FUNCTIONS_H_
#define REQUANT_GRAPH_FREEZE_INLINE_FUNCTIONS_H_

// Function calls replaced by the nodes of the functions' bodies.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace requant {

struct InlineOptions {
  // Nodes whose values are wanted. A call among them becomes an Identity (or
  // IdentityN) of the same name.
  std::vector<std::string> outputs;
  // Nodes that are wanted for what they do. A call among them becomes a node of
  // the same name that depends on all that its function has to run.
  std::vector<std::string> effects;
  // More nodes than this in the result are an error. They are counted before
  // any is made, as if all outputs of a function were used.
  int64_t max_nodes = 5'000'000;
};

// Inlines the calls (PartitionedCall, StatefulPartitionedCall, and nodes whose
// op is a function) that the nodes of `options` depend on, nested ones too, and
// returns their number. A body's node gets the name "call/node". Functions that
// are called conditionally (If, While) stay. Other calls stay in the graph but
// are no longer meaningful: the caller keeps only what it asked for. Opens
// TensorFlow's library for the op definitions; its code for functions may
// abort on damaged ones.
absl::StatusOr<int> InlineFunctions(const InlineOptions& options,
                                    tensorflow::GraphDef* graph);

}  // namespace requant

#endif  // REQUANT_GRAPH_FREEZE_INLINE_FUNCTIONS_H_
