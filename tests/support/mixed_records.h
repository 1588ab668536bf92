#ifndef REQUANT_TESTS_SUPPORT_MIXED_RECORDS_H_
#define REQUANT_TESTS_SUPPORT_MIXED_RECORDS_H_

// Draws the records of tests/data/mixed_layers anew wherever they are needed.
//
// A record is a noisy reading of two hidden states: `signal` (21 floats) of one
// and `context` (10 floats) of the other. Most columns take both signs, and no
// two have the same scale. The label, one of five classes, depends on both
// states together and on neither alone. The noise makes states confusable, so
// that no model can always be right.
//
// Split and row number determine a record, which is the same on any machine: it
// needs only integer arithmetic and IEEE operations with exact results.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace requant {

inline constexpr int kMixedSignals = 21;
inline constexpr int kMixedContexts = 10;
inline constexpr int kMixedClasses = 5;

enum class MixedSplit { kTrain = 0, kCalibration = 1, kEval = 2 };

struct MixedRecords {
  // Stored row by row.
  std::vector<float> signal;
  std::vector<float> context;
  std::vector<int64_t> label;
};

MixedRecords DrawMixedRecords(MixedSplit split, int rows);

// Writes the records as a NumPy archive (.npz) with the arrays "signal",
// "context" and "label".
absl::Status WriteMixedRecords(const std::string& path, MixedSplit split,
                               int rows);

}  // namespace requant

#endif  // REQUANT_TESTS_SUPPORT_MIXED_RECORDS_H_
