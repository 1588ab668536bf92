#ifndef REQUANT_TRANSFORMS_LAYERS_LAYER_REPORT_H_
#define REQUANT_TRANSFORMS_LAYERS_LAYER_REPORT_H_

// What transforms that quantize layers tell about them.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "transforms/layers/float_layer.h"

namespace requant {

struct LayerRow {
  std::string name;
  std::vector<std::string> cells;
};

// The rows as aligned lines; all have as many cells as the first, which is the
// heading.
std::vector<std::string> LayerTable(std::vector<LayerRow> rows);

// "quantizes 3 of 4 MatMuls for the target "any"".
std::string QuantizedCount(const FloatLayers& found, const std::string& target);

// Appends a line for each MatMul that stays float, with the reason.
void AppendSkipped(const FloatLayers& found, std::vector<std::string>* notes);

// Why `graph`, whose search gave `found`, has no layer to quantize, and what to
// do: "no MatMul has constant float weights; …".
std::string WhyNoLayers(const tensorflow::GraphDef& graph,
                        const FloatLayers& found);

// An error if a node to exclude is not in the graph; a warning if no node is of
// a type to exclude.
absl::Status CheckExcluded(const FloatLayerOptions& options,
                           const GraphIndex& index,
                           std::vector<std::string>* warnings);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_LAYERS_LAYER_REPORT_H_
