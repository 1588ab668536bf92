#ifndef REQUANT_RUNTIME_CALIBRATION_CALIBRATION_REPORT_H_
#define REQUANT_RUNTIME_CALIBRATION_CALIBRATION_REPORT_H_

// A calibration's ranges for people to read.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ranges/range_choice.h"
#include "ranges/range_table.h"

namespace requant {

// Returns a line for each entry: least and greatest value, the range that the
// freeze transforms would take, and how much it took to settle; then one line
// about all. Entries without a histogram are chosen by minmax. `batch_size` is
// the records per observation; 0: not known, as of merged tables.
absl::StatusOr<std::string> CalibrationText(const RangeTable& table,
                                            const RangeChoiceOptions& choice,
                                            int64_t batch_size);

// Returns what will hurt later, one sentence each: values that are not finite,
// ranges that still move at the end.
std::vector<std::string> CalibrationWarnings(const RangeTable& table);

}  // namespace requant

#endif  // REQUANT_RUNTIME_CALIBRATION_CALIBRATION_REPORT_H_
