#ifndef REQUANT_RUNTIME_CALIBRATION_OBSERVED_ENTRIES_H_
#define REQUANT_RUNTIME_CALIBRATION_OBSERVED_ENTRIES_H_

// Chooses what a calibration observes in a model.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/session/job.pb.h"
#include "runtime/session/model.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "transforms/layers/calibration_tensors.h"

namespace requant {

// Returns "node:output".
std::string TensorText(const std::string& node, int output);

// An entry of the table, with what is fetched for it.
struct ObservedEntry {
  CalibrationTensor tensor;
  // The two ends of a range, or else the tensor's values; in a function, those
  // at every place that calls it.
  std::vector<std::string> fetches;
  // Whether its values are the same in every batch.
  bool is_weight = false;
};

// Returns the tensors that the job names, or those that the transforms for
// eight-bit graphs need. Layers also end with the nodes `outputs`. Fails if
// there are none.
absl::StatusOr<std::vector<ObservedEntry>> ChooseEntries(
    const CalibrateJob& job, const Model& model,
    const std::vector<std::string>& outputs, tensorflow::GraphDef* graph);

// Returns what insert_qdq would quantize, in functions too. The session needs
// the nodes `added` to compute them.
absl::StatusOr<std::vector<ObservedEntry>> ChooseQdqEntries(
    const CalibrateJob& job, const Model& model,
    const tensorflow::GraphDef& graph, tensorflow::GraphDef* added);

}  // namespace requant

#endif  // REQUANT_RUNTIME_CALIBRATION_OBSERVED_ENTRIES_H_
