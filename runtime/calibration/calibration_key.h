#ifndef REQUANT_RUNTIME_CALIBRATION_CALIBRATION_KEY_H_
#define REQUANT_RUNTIME_CALIBRATION_CALIBRATION_KEY_H_

#include <string>

#include "absl/status/statusor.h"
#include "runtime/session/job.pb.h"

namespace requant {

// Returns a digest of all that the result of a calibration depends on: the
// contents of the model's and the dataset's files, in their order, the
// declaration, the settings and this program's version. Paths, times and
// numbers of threads do not count.
absl::StatusOr<std::string> CalibrationKey(const CalibrateJob& job);

}  // namespace requant

#endif  // REQUANT_RUNTIME_CALIBRATION_CALIBRATION_KEY_H_
