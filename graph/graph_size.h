#ifndef REQUANT_GRAPH_GRAPH_SIZE_H_
#define REQUANT_GRAPH_GRAPH_SIZE_H_

#include <cstdint>
#include <string>

#include "tensorflow/core/framework/graph.pb.h"

namespace requant {

struct GraphSize {
  int64_t nodes = 0;
  int64_t bytes = 0;
};

// The nodes outside functions, and the bytes of the serialized graph.
GraphSize MeasureGraph(const tensorflow::GraphDef& graph);

// "1,204 -> 873 nodes (-27 %), 9.53 -> 4.97 MB (-48 %)".
std::string GraphSizeSummary(const GraphSize& before, const GraphSize& after);

}  // namespace requant

#endif  // REQUANT_GRAPH_GRAPH_SIZE_H_
