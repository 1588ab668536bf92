#ifndef REQUANT_RUNTIME_EVALUATION_PREDICTIONS_H_
#define REQUANT_RUNTIME_EVALUATION_PREDICTIONS_H_

// A file of one graph's predictions, record by record, so that other graphs can
// be compared with it without running it again. A header (what the predictions
// are, how many values and labels a record has), then the labels and the values
// of every record, then the number of records and a checksum, by which a file
// that was cut or damaged is known.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/evaluation.pb.h"
#include "runtime/statistics/metrics.h"

namespace requant {

// As it stands in the file.
struct PredictionsHeader {
  // A PredictionSpec::Kind, never KIND_AUTO.
  int64_t kind = 0;
  // At least 1.
  int64_t values_per_record = 0;
  // 0 for data without labels.
  int64_t labels_per_record = 0;
};

// Makes such a file record by record.
class PredictionsEncoder {
 public:
  explicit PredictionsEncoder(const PredictionsHeader& header);

  const PredictionsHeader& header() const { return header_; }

  // Adds records: `values` and `labels` hold those of one record after those of
  // another, as many as the header says.
  void Add(absl::Span<const float> values, absl::Span<const double> labels);

  // Returns the file. Nothing may be called after that.
  std::string Finish();

 private:
  const PredictionsHeader header_;
  int64_t records_ = 0;
  std::string bytes_;
};

// A baseline that was run before, of which there are the predictions.
class StoredBaseline {
 public:
  // Parses `content`, which may be anything; errors name `name`, the file.
  static absl::StatusOr<StoredBaseline> Parse(std::string content,
                                              const std::string& name);
  static absl::StatusOr<StoredBaseline> Read(const std::string& path);

  // Takes the next `records` records as far as there are stored ones, scores
  // those, and returns how many that are. `first_record` is the number of the
  // first in the data. Fails if the stored predictions have another format or
  // other labels, i.e. come from other records.
  absl::StatusOr<int64_t> Take(const PredictionFormat& format,
                               int64_t first_record, int64_t records,
                               absl::Span<const double> labels);

  // Returns the values of the records that the last Take returned.
  absl::Span<const float> values() const { return values_; }

  // Returns nothing without labels.
  std::optional<Scores> Result() const;

 private:
  absl::Status CheckFormat(const PredictionFormat& format,
                           int64_t labels_per_record) const;
  // Gets the values and labels of the next `count` records.
  void Get(int64_t count);

  std::string name_;
  std::string content_;
  PredictionsHeader header_;
  int64_t records_ = 0;
  int64_t taken_ = 0;
  std::optional<MetricAccumulator> metrics_;
  std::vector<float> values_;
  std::vector<double> labels_;
};

}  // namespace requant

#endif  // REQUANT_RUNTIME_EVALUATION_PREDICTIONS_H_
