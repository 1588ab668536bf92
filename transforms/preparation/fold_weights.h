#ifndef REQUANT_TRANSFORMS_PREPARATION_FOLD_WEIGHTS_H_
#define REQUANT_TRANSFORMS_PREPARATION_FOLD_WEIGHTS_H_

// Makes constants of weights that a graph computes from constants in every run,
// such as Const -> Transpose -> Reshape.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "transforms/layers/float_layer.h"
#include "transforms/registry.h"

namespace requant {

// A factor of a product that depends on constants only, but is none.
struct ComputedFactor {
  // The product and the number of its input.
  std::string product;
  int input = 0;
  // What it reads there, before Identity nodes: "kernel/transposed:0".
  std::string tensor;
};

// Finds such factors of float products that `options` does not exclude. Call
// LoadTensorFlow() first.
std::vector<ComputedFactor> FindComputedFactors(
    const GraphIndex& index, const FloatLayerOptions& options);

// Computes the factors, by TensorFlow's fold_constants on the part of the graph
// that makes them, and lets the products read them as constants. All nodes of
// the graph stay, with their names. Skips factors that TensorFlow does not
// fold.
absl::Status FoldFactors(const TransformRegistry& registry,
                         const std::vector<ComputedFactor>& factors,
                         tensorflow::GraphDef* graph);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_PREPARATION_FOLD_WEIGHTS_H_
