#ifndef REQUANT_RUNTIME_CALIBRATION_CALIBRATE_H_
#define REQUANT_RUNTIME_CALIBRATION_CALIBRATE_H_

// The calibration of a graph on a dataset.

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ranges/range_table.h"
#include "runtime/session/job.pb.h"
#include "runtime/session/model.h"

namespace requant {

// Returns a digest of all that the result of a calibration depends on: the
// contents of the model's and the dataset's files, in their order, the
// declaration, the settings and this program's version. Paths, times and
// numbers of threads do not count.
absl::StatusOr<std::string> CalibrationKey(const CalibrateJob& job);

// Runs every batch through the model once and observes the tensors. Reports
// activities, progress and warnings (base/program/isolation.h). The table does
// not depend on the number of threads as far as the model's values do not.
// `inspect` may be empty. A table for a file says what it was made from
// (CalibrationKey).
absl::StatusOr<RangeTable> ObserveRanges(const CalibrateJob& job,
                                         const Model::GraphInspector& inspect,
                                         bool for_file);

}  // namespace requant

#endif  // REQUANT_RUNTIME_CALIBRATION_CALIBRATE_H_
