#ifndef REQUANT_BENCHMARKS_GRAPHS_H_
#define REQUANT_BENCHMARKS_GRAPHS_H_

// Makes graphs and records for benchmarks.

#include <string>

#include "absl/status/status.h"
#include "runtime/datasets/dataset.pb.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace requant {

// Return a chain of `layers` quantized layers with dynamic ranges, of eleven
// nodes each, and the name of one of them.
tensorflow::GraphDef QuantizedChain(int layers);
std::string ChainLayerName(int layer);
inline constexpr int kNodesOfChainLayer = 11;

// Returns a graph of about `nodes` nodes like a decoder's SavedModel: a few
// calls, and the layers in function bodies that read variables. Half of the
// nodes are in one function, the rest in functions of a thousand.
tensorflow::GraphDef DecoderGraph(int nodes);

// Returns an int8 graph with the shape of the recipe's final one (26 embeddings
// of 32 numbers, 13 numeric columns, layers of 1024, 512, 256 and 1) and random
// weights: it is as fast as a trained one, but its answers are random.
tensorflow::GraphDef Int8WideDeepGraph();

// The number of numeric and of (column, bucket) values in each of its records.
inline constexpr int kNumeric = 13;
inline constexpr int kCategorical = 52;

// Writes a TFRecord file of random records in the Wide & Deep recipe's
// preprocessed form.
absl::Status WriteWideDeepRecords(const std::string& path, int records);

// Returns which of their fields feeds which placeholder.
DatasetSpec WideDeepDataset(const std::string& path);

}  // namespace requant

#endif  // REQUANT_BENCHMARKS_GRAPHS_H_
