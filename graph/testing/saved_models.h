#ifndef REQUANT_GRAPH_TESTING_SAVED_MODELS_H_
#define REQUANT_GRAPH_TESTING_SAVED_MODELS_H_

// Feeds the signatures of the SavedModels in graph/testdata and compares what
// they give.

#include <random>

#include "graph/testing/testing.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace requant {

// Returns random values for an input; integers are valid row numbers.
Tensor RandomInput(const tensorflow::TensorInfo& info, std::mt19937* generator);

// Expects equal types, shapes and values; floats may differ by rounding.
void ExpectSameTensors(const Tensor& expected, const Tensor& actual);

}  // namespace requant

#endif  // REQUANT_GRAPH_TESTING_SAVED_MODELS_H_
