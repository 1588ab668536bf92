#include "runtime/statistics/prediction_tensor.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/types.h"

namespace requant {
namespace {

using tensorflow::Tensor;

template <typename From, typename To>
bool AppendIf(const Tensor& tensor, std::vector<To>* values) {
  if (tensor.dtype() != tensorflow::DataTypeToEnum<From>::value) return false;
  const auto flat = tensor.flat<From>();
  values->reserve(flat.size());
  for (int64_t i = 0; i < flat.size(); ++i) {
    values->push_back(static_cast<To>(flat(i)));
  }
  return true;
}

// Appends the values of a tensor of one of the types `From`; returns false for
// other types.
template <typename... From, typename To>
bool AppendAnyOf(const Tensor& tensor, std::vector<To>* values) {
  return (AppendIf<From>(tensor, values) || ...);
}

// How far probabilities in low precision, and their sum, may be beyond 0 and 1.
constexpr double kTolerance = 1e-2;

bool IsFinite(absl::Span<const float> values) {
  return std::all_of(values.begin(), values.end(),
                     [](float value) { return std::isfinite(value); });
}

// Returns whether each record's values are probabilities, and of several ones
// whether they sum to 1. Ignores records with NaN or infinite values, because
// the graph is damaged.
bool AreProbabilities(const Tensor& prediction, int64_t values_per_record) {
  std::vector<float> buffer;
  const auto values = FloatValues(prediction, &buffer);
  if (!values.ok()) return values_per_record == 1;
  const double beyond = values_per_record == 1 ? kTolerance : 0;
  for (size_t i = 0; i < values->size(); i += values_per_record) {
    const auto record = values->subspan(i, values_per_record);
    if (!IsFinite(record)) continue;
    double sum = 0;
    for (const float value : record) {
      if (!(value >= -beyond && value <= 1 + beyond)) return false;
      sum += value;
    }
    if (values_per_record > 1 && std::abs(sum - 1) > kTolerance) return false;
  }
  return true;
}

PredictionSpec::Kind GuessKind(const PredictionSpec& spec,
                               const Tensor& prediction,
                               int64_t values_per_record) {
  // Only a probability has a threshold.
  if (values_per_record == 1 && spec.threshold() != 0) {
    return PredictionSpec::PROBABILITY;
  }
  const bool probable = AreProbabilities(prediction, values_per_record);
  if (values_per_record == 1) {
    return probable ? PredictionSpec::PROBABILITY : PredictionSpec::VALUE;
  }
  return probable ? PredictionSpec::PROBABILITIES : PredictionSpec::SCORES;
}

// Rejects meaningless formats, such as SCORES of one class.
absl::Status CheckFormat(const PredictionFormat& format) {
  if (format.values_per_record < 1) {
    return absl::InvalidArgumentError("a prediction has no values");
  }
  switch (format.kind) {
    case PredictionSpec::PROBABILITIES:
    case PredictionSpec::SCORES:
      if (format.values_per_record == 1) {
        return absl::InvalidArgumentError(
            "the prediction has one value per record, but was declared to have "
            "one per class; declare it as PROBABILITY or VALUE");
      }
      break;
    case PredictionSpec::PROBABILITY:
      if (format.values_per_record != 1) {
        return absl::InvalidArgumentError(absl::StrCat(
            "the prediction has ", format.values_per_record,
            " values per record, but was declared as the one probability of "
            "class 1; declare it as PROBABILITIES or SCORES"));
      }
      if (!std::isfinite(format.threshold)) {
        return absl::InvalidArgumentError("the threshold is not a number");
      }
      break;
    default:
      break;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PredictionFormat> FormatOf(const PredictionSpec& spec,
                                          const std::string& tensor_name,
                                          const Tensor& prediction,
                                          int64_t records) {
  if (prediction.dims() < 1 || prediction.dim_size(0) != records) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the output ", tensor_name, " has shape ",
        prediction.shape().DebugString(), " for a batch of ", records,
        " records: its first dimension must count the records"));
  }
  if (!PredictionSpec::Kind_IsValid(spec.kind())) {
    return absl::InvalidArgumentError(
        absl::StrCat("a prediction of unknown kind ", spec.kind()));
  }
  PredictionFormat format;
  format.values_per_record =
      records == 0 ? 0 : prediction.NumElements() / records;
  format.kind = spec.kind() == PredictionSpec::KIND_AUTO
                    ? GuessKind(spec, prediction, format.values_per_record)
                    : spec.kind();
  if (spec.threshold() != 0) format.threshold = spec.threshold();
  const absl::Status checked = CheckFormat(format);
  if (!checked.ok()) {
    return absl::Status(checked.code(),
                        absl::StrCat("the output ", tensor_name, " of shape ",
                                     prediction.shape().DebugString(), ": ",
                                     checked.message()));
  }
  return format;
}

absl::StatusOr<absl::Span<const float>> FloatValues(
    const Tensor& tensor, std::vector<float>* buffer) {
  buffer->clear();
  if (tensor.dtype() == tensorflow::DT_FLOAT) {
    const auto flat = tensor.flat<float>();
    return absl::MakeConstSpan(flat.data(), flat.size());
  }
  if (!AppendAnyOf<double, Eigen::half, tensorflow::bfloat16>(tensor, buffer)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "it is of type ", tensorflow::DataTypeString(tensor.dtype()),
        ", not of a floating-point type"));
  }
  return absl::MakeConstSpan(*buffer);
}

absl::StatusOr<std::vector<double>> LabelValues(const Tensor& labels) {
  std::vector<double> values;
  if (!AppendAnyOf<int64_t, int32_t, int8_t, uint8_t, bool, double, float,
                   Eigen::half, tensorflow::bfloat16>(labels, &values)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "labels of type ", tensorflow::DataTypeString(labels.dtype()),
        " are no numbers"));
  }
  return values;
}

}  // namespace requant
