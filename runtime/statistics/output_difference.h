#ifndef REQUANT_RUNTIME_STATISTICS_OUTPUT_DIFFERENCE_H_
#define REQUANT_RUNTIME_STATISTICS_OUTPUT_DIFFERENCE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "runtime/session/worker.pb.h"
#include "runtime/statistics/stable_sum.h"

namespace requant {

// How far an output is from another model's, over all batches together: the
// mean squared error, the largest difference, the cosine of the angle between
// the two as vectors, and of how many rows (along the last dimension) both have
// their largest value, the first of several, in the same place.
//
// Values that are finite in only one of the two, or NaN or infinite in
// different ways, are lost; those that are NaN in both, or the same infinity,
// are never finite. Both are counted and are in no other figure. A row with a
// NaN, or whose largest value is infinite, agrees with nothing.
class OutputDifference {
 public:
  // `row` is the size of the last dimension, at least 1; both have as many
  // values.
  void Add(absl::Span<const float> first, absl::Span<const float> other,
           int64_t row);

  // The cosine of two vectors of which one is zero is 1 if both are, else 0.
  // Without a value that is finite in both, the figures are NaN.
  OutputDifferenceMessage Result() const;

 private:
  void AddRow(absl::Span<const float> first, absl::Span<const float> other);

  int64_t values_ = 0;
  int64_t lost_values_ = 0;
  int64_t never_finite_values_ = 0;
  int64_t rows_ = 0;
  int64_t agreeing_rows_ = 0;
  double max_ = 0;
  StableSum squared_difference_;
  StableSum product_;
  StableSum squared_first_;
  StableSum squared_other_;
};

}  // namespace requant

#endif  // REQUANT_RUNTIME_STATISTICS_OUTPUT_DIFFERENCE_H_
