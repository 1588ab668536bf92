#ifndef REQUANT_RUNTIME_QUANTIZATION_QUANTIZE_H_
#define REQUANT_RUNTIME_QUANTIZATION_QUANTIZE_H_

// Quantizes a calibrated graph in this process, without files.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/session/model.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "transforms/layers/float_layer.h"
#include "transforms/registry.h"

namespace requant {

// The parameters of quantize_static.
struct QuantizeParameters {
  std::string target;
  std::string ops;
  std::string method;
  double value_percentile = 0;
  // Its `outputs` are those of the graph.
  FloatLayerOptions layers;
};

// Returns the path of an anonymous file with this content, for readers that
// take a path. It exists as long as this process.
absl::StatusOr<std::string> MemoryFile(std::string_view content);

// Returns the nodes that make the outputs `names`, each once.
absl::StatusOr<std::vector<std::string>> OutputNodes(
    const Model& model, const std::vector<std::string>& names);

// Runs quantize_static and quantize_embeddings on the graph. Nodes of
// `without_ranges` stay float too; nodes to exclude that are not in the graph
// are ignored. Appends to `notes` what was done: the table of layers.
absl::Status QuantizeGraph(const QuantizeParameters& parameters,
                           const std::vector<std::string>& ranges_files,
                           const std::vector<std::string>& without_ranges,
                           const TransformRegistry& registry,
                           std::vector<std::string>* notes,
                           tensorflow::GraphDef* graph);

// Returns how many of the graph's nodes multiply matrices in eight bits.
int64_t QuantizedMatMuls(const tensorflow::GraphDef& graph);

}  // namespace requant

#endif  // REQUANT_RUNTIME_QUANTIZATION_QUANTIZE_H_
