#ifndef REQUANT_RUNTIME_STATISTICS_METRICS_H_
#define REQUANT_RUNTIME_STATISTICS_METRICS_H_

// How well predictions fit their labels. Everything is streaming: memory does
// not grow with the number of records.

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/message/message_json.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/evaluation.pb.h"
#include "runtime/statistics/auc.h"
#include "runtime/statistics/stable_sum.h"

namespace requant {

// What FormatOf (prediction_tensor.h) returns.
struct PredictionFormat {
  // Never KIND_AUTO. Of VALUE there are as many numbers as labels.
  PredictionSpec::Kind kind = PredictionSpec::PROBABILITIES;
  // For PROBABILITIES and SCORES the number of classes.
  int64_t values_per_record = 2;
  // For PROBABILITY: class 1 from here on.
  double threshold = 0.5;

  // Returns how many classes there are; 0 for VALUE.
  int64_t classes() const;
  // Returns whether there are two classes, which AUC needs.
  bool binary() const { return classes() == 2; }
};

// What PredictedClass says of a prediction that is no answer. It is no label
// and agrees with nothing.
constexpr int64_t kNoClass = -1;

// Returns the class that one record's values stand for: the first of the
// largest, or, for PROBABILITY, whether the value is at least the threshold.
// It is kNoClass when a value is NaN, and for VALUE.
int64_t PredictedClass(const PredictionFormat& format,
                       absl::Span<const float> values);

// Returns the probability of class 1 by one record's values, with softmax for
// SCORES. The format must be binary.
double ClassOneProbability(const PredictionFormat& format,
                           absl::Span<const float> values);

// NaN predictions are as wrong as can be in every figure: not correct, on the
// wrong side of all others for AUC, of probability 0 for log loss.
//
// Log loss takes probabilities as at least 1e-15 and at most 1 − 1e-15, so that
// one confident mistake does not make it infinite.
class MetricAccumulator {
 public:
  explicit MetricAccumulator(const PredictionFormat& format)
      : format_(format) {}

  // Takes records from `first_record` on: `predictions` holds
  // values_per_record values of each, `labels` one label of each (for VALUE
  // values_per_record labels). A label that is missing or not one of 0 …
  // classes − 1 is an error, after which nothing of them counts.
  absl::Status Add(int64_t first_record, absl::Span<const float> predictions,
                   absl::Span<const double> labels);

  Scores Result() const;

  // Returns Result's accuracy, but at once: AUC takes its time.
  std::optional<double> accuracy() const;

 private:
  void AddClassified(absl::Span<const float> values, int64_t label);
  void AddNumber(absl::Span<const float> values,
                 absl::Span<const double> labels);
  // Returns whether no value is NaN.
  bool CountUnusual(absl::Span<const float> values);

  PredictionFormat format_;
  int64_t records_ = 0;
  int64_t correct_ = 0;
  int64_t nan_records_ = 0;
  int64_t infinite_records_ = 0;
  int64_t improbable_records_ = 0;
  AucAccumulator auc_;
  StableSum log_loss_;
  StableSum squared_error_;
};

// Returns the members of the scores' JSON. Without an AUC its error is null.
JsonMembers ScoresMembers(const Scores& scores);

}  // namespace requant

#endif  // REQUANT_RUNTIME_STATISTICS_METRICS_H_
