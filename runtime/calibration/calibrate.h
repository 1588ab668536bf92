#ifndef REQUANT_RUNTIME_CALIBRATION_CALIBRATE_H_
#define REQUANT_RUNTIME_CALIBRATION_CALIBRATE_H_

// The calibration of a graph on a dataset, as worker processes do it.

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ranges/range_table.h"
#include "runtime/session/worker.pb.h"
#include "runtime/session/worker_events.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace requant {

class Model;

// Called with the graph before it goes into a session, when the model's names
// are known. An error ends the calibration.
using GraphInspector = std::function<absl::Status(
    const Model& model, const tensorflow::GraphDef& graph)>;

// Runs every batch through the model once and observes the tensors. Sends
// activities, progress and warnings. The table does not depend on the number of
// threads as far as the model's values do not. `inspect` may be empty.
absl::StatusOr<RangeTable> ObserveRanges(const CalibrateJob& job,
                                         const EventSink& send,
                                         const GraphInspector& inspect);

// The same as a job: the RangeTable file's content is sent as file parts.
absl::StatusOr<CalibrateResult> Calibrate(const CalibrateJob& job,
                                          const EventSink& send);

}  // namespace requant

#endif  // REQUANT_RUNTIME_CALIBRATION_CALIBRATE_H_
