#ifndef REQUANT_TESTS_SUPPORT_MIXED_RECORDS_H_
#define REQUANT_TESTS_SUPPORT_MIXED_RECORDS_H_

// The records of tests/data/mixed_layers, drawn anew wherever they are needed.
//
// A record is a noisy reading of two hidden states: `signal` (21 floats) of one
// and `context` (10 floats) of the other, most columns of which take both signs
// and no two of which have the same scale. The label, one of five classes, is
// decided by both states together and by neither alone. The noise lets the
// states be mixed up, so that no model can be right always.
//
// Split and row number decide what is drawn, the same on any machine: nothing
// but integer arithmetic and IEEE operations that round one way only.

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
  // Row by row.
  std::vector<float> signal;
  std::vector<float> context;
  std::vector<int64_t> label;
};

MixedRecords DrawMixedRecords(MixedSplit split, int rows);

// Writes them as a NumPy archive (.npz) with the arrays "signal", "context" and
// "label".
absl::Status WriteMixedRecords(const std::string& path, MixedSplit split,
                               int rows);

}  // namespace requant

#endif  // REQUANT_TESTS_SUPPORT_MIXED_RECORDS_H_
