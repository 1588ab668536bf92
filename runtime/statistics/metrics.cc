#include "runtime/statistics/metrics.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace requant {
namespace {

// The rounding error of a softmax in float stays below this.
constexpr double kProbabilityTolerance = 1e-4;

// The least distance from 0 and 1 of a probability in log loss.
constexpr double kLeastProbability = 1e-15;

// Returns the log-softmax at `label`, without overflow for finite scores.
double LogSoftmax(absl::Span<const float> scores, int64_t label) {
  const double largest = *std::max_element(scores.begin(), scores.end());
  const double score = scores[label];
  // If scores are infinite, those that are +inf share the probability.
  if (score == largest && std::isinf(largest)) {
    return -std::log(static_cast<double>(
        std::count(scores.begin(), scores.end(), scores[label])));
  }
  double sum = 0;
  for (const float other : scores) {
    // inf - inf would be NaN.
    sum += other == largest ? 1.0 : std::exp(other - largest);
  }
  return score - largest - std::log(sum);
}

double LogLoss(const PredictionFormat& format, absl::Span<const float> values,
               int64_t label) {
  if (format.kind == PredictionSpec::SCORES) {
    return std::clamp(-LogSoftmax(values, label),
                      -std::log1p(-kLeastProbability),
                      -std::log(kLeastProbability));
  }
  double probability =
      format.kind == PredictionSpec::PROBABILITY ? values[0] : values[label];
  if (format.kind == PredictionSpec::PROBABILITY && label == 0) {
    probability = 1.0 - probability;
  }
  return -std::log(
      std::clamp(probability, kLeastProbability, 1.0 - kLeastProbability));
}

// Returns the score that AUC ranks records by, which may be anything that grows
// with the probability of class 1.
float RankingScore(const PredictionFormat& format,
                   absl::Span<const float> values) {
  if (format.kind == PredictionSpec::PROBABILITY) return values[0];
  if (format.kind == PredictionSpec::PROBABILITIES) return values[1];
  if (values[0] == values[1]) return 0;  // Holds even if both are infinite.
  return values[1] - values[0];
}

absl::Status CheckLabelCount(const PredictionFormat& format,
                             absl::Span<const float> predictions,
                             absl::Span<const double> labels) {
  const int64_t labels_per_record =
      format.kind == PredictionSpec::VALUE ? format.values_per_record : 1;
  const int64_t records =
      static_cast<int64_t>(predictions.size()) / format.values_per_record;
  if (records * labels_per_record != static_cast<int64_t>(labels.size())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a batch has predictions for ", records, " records but ", labels.size(),
        " labels; expected ", labels_per_record,
        labels_per_record == 1 ? " label" : " labels", " per record"));
  }
  return absl::OkStatus();
}

// Checks labels, which are doubles because those can represent class numbers of
// every integer type. `first_record` is the number of the first record.
absl::Status CheckClassLabels(int64_t classes, int64_t first_record,
                              absl::Span<const double> labels) {
  for (size_t i = 0; i < labels.size(); ++i) {
    const double label = labels[i];
    if (label >= 0 && label < static_cast<double>(classes) &&
        label == std::floor(label)) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "the label of record ", first_record + static_cast<int64_t>(i),
        " (counting from 0 over all files) is ", label, "; the prediction has ",
        classes, " classes, so labels must be whole numbers from 0 to ",
        classes - 1));
  }
  return absl::OkStatus();
}

absl::Status CheckNumberLabels(int64_t labels_per_record, int64_t first_record,
                               absl::Span<const double> labels) {
  for (size_t i = 0; i < labels.size(); ++i) {
    if (std::isfinite(labels[i])) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the label of record ",
                     first_record + static_cast<int64_t>(i) / labels_per_record,
                     " (counting from 0 over all files) is ", labels[i],
                     ", not a finite number"));
  }
  return absl::OkStatus();
}

}  // namespace

int64_t PredictionFormat::classes() const {
  switch (kind) {
    case PredictionSpec::PROBABILITIES:
    case PredictionSpec::SCORES:
      return values_per_record;
    case PredictionSpec::PROBABILITY:
      return 2;
    default:
      return 0;
  }
}

int64_t PredictedClass(const PredictionFormat& format,
                       absl::Span<const float> values) {
  if (format.kind == PredictionSpec::VALUE) return kNoClass;
  if (format.kind == PredictionSpec::PROBABILITY) {
    if (std::isnan(values[0])) return kNoClass;
    return values[0] >= format.threshold ? 1 : 0;
  }
  int64_t best = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(values.size()); ++i) {
    if (std::isnan(values[i])) return kNoClass;
    if (values[i] > values[best]) best = i;
  }
  return best;
}

double ClassOneProbability(const PredictionFormat& format,
                           absl::Span<const float> values) {
  if (format.kind == PredictionSpec::PROBABILITY) return values[0];
  if (format.kind == PredictionSpec::PROBABILITIES) return values[1];
  const double difference =
      values[0] == values[1] ? 0.0 : static_cast<double>(values[1]) - values[0];
  return 1.0 / (1.0 + std::exp(-difference));
}

absl::Status MetricAccumulator::Add(int64_t first_record,
                                    absl::Span<const float> predictions,
                                    absl::Span<const double> labels) {
  REQUANT_RETURN_IF_ERROR(CheckLabelCount(format_, predictions, labels));
  const bool is_value = format_.kind == PredictionSpec::VALUE;
  if (is_value) {
    REQUANT_RETURN_IF_ERROR(
        CheckNumberLabels(format_.values_per_record, first_record, labels));
  } else {
    REQUANT_RETURN_IF_ERROR(
        CheckClassLabels(format_.classes(), first_record, labels));
  }
  const size_t width = format_.values_per_record;
  for (size_t begin = 0; begin < predictions.size(); begin += width) {
    const absl::Span<const float> values = predictions.subspan(begin, width);
    if (is_value) {
      AddNumber(values, labels.subspan(begin, width));
    } else {
      AddClassified(values, static_cast<int64_t>(labels[begin / width]));
    }
  }
  return absl::OkStatus();
}

bool MetricAccumulator::CountUnusual(absl::Span<const float> values) {
  const bool promised_probabilities =
      format_.kind == PredictionSpec::PROBABILITIES ||
      format_.kind == PredictionSpec::PROBABILITY;
  bool nan = false;
  bool infinite = false;
  bool improbable = false;
  for (const float value : values) {
    if (std::isnan(value)) {
      nan = true;
    } else if (std::isinf(value)) {
      infinite = improbable = true;
    } else if (value < -kProbabilityTolerance ||
               value > 1 + kProbabilityTolerance) {
      improbable = true;
    }
  }
  nan_records_ += nan;
  infinite_records_ += infinite;
  improbable_records_ += promised_probabilities && improbable;
  return !nan;
}

void MetricAccumulator::AddClassified(absl::Span<const float> values,
                                      int64_t label) {
  ++records_;
  const bool is_number = CountUnusual(values);
  correct_ += PredictedClass(format_, values) == label;
  if (format_.binary()) {
    auc_.Add(is_number ? RankingScore(format_, values) : NAN, label == 1);
  }
  log_loss_.Add(is_number ? LogLoss(format_, values, label)
                          : -std::log(kLeastProbability));
}

void MetricAccumulator::AddNumber(absl::Span<const float> values,
                                  absl::Span<const double> labels) {
  ++records_;
  CountUnusual(values);
  for (size_t i = 0; i < values.size(); ++i) {
    const double error = values[i] - labels[i];
    squared_error_.Add(error * error);
  }
}

std::optional<double> MetricAccumulator::accuracy() const {
  if (records_ == 0 || format_.kind == PredictionSpec::VALUE) {
    return std::nullopt;
  }
  return static_cast<double>(correct_) / static_cast<double>(records_);
}

Scores MetricAccumulator::Result() const {
  Scores scores;
  scores.set_records(records_);
  scores.set_nan_records(nan_records_);
  scores.set_infinite_records(infinite_records_);
  scores.set_improbable_records(improbable_records_);
  const bool is_value = format_.kind == PredictionSpec::VALUE;
  if (!is_value) scores.set_correct(correct_);
  if (records_ == 0) return scores;
  const double records = static_cast<double>(records_);
  if (is_value) {
    scores.set_rmse(
        std::sqrt(squared_error_.value() /
                  (records * static_cast<double>(format_.values_per_record))));
    return scores;
  }
  scores.set_accuracy(*accuracy());
  if (const std::optional<Auc> auc = auc_.Result()) {
    scores.set_auc(auc->value);
    scores.set_auc_error(auc->max_error);
  }
  if (improbable_records_ == 0) {
    scores.set_log_loss(log_loss_.value() / records);
  }
  return scores;
}

JsonMembers ScoresMembers(const Scores& scores) {
  JsonMembers members = MessageMembers(scores);
  for (auto& [name, value] : members) {
    if (name == "auc_max_error" && !scores.has_auc()) value = "null";
  }
  return members;
}

}  // namespace requant
