#ifndef REQUANT_RUNTIME_STATISTICS_METRICS_H_
#define REQUANT_RUNTIME_STATISTICS_METRICS_H_

// Measures how well predictions fit their labels. Everything is streaming:
// memory does not grow with the number of records.

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

// Is determined by FormatOf (prediction_tensor.h).
struct PredictionFormat {
  // Never KIND_AUTO. With VALUE there are as many predictions as labels.
  PredictionSpec::Kind kind = PredictionSpec::PROBABILITIES;
  // For PROBABILITIES and SCORES, the number of classes.
  int64_t values_per_record = 2;
  // For PROBABILITY, the least value that means class 1.
  double threshold = 0.5;

  // Returns how many classes there are; 0 for VALUE.
  int64_t classes() const;
  // Returns whether there are two classes, which AUC needs.
  bool binary() const { return classes() == 2; }
};

// What PredictedClass returns if a prediction names no class. It is not a label
// and agrees with nothing.
constexpr int64_t kNoClass = -1;

// Returns the class that one record's values predict: the first of the largest
// or, for PROBABILITY, whether the value is at least the threshold. Returns
// kNoClass for VALUE and if a value is NaN.
int64_t PredictedClass(const PredictionFormat& format,
                       absl::Span<const float> values);

// Returns the probability of class 1 according to one record's values, applying
// softmax to SCORES. The format must be binary.
double ClassOneProbability(const PredictionFormat& format,
                           absl::Span<const float> values);

// NaN predictions count as the worst in every figure: incorrect for accuracy,
// on the wrong side of all others for AUC, and of probability 0 for log loss.
//
// Log loss clamps probabilities to between 1e-15 and 1 − 1e-15, so that one
// confident mistake does not make it infinite.
class MetricAccumulator {
 public:
  explicit MetricAccumulator(const PredictionFormat& format)
      : format_(format) {}

  // Adds records from `first_record` on: `predictions` holds values_per_record
  // values for each, `labels` one label for each (for VALUE, values_per_record
  // labels). Fails, without counting any of them, if a label is missing or is
  // not one of 0 … classes − 1.
  absl::Status Add(int64_t first_record, absl::Span<const float> predictions,
                   absl::Span<const double> labels);

  Scores Result() const;

  // Returns the accuracy in Result(), but fast, because it computes no AUC.
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

// Returns the members of the scores' JSON. Without AUC, its error is null.
JsonMembers ScoresMembers(const Scores& scores);

}  // namespace requant

#endif  // REQUANT_RUNTIME_STATISTICS_METRICS_H_
