#ifndef REQUANT_RUNTIME_EVALUATION_STORED_BASELINE_H_
#define REQUANT_RUNTIME_EVALUATION_STORED_BASELINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/evaluation.pb.h"
#include "runtime/evaluation/predictions.h"
#include "runtime/statistics/metrics.h"

namespace requant {

// A baseline that was run before, of which there are the predictions.
class StoredBaseline {
 public:
  // `name` is for errors.
  StoredBaseline(Predictions predictions, std::string name)
      : predictions_(std::move(predictions)), name_(std::move(name)) {}

  // Takes the next `records` records as far as there are stored ones, scores
  // those, and returns how many that are. `first_record` is the number of the
  // first in the data. An error: their predictions are none of `format`, or
  // their labels are not `labels`, so that they are other records.
  absl::StatusOr<int64_t> Take(const PredictionFormat& format,
                               int64_t first_record, int64_t records,
                               absl::Span<const double> labels);

  // Of the records that the last Take returned.
  absl::Span<const float> values() const { return values_; }

  // Unset without labels.
  std::optional<Scores> Result() const;

 private:
  absl::Status CheckFormat(const PredictionFormat& format,
                           int64_t labels_per_record) const;

  const Predictions predictions_;
  const std::string name_;
  int64_t taken_ = 0;
  std::optional<MetricAccumulator> metrics_;
  std::vector<float> values_;
  std::vector<double> labels_;
};

}  // namespace requant

#endif  // REQUANT_RUNTIME_EVALUATION_STORED_BASELINE_H_
