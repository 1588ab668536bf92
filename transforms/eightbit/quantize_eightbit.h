#ifndef REQUANT_TRANSFORMS_EIGHTBIT_QUANTIZE_EIGHTBIT_H_
#define REQUANT_TRANSFORMS_EIGHTBIT_QUANTIZE_EIGHTBIT_H_

// The transform quantize_eightbit as a function.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace requant {

struct QuantizeEightbitOptions {
  // The graph's outputs; without any, the nodes that nothing reads.
  std::vector<std::string> outputs;
  // The CPU that the model is for: one of QuantizationTargets().
  std::string target = "any";
  // Types and names of nodes that stay float. A name that is not in the graph
  // is an error.
  std::vector<std::string> excluded_ops;
  std::vector<std::string> excluded_nodes;
  // One range for each column of the weights: an error, because the kernels
  // take one for all.
  bool per_channel = false;
};

struct QuantizeEightbitReport {
  // How many layers now compute in eight bits; with none the graph is as it
  // was.
  int quantized = 0;
  // A table of the layers, and the MatMuls that stay float with the reason.
  std::vector<std::string> notes;
  std::vector<std::string> warnings;
};

// Turns the float layers of *graph into eight-bit ones whose ranges are
// computed in every run. On an error the content of *graph no longer counts.
absl::StatusOr<QuantizeEightbitReport> QuantizeEightbit(
    const QuantizeEightbitOptions& options, tensorflow::GraphDef* graph);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_EIGHTBIT_QUANTIZE_EIGHTBIT_H_
