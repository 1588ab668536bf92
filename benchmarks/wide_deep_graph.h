#ifndef REQUANT_BENCHMARKS_WIDE_DEEP_GRAPH_H_
#define REQUANT_BENCHMARKS_WIDE_DEEP_GRAPH_H_

#include "tensorflow/core/framework/graph.pb.h"

namespace requant {

// An int8 graph with the shape of the recipe's last one (26 embeddings of 32
// numbers, 13 numeric columns, layers of 1024, 512, 256 and 1) and random
// weights: as fast as a trained one, and as good as a coin.
tensorflow::GraphDef Int8WideDeepGraph();

}  // namespace requant

#endif  // REQUANT_BENCHMARKS_WIDE_DEEP_GRAPH_H_
