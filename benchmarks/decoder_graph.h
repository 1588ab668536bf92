#ifndef REQUANT_BENCHMARKS_DECODER_GRAPH_H_
#define REQUANT_BENCHMARKS_DECODER_GRAPH_H_

#include "tensorflow/core/framework/graph.pb.h"

namespace requant {

// A graph of about `nodes` nodes as a SavedModel of a decoder has it: a few
// calls, and the layers in the bodies of functions, which read variables. Half
// of the nodes are in one function, the rest in functions of a thousand.
tensorflow::GraphDef DecoderGraph(int nodes);

}  // namespace requant

#endif  // REQUANT_BENCHMARKS_DECODER_GRAPH_H_
