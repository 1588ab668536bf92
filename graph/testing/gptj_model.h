#ifndef REQUANT_GRAPH_TESTING_GPTJ_MODEL_H_
#define REQUANT_GRAPH_TESTING_GPTJ_MODEL_H_

// SavedModels of the size and the shape of large language models, with made-up
// variables: for tests and benchmarks of tools that must not read these.

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace requant {

struct GptjShape {
  int layers = 28;
  // How many functions have all layers in them: Keras saves a model's body once
  // for each way to call it.
  int functions = 3;
  int width = 4096;
};

// Writes a SavedModel whose graph is tagged "serve" and has the signature
// "serving_default". Its layers are in functions: six projections as Tensordot
// does them, around a MatMul with a variable, and two BatchMatMulV2 between
// activations. The file with the variables' values is one hole of
// `variable_bytes`, and its index knows of one small tensor only.
absl::Status WriteGptjModel(const std::string& directory,
                            const GptjShape& shape, int64_t variable_bytes);

}  // namespace requant

#endif  // REQUANT_GRAPH_TESTING_GPTJ_MODEL_H_
