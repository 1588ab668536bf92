#ifndef REQUANT_TRANSFORMS_LAYERS_CALIBRATION_TENSORS_H_
#define REQUANT_TRANSFORMS_LAYERS_CALIBRATION_TENSORS_H_

// Finds what has to be observed in a graph to quantize it.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph_index.h"

namespace requant {

enum class ObservedKind {
  // A tensor's values.
  kTensor,
  // The result that a Min, Max or RequantizationRange computes at run time.
  kMin,
  kMax,
  kRange,
};

// What an entry of a RangeTable describes.
struct CalibrationTensor {
  ObservedKind kind = ObservedKind::kTensor;
  std::string node;
  // 0 for a kRange, which has two outputs.
  int output = 0;
  // Whether, in a float graph, a layer multiplies it by its weights.
  bool layer_input = false;
};

// Returns, for a graph that computes ranges as it runs, the nodes that compute
// them, as the freeze transforms see them; for a float graph, the input and
// output of each layer (float_layer.h) and each block of a concatenated input,
// possibly from before nodes that keep all values. `outputs` are the graph's.
std::vector<CalibrationTensor> FindCalibrationTensors(
    const GraphIndex& index, const std::vector<std::string>& outputs);

// Returns the tensor or range node that a person means by `name`; does not
// determine whether it is a layer's input.
absl::StatusOr<CalibrationTensor> FindCalibrationTensor(
    const GraphIndex& index, const std::string& name);

// Sets layer_input for tensors that are a layer's input.
void MarkLayerInputs(const GraphIndex& index,
                     std::vector<CalibrationTensor>* tensors);

// Returns whether a quantization takes its range from what `node` computes,
// possibly after some arithmetic. A model may well have Min and Max nodes of
// its own: they are part of its function and must not become constants.
bool FeedsQuantizationRange(const GraphIndex& index, const std::string& node);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_LAYERS_CALIBRATION_TENSORS_H_
