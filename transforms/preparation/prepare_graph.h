#ifndef REQUANT_TRANSFORMS_PREPARATION_PREPARE_GRAPH_H_
#define REQUANT_TRANSFORMS_PREPARATION_PREPARE_GRAPH_H_

// Prepares a float graph for its calibration and quantization: makes constants
// of weights that are computed from constants, and MatMuls of other products.
// Both must see the same graph.

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ranges/range_table.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "transforms/layers/coverage.h"
#include "transforms/layers/float_layer.h"
#include "transforms/registry.h"

namespace requant {

struct PreparedGraph {
  // Whether the graph was changed, and the products whose factors were.
  bool changed = false;
  std::vector<std::string> folded;
  // All products of the graph.
  std::vector<CountedProduct> products;
  // Why the graph has no layer to quantize, or "".
  std::string nothing;
};

// Waits for the registry; it is called only if it is needed.
using GetRegistry = std::function<absl::StatusOr<TransformRegistry*>()>;

// Prepares `graph`, which stays as it is if nothing needs it or if not
// `may_change`. Fails if a node to exclude is not in the graph, or if there is
// nothing to quantize because weights are in variables. Call LoadTensorFlow()
// first.
absl::StatusOr<PreparedGraph> PrepareGraph(const FloatLayerOptions& options,
                                           bool may_change,
                                           const GetRegistry& registry,
                                           tensorflow::GraphDef* graph);

// Returns the MatMuls of layers whose input or output `ranges` does not have.
// With `prepared`, only of those that the preparation made, because `ranges` is
// of the graph as it was.
absl::StatusOr<std::vector<std::string>> LayersWithoutRanges(
    const PreparedGraph* prepared, const FloatLayerOptions& options,
    const RangeTable& ranges, tensorflow::GraphDef* graph);

// Returns the products that were exposed, but that are still MatMuls in the
// quantized graph. As MatMuls they may be slower than they were.
std::vector<std::string> ExposedInVain(const tensorflow::GraphDef& quantized);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_PREPARATION_PREPARE_GRAPH_H_
