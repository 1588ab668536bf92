#ifndef REQUANT_GRAPH_TESTING_GPTJ_MODEL_H_
#define REQUANT_GRAPH_TESTING_GPTJ_MODEL_H_

// Makes SavedModels of the size and shape of large language models, with
// made-up variables, for testing tools that must not read these.

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace requant {

struct GptjShape {
  int layers = 28;
  // The number of functions that contain all layers: Keras saves a model's body
  // once for each way to call it.
  int functions = 3;
  int width = 4096;
};

// Writes a SavedModel whose graph has the tag "serve" and the signature
// "serving_default". Its layers are in functions: six projections like
// Tensordot's, around a MatMul with a variable, and two BatchMatMulV2 between
// activations. The data file is one hole of `variable_bytes`, and its index
// lists only one small tensor.
absl::Status WriteGptjModel(const std::string& directory,
                            const GptjShape& shape, int64_t variable_bytes);

}  // namespace requant

#endif  // REQUANT_GRAPH_TESTING_GPTJ_MODEL_H_
