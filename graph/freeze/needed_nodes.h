#ifndef REQUANT_GRAPH_FREEZE_NEEDED_NODES_H_
#define REQUANT_GRAPH_FREEZE_NEEDED_NODES_H_

// Finds what some nodes of a graph need, and drops the rest.

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace requant {

using NodeSet = absl::flat_hash_set<const tensorflow::NodeDef*>;

// Returns the existing nodes named in `roots` and all that they depend on,
// including control inputs.
NodeSet NeededNodes(const GraphIndex& index,
                    const std::vector<std::string>& roots);

// Returns the names of the functions of `library` that the nodes call directly
// or indirectly.
absl::flat_hash_set<std::string> CalledFunctions(
    const NodeSet& nodes, const tensorflow::FunctionDefLibrary& library);

// Drops all control inputs that only wait for a variable to be changed, saved
// or restored.
void DropControlsOnState(GraphIndex* index);

// Keeps what `outputs` need: nodes in their order, and the functions that these
// call. First drops control inputs that wait for mere computations, and
// colocations with removed nodes. Needs TensorFlow's library (LoadTensorFlow)
// for the op definitions.
absl::Status KeepNeeded(const std::vector<std::string>& outputs,
                        tensorflow::GraphDef* graph);

// Drops colocations with nodes that are not in the graph, which TensorFlow
// refuses.
void DropLostColocations(tensorflow::GraphDef* graph);

}  // namespace requant

#endif  // REQUANT_GRAPH_FREEZE_NEEDED_NODES_H_
