#ifndef REQUANT_RUNTIME_STATISTICS_PAIRED_COMPARISON_H_
#define REQUANT_RUNTIME_STATISTICS_PAIRED_COMPARISON_H_

// Compares two graphs on the same records: what changed from the baseline to
// the candidate, and how certain that is. Pairing removes the difficulty of the
// records from the comparison: only the few records on which the two differ
// count, so that a drop of a tenth of a point shows in thousands of records
// rather than millions.

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/types/span.h"
#include "runtime/evaluation.pb.h"
#include "runtime/session/job.pb.h"
#include "runtime/statistics/metrics.h"
#include "runtime/statistics/stable_sum.h"

namespace requant {

inline Interval MakeInterval(double low, double high) {
  Interval interval;
  interval.set_low(low);
  interval.set_high(high);
  return interval;
}

// Returns the interval of P(candidate right) − P(baseline right), as fractions,
// from `records` pairs of which only the candidate was right on
// `only_candidate` and only the baseline on `only_baseline`.
//
// This is Bonett and Price's adjusted Wald interval (2012), which adds one to
// each of the two counts. Its width is never zero: without differing pairs
// among n records it is ±2.77 / (n + 2) for large n. Its coverage, summed over
// all outcomes for n from 10 to 100000 and for expected counts from 0 to 40, is
// 97 % on average and at least 92.7 %; for n of 100 or more it falls below 94 %
// in 1 % of the cases, those where all changes go one way. Tango's score
// interval covers about the same with more work; Agresti and Min's, which adds
// a half to each cell, falls to 86 % exactly where few pairs differ.
Interval PairedDifferenceInterval(int64_t records, int64_t only_candidate,
                                  int64_t only_baseline);

// Returns Wilson's score interval for `successes` of `trials` (at least 1).
Interval ShareInterval(int64_t successes, int64_t trials);

// A figure as it is judged and shown.
struct Estimate {
  double value = 0;
  // Unset if `value` is not an estimate or there are too few records for one.
  std::optional<Interval> interval = std::nullopt;
  // For a largest value, which is not an estimate, the first record with it.
  std::optional<int64_t> record = std::nullopt;
  // Whether a value was finite only in the baseline, which fails any limit.
  bool lost_values = false;
};

// Return the figures of a comparison, or nothing if it does not have them. The
// gain is in percentage points; a drop is negative.
std::optional<Estimate> AccuracyGain(const Comparison& comparison);
std::optional<Estimate> AgreementShare(const Comparison& comparison);
// Return the change of the probability of class 1 if there is one, else that of
// all values.
std::optional<Estimate> MeanOutputChange(const Comparison& comparison);
std::optional<Estimate> MaxOutputChange(const Comparison& comparison);
// Returns the mean squared change of all values.
std::optional<Estimate> Mse(const Comparison& comparison);

enum class Verdict { kPass, kFail, kInconclusive };

// Returns "PASS", "FAIL" or "INCONCLUSIVE".
std::string_view VerdictName(Verdict verdict);

// Return kPass if the whole interval is within or at the limit, kFail if all of
// it is beyond, else kInconclusive (too few records).
Verdict JudgeAtLeast(const Interval& interval, double limit);
Verdict JudgeAtMost(const Interval& interval, double limit);

// Judges a figure by its interval, without which it is inconclusive, or by its
// value if it is not an estimate.
Verdict JudgeFigure(const Estimate& estimate, double limit, bool at_least);

class PairedComparison {
 public:
  explicit PairedComparison(const PredictionFormat& format) : format_(format) {}

  // Adds records from `first_record` on, with as many values of the baseline as
  // of the candidate, and with labels as MetricAccumulator::Add takes them, or
  // none.
  void Add(int64_t first_record, absl::Span<const float> baseline,
           absl::Span<const float> candidate, absl::Span<const double> labels);

  Comparison Result() const;

 private:
  // Computes the mean, spread and maximum of one change per record.
  class ChangeAccumulator {
   public:
    void Add(int64_t record, double mean, double max);
    int64_t records() const { return records_; }
    // Requires at least one record.
    OutputChange Result() const;

   private:
    int64_t records_ = 0;
    // Welford's running mean of the changes, and the sum of their squared
    // distances from it.
    double running_mean_ = 0;
    StableSum squared_distance_;
    StableSum sum_;
    double max_ = 0;
    int64_t max_record_ = 0;
  };

  void AddClasses(absl::Span<const float> baseline,
                  absl::Span<const float> candidate,
                  std::optional<double> label);
  void AddChange(int64_t record, absl::Span<const float> baseline,
                 absl::Span<const float> candidate);

  PredictionFormat format_;
  int64_t records_ = 0;
  int64_t labelled_records_ = 0;
  int64_t agreeing_records_ = 0;
  int64_t both_correct_ = 0;
  int64_t only_baseline_correct_ = 0;
  int64_t only_candidate_correct_ = 0;
  int64_t lost_values_ = 0;
  NonFinite baseline_non_finite_;
  NonFinite candidate_non_finite_;
  ChangeAccumulator output_change_;
  ChangeAccumulator squared_change_;
  ChangeAccumulator class_1_change_;
};

// Measures how far an output is from another model's over all batches: the mean
// squared error, the largest difference, the cosine of the angle between the
// two as vectors, and the number of rows (along the last dimension) in which
// both have their largest value, or the first of several, in the same place.
//
// Values that are finite in only one of the two, or NaN or infinite in
// different ways, are lost; those that are NaN or the same infinity in both are
// never finite. Both kinds are counted and excluded from all other figures. A
// row with a NaN, or whose largest value is infinite, agrees with nothing.
class OutputDifference {
 public:
  // Adds a batch. `row` is the size of the last dimension, at least 1. Both
  // outputs have the same number of values.
  void Add(absl::Span<const float> first, absl::Span<const float> other,
           int64_t row);

  // Returns the figures. The cosine is 1 if both vectors are zero, and 0 if
  // only one is. The figures are NaN if no value is finite in both.
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

#endif  // REQUANT_RUNTIME_STATISTICS_PAIRED_COMPARISON_H_
