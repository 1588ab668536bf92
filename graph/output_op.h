#ifndef REQUANT_GRAPH_OUTPUT_OP_H_
#define REQUANT_GRAPH_OUTPUT_OP_H_

#include <set>
#include <string>

#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace requant {

// Returns the op that computes a tensor of the graph, also if function calls
// and nodes that only hand values on lie between; "" if that is not found.
std::string OutputOp(const tensorflow::GraphDef& graph,
                     const std::string& tensor);

// Returns the signature's outputs that are sums, as in a layer without an
// activation.
std::set<std::string> SumsAmongOutputs(
    const tensorflow::GraphDef& graph,
    const tensorflow::SignatureDef& signature);

}  // namespace requant

#endif  // REQUANT_GRAPH_OUTPUT_OP_H_
