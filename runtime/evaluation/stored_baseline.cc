#include "runtime/evaluation/stored_baseline.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "runtime/statistics/prediction_tensor.h"

namespace requant {
namespace {

bool IsSame(double label, double other) {
  return label == other || (std::isnan(label) && std::isnan(other));
}

}  // namespace

absl::StatusOr<int64_t> StoredBaseline::Take(const PredictionFormat& format,
                                             int64_t first_record,
                                             int64_t records,
                                             absl::Span<const double> labels) {
  const int64_t count = std::min(records, predictions_.records() - taken_);
  if (count <= 0) return 0;
  const int64_t labels_per_record =
      static_cast<int64_t>(labels.size()) / records;
  REQUANT_RETURN_IF_ERROR(CheckFormat(format, labels_per_record));
  predictions_.Get(taken_, count, &values_, &labels_);
  taken_ += count;
  const auto [stored, given] =
      std::mismatch(labels_.begin(), labels_.end(), labels.begin(), IsSame);
  if (stored != labels_.end()) {
    const int64_t record =
        first_record + (stored - labels_.begin()) / labels_per_record;
    return absl::FailedPreconditionError(absl::StrCat(
        "the predictions in ", name_,
        " are of other data: the records differ from record ", record,
        " on, whose label is ", *given, " and was ", *stored));
  }
  if (labels_.empty()) return count;
  if (!metrics_.has_value()) {
    REQUANT_ASSIGN_OR_RETURN(MetricAccumulator metrics,
                             MetricAccumulator::Create(format));
    metrics_.emplace(std::move(metrics));
  }
  REQUANT_RETURN_IF_ERROR(metrics_->Add(first_record, values_, labels_));
  return count;
}

absl::Status StoredBaseline::CheckFormat(const PredictionFormat& format,
                                         int64_t labels_per_record) const {
  const PredictionsFormat& stored = predictions_.format();
  const PredictionSpec::Kind kind = DeclaredKind(format.kind);
  if (stored.kind != kind) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the predictions in ", name_, " are ",
        PredictionSpec::Kind_Name(stored.kind), ", those of the graph ",
        PredictionSpec::Kind_Name(kind),
        ": declare what they are by prediction { kind: ... } in the dataset"));
  }
  if (stored.values_per_record != format.values_per_record) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the predictions in ", name_, " have ", stored.values_per_record,
        " values per record, those of the graph ", format.values_per_record,
        ": they cannot be compared"));
  }
  if (stored.labels_per_record != labels_per_record) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the predictions in ", name_, " are of data with ",
        stored.labels_per_record, " labels per record, where these have ",
        labels_per_record, ": they are other records"));
  }
  return absl::OkStatus();
}

std::optional<Scores> StoredBaseline::Result() const {
  if (!metrics_.has_value()) return std::nullopt;
  return metrics_->Result();
}

}  // namespace requant
