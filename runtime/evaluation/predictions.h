#ifndef REQUANT_RUNTIME_EVALUATION_PREDICTIONS_H_
#define REQUANT_RUNTIME_EVALUATION_PREDICTIONS_H_

// A file of one graph's predictions, record by record, lets other graphs be
// compared with it without running it again. It has a header (what the
// predictions are, how many values and labels a record has), the labels and the
// values of every record, and the number of records with a checksum, which
// reveals truncated or damaged files.

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

// The header as it is laid out in the file.
struct PredictionsHeader {
  // A PredictionSpec::Kind, never KIND_AUTO.
  int64_t kind = 0;
  // At least 1.
  int64_t values_per_record = 0;
  // 0 for data without labels.
  int64_t labels_per_record = 0;
};

// Builds such a file record by record.
class PredictionsEncoder {
 public:
  explicit PredictionsEncoder(const PredictionsHeader& header);

  const PredictionsHeader& header() const { return header_; }

  // Adds records. `values` and `labels` are ordered by record and have the
  // numbers per record that the header says.
  void Add(absl::Span<const float> values, absl::Span<const double> labels);

  // Returns the file. Nothing may be called after that.
  std::string Finish();

 private:
  const PredictionsHeader header_;
  int64_t records_ = 0;
  std::string bytes_;
};

// A baseline that ran earlier and whose predictions are stored.
class StoredBaseline {
 public:
  // Parses `content`, which is untrusted; errors name the file, `name`.
  static absl::StatusOr<StoredBaseline> Parse(std::string content,
                                              const std::string& name);
  static absl::StatusOr<StoredBaseline> Read(const std::string& path);

  // Takes the next `records` stored records, or as many as are left, scores
  // them and returns their number. `first_record` is the number of the first
  // one in the data. Fails if the stored predictions have another format or
  // other labels, i.e. come from other records.
  absl::StatusOr<int64_t> Take(const PredictionFormat& format,
                               int64_t first_record, int64_t records,
                               absl::Span<const double> labels);

  PredictionSpec::Kind kind() const {
    return static_cast<PredictionSpec::Kind>(header_.kind);
  }

  // Returns the values of the records that the last Take took.
  absl::Span<const float> values() const { return values_; }

  // Returns nothing without labels.
  std::optional<Scores> Result() const;

 private:
  absl::Status CheckFormat(const PredictionFormat& format,
                           int64_t labels_per_record) const;
  // Reads the values and labels of the next `count` records.
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
