#ifndef REQUANT_RUNTIME_CALIBRATE_H_
#define REQUANT_RUNTIME_CALIBRATE_H_

// The calibration of a graph on a dataset, as worker processes do it.

#include <functional>

#include "absl/status/statusor.h"
#include "runtime/worker.pb.h"

namespace requant {

// Runs every batch through the model once and observes the tensors. Sends
// activities, progress, warnings, and the RangeTable file's content in parts.
// The table does not depend on the number of threads as far as the model's
// values do not.
absl::StatusOr<CalibrateResult> Calibrate(
    const CalibrateJob& job,
    const std::function<void(const WorkerEvent&)>& send);

}  // namespace requant

#endif  // REQUANT_RUNTIME_CALIBRATE_H_
