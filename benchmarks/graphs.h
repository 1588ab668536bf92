#ifndef REQUANT_BENCHMARKS_GRAPHS_H_
#define REQUANT_BENCHMARKS_GRAPHS_H_

// Graphs and records to measure with.

#include <string>

#include "absl/status/status.h"
#include "runtime/datasets/dataset.pb.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace requant {

// Returns a chain of `layers` quantized layers with dynamic ranges, of eleven
// nodes each, and the name of one of them.
tensorflow::GraphDef QuantizedChain(int layers);
std::string ChainLayerName(int layer);
inline constexpr int kNodesOfChainLayer = 11;

// Returns a graph of about `nodes` nodes like a SavedModel of a decoder: a few
// calls, and the layers in the bodies of functions, which read variables. Half
// of the nodes are in one function, the rest in functions of a thousand.
tensorflow::GraphDef DecoderGraph(int nodes);

// Returns an int8 graph with the shape of the recipe's last one (26 embeddings
// of 32 numbers, 13 numeric columns, layers of 1024, 512, 256 and 1) and random
// weights: it is as fast as a trained one, but its answers are random.
tensorflow::GraphDef Int8WideDeepGraph();

// How many numbers and how many (column, bucket) values a record of it has.
inline constexpr int kNumeric = 13;
inline constexpr int kCategorical = 52;

// Writes a TFRecord file of random records as the Wide & Deep recipe
// preprocesses them.
absl::Status WriteWideDeepRecords(const std::string& path, int records);

// Returns what of them feeds which placeholder.
DatasetSpec WideDeepDataset(const std::string& path);

}  // namespace requant

#endif  // REQUANT_BENCHMARKS_GRAPHS_H_
