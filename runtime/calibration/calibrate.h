#ifndef REQUANT_RUNTIME_CALIBRATION_CALIBRATE_H_
#define REQUANT_RUNTIME_CALIBRATION_CALIBRATE_H_

// The calibration of a graph on a dataset.

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ranges/range_table.h"
#include "runtime/session/job.pb.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace requant {

class Model;

// Is called with the graph before it goes into a session, when the model's
// names are known. An error ends the calibration.
using GraphInspector = std::function<absl::Status(
    const Model& model, const tensorflow::GraphDef& graph)>;

// Runs every batch through the model once and observes the tensors. Reports
// activities, progress and warnings (base/program/isolation.h). The table does
// not depend on the number of threads as far as the model's values do not.
// `inspect` may be empty. A table for a file says what it was made from
// (runtime/calibration/calibration_key.h).
absl::StatusOr<RangeTable> ObserveRanges(const CalibrateJob& job,
                                         const GraphInspector& inspect,
                                         bool for_file);

}  // namespace requant

#endif  // REQUANT_RUNTIME_CALIBRATION_CALIBRATE_H_
