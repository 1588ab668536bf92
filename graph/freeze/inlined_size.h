#ifndef REQUANT_GRAPH_FREEZE_INLINED_SIZE_H_
#define REQUANT_GRAPH_FREEZE_INLINED_SIZE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace requant {

// The function that a node calls, or null.
using CalledFunction = std::function<const tensorflow::FunctionDef*(
    const tensorflow::NodeDef& node)>;

// At most how many nodes the graph has once the calls that `wanted` nodes
// depend on are replaced by the bodies of their functions, calls in those too;
// `limit` if there are more. Takes time for the graph and each function once,
// however often it is called. A call of a function within itself counts as one
// node.
int64_t InlinedSize(const tensorflow::GraphDef& graph,
                    const std::vector<std::string>& wanted,
                    const CalledFunction& called, int64_t limit);

}  // namespace requant

#endif  // REQUANT_GRAPH_FREEZE_INLINED_SIZE_H_
