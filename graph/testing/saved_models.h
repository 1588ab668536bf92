#ifndef REQUANT_GRAPH_TESTING_SAVED_MODELS_H_
#define REQUANT_GRAPH_TESTING_SAVED_MODELS_H_

// Feeds the signatures of the SavedModels in graph/testdata and compares what
// they give.

#include <random>

#include "graph/saved_model/saved_model_export.h"
#include "graph/testing/testing.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace requant {

// Returns random values for an input; integers are valid row numbers.
Tensor RandomInput(const tensorflow::TensorInfo& info, std::mt19937* generator);

// Expects equal types, shapes and values; floats may differ by rounding.
void ExpectSameTensors(const Tensor& expected, const Tensor& actual);

// Freezes a SavedModel and writes it again into the folder, which is made, with
// as many constants in variables as most_graph_bytes requires.
absl::StatusOr<ExportedModel> FreezeAndExport(const std::string& model,
                                              int64_t most_graph_bytes,
                                              const std::string& folder);

}  // namespace requant

#endif  // REQUANT_GRAPH_TESTING_SAVED_MODELS_H_
