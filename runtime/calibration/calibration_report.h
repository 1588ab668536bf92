#ifndef REQUANT_RUNTIME_CALIBRATION_CALIBRATION_REPORT_H_
#define REQUANT_RUNTIME_CALIBRATION_CALIBRATION_REPORT_H_

// Formats a calibration's ranges for users.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ranges/range_choice.h"
#include "ranges/range_table.h"

namespace requant {

// Returns a line per entry with its least and greatest value, the range that
// the freeze transforms would take, and how much data it took to settle, then a
// summary. Entries without a histogram use minmax. `batch_size` is the number
// of records per observation, or 0 if unknown (merged tables).
absl::StatusOr<std::string> CalibrationText(const RangeTable& table,
                                            const RangeChoiceOptions& choice,
                                            int64_t batch_size);

// Returns one sentence on each likely problem: values that are not finite, and
// ranges that still change at the end.
std::vector<std::string> CalibrationWarnings(const RangeTable& table);

}  // namespace requant

#endif  // REQUANT_RUNTIME_CALIBRATION_CALIBRATION_REPORT_H_
