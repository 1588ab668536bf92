#include "runtime/statistics/paired_comparison.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace requant {
namespace {

// The normal distribution's 97.5 % quantile.
constexpr double kQuantile = 1.959963984540054;

// Fewer records say too little about a mean's spread.
constexpr int64_t kMinRecordsForSpread = 30;

void CountNonFinite(int64_t record, absl::Span<const float> values,
                    NonFinite* counts) {
  for (const float value : values) {
    if (std::isfinite(value)) continue;
    if (std::isnan(value)) {
      counts->set_nan(counts->nan() + 1);
    } else {
      counts->set_infinite(counts->infinite() + 1);
    }
    if (!counts->has_first_record()) counts->set_first_record(record);
  }
}

double ClassOneChange(const PredictionFormat& format,
                      absl::Span<const float> baseline,
                      absl::Span<const float> candidate) {
  return std::abs(ClassOneProbability(format, candidate) -
                  ClassOneProbability(format, baseline));
}

// Returns the change to judge, or null if no value was finite in both.
const OutputChange* JudgedChange(const Comparison& comparison) {
  if (comparison.has_class_1_change()) return &comparison.class_1_change();
  if (comparison.has_output_change()) return &comparison.output_change();
  return nullptr;
}

Estimate MeanOf(const OutputChange& change, const Comparison& comparison) {
  Estimate mean{change.mean()};
  if (change.has_interval()) mean.interval = change.interval();
  mean.lost_values = comparison.lost_values() > 0;
  return mean;
}

double Cosine(double product, double squared_first, double squared_other) {
  if (squared_first == 0 || squared_other == 0) {
    return squared_first == squared_other ? 1 : 0;
  }
  // A single root makes the cosine of equal vectors exactly 1.
  const double cosine = product / std::sqrt(squared_first * squared_other);
  return std::clamp(cosine, -1.0, 1.0);
}

// Returns whether both are NaN, or the same infinity.
bool AlikeWithoutAValue(float first, float other) {
  return (std::isnan(first) && std::isnan(other)) || first == other;
}

}  // namespace

Interval PairedDifferenceInterval(int64_t records, int64_t only_candidate,
                                  int64_t only_baseline) {
  const double trials = static_cast<double>(records) + 2;
  const double up = (static_cast<double>(only_candidate) + 1) / trials;
  const double down = (static_cast<double>(only_baseline) + 1) / trials;
  const double difference = up - down;
  const double variance =
      std::max(0.0, up + down - difference * difference) / trials;
  const double half_width = kQuantile * std::sqrt(variance);
  return MakeInterval(std::max(-1.0, difference - half_width),
                      std::min(1.0, difference + half_width));
}

Interval ShareInterval(int64_t successes, int64_t trials) {
  const double n = static_cast<double>(trials);
  const double share = static_cast<double>(successes) / n;
  const double squared = kQuantile * kQuantile;
  const double center = (share + squared / (2 * n)) / (1 + squared / n);
  const double half_width =
      kQuantile * std::sqrt(share * (1 - share) / n + squared / (4 * n * n)) /
      (1 + squared / n);
  // Rounding must not put a share of 0 or 1 outside its interval.
  return MakeInterval(successes == 0 ? 0.0 : center - half_width,
                      successes == trials ? 1.0 : center + half_width);
}

std::optional<Estimate> AccuracyGain(const Comparison& comparison) {
  if (!comparison.has_accuracy()) return std::nullopt;
  return Estimate{comparison.accuracy().points(),
                  comparison.accuracy().interval()};
}

std::optional<Estimate> AgreementShare(const Comparison& comparison) {
  if (!comparison.has_agreement()) return std::nullopt;
  return Estimate{comparison.agreement().share(),
                  comparison.agreement().interval()};
}

std::optional<Estimate> MeanOutputChange(const Comparison& comparison) {
  const OutputChange* const change = JudgedChange(comparison);
  if (change == nullptr) return std::nullopt;
  return MeanOf(*change, comparison);
}

std::optional<Estimate> MaxOutputChange(const Comparison& comparison) {
  const OutputChange* const change = JudgedChange(comparison);
  if (change == nullptr) return std::nullopt;
  return Estimate{change->max(), std::nullopt, change->max_record()};
}

std::optional<Estimate> Mse(const Comparison& comparison) {
  if (!comparison.has_squared_change()) return std::nullopt;
  return MeanOf(comparison.squared_change(), comparison);
}

std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return "PASS";
    case Verdict::kFail:
      return "FAIL";
    case Verdict::kInconclusive:
      break;
  }
  return "INCONCLUSIVE";
}

Verdict JudgeAtLeast(const Interval& interval, double limit) {
  if (interval.low() >= limit) return Verdict::kPass;
  if (interval.high() < limit) return Verdict::kFail;
  return Verdict::kInconclusive;
}

Verdict JudgeAtMost(const Interval& interval, double limit) {
  return JudgeAtLeast(MakeInterval(-interval.high(), -interval.low()), -limit);
}

Verdict JudgeFigure(const Estimate& estimate, double limit, bool at_least) {
  if (estimate.lost_values) return Verdict::kFail;
  if (estimate.record.has_value()) {
    return estimate.value <= limit ? Verdict::kPass : Verdict::kFail;
  }
  if (!estimate.interval.has_value()) return Verdict::kInconclusive;
  return at_least ? JudgeAtLeast(*estimate.interval, limit)
                  : JudgeAtMost(*estimate.interval, limit);
}

void PairedComparison::ChangeAccumulator::Add(int64_t record, double mean,
                                              double max) {
  if (records_ == 0 || max > max_) {
    max_ = max;
    max_record_ = record;
  }
  ++records_;
  sum_.Add(mean);
  const double distance = mean - running_mean_;
  running_mean_ += distance / static_cast<double>(records_);
  squared_distance_.Add(distance * (mean - running_mean_));
}

OutputChange PairedComparison::ChangeAccumulator::Result() const {
  OutputChange change;
  const double records = static_cast<double>(records_);
  change.set_mean(sum_.value() / records);
  change.set_max(max_);
  change.set_max_record(max_record_);
  if (records_ >= kMinRecordsForSpread) {
    const double half_width = kQuantile * std::sqrt(squared_distance_.value() /
                                                    (records - 1) / records);
    *change.mutable_interval() = MakeInterval(
        std::max(0.0, change.mean() - half_width), change.mean() + half_width);
  }
  return change;
}

void PairedComparison::Add(int64_t first_record,
                           absl::Span<const float> baseline,
                           absl::Span<const float> candidate,
                           absl::Span<const double> labels) {
  const size_t width = format_.values_per_record;
  const size_t records = baseline.size() / width;
  const bool has_classes = format_.kind != PredictionSpec::VALUE;
  const bool has_labels = has_classes && !labels.empty();
  for (size_t i = 0; i < records; ++i) {
    const absl::Span<const float> old_values =
        baseline.subspan(i * width, width);
    const absl::Span<const float> new_values =
        candidate.subspan(i * width, width);
    ++records_;
    if (has_classes) {
      AddClasses(old_values, new_values,
                 has_labels ? std::optional<double>(labels[i]) : std::nullopt);
    }
    AddChange(first_record + static_cast<int64_t>(i), old_values, new_values);
  }
}

void PairedComparison::AddClasses(absl::Span<const float> baseline,
                                  absl::Span<const float> candidate,
                                  std::optional<double> label) {
  const int64_t old_class = PredictedClass(format_, baseline);
  const int64_t new_class = PredictedClass(format_, candidate);
  agreeing_records_ += old_class == new_class && old_class != kNoClass;
  if (!label.has_value()) return;
  ++labelled_records_;
  const bool old_correct = old_class == *label;
  const bool new_correct = new_class == *label;
  both_correct_ += old_correct && new_correct;
  only_baseline_correct_ += old_correct && !new_correct;
  only_candidate_correct_ += new_correct && !old_correct;
}

void PairedComparison::AddChange(int64_t record,
                                 absl::Span<const float> baseline,
                                 absl::Span<const float> candidate) {
  CountNonFinite(record, baseline, &baseline_non_finite_);
  CountNonFinite(record, candidate, &candidate_non_finite_);
  int64_t compared = 0;
  double sum = 0;
  double sum_of_squares = 0;
  double max = 0;
  for (size_t i = 0; i < baseline.size(); ++i) {
    if (!std::isfinite(baseline[i])) continue;
    if (!std::isfinite(candidate[i])) {
      ++lost_values_;
      continue;
    }
    const double change =
        std::abs(static_cast<double>(candidate[i]) - baseline[i]);
    ++compared;
    sum += change;
    sum_of_squares += change * change;
    max = std::max(max, change);
  }
  if (compared > 0) {
    const double count = static_cast<double>(compared);
    output_change_.Add(record, sum / count, max);
    squared_change_.Add(record, sum_of_squares / count, max * max);
  }
  if (format_.binary() && compared == format_.values_per_record) {
    const double change = ClassOneChange(format_, baseline, candidate);
    class_1_change_.Add(record, change, change);
  }
}

Comparison PairedComparison::Result() const {
  Comparison comparison;
  comparison.set_records(records_);
  if (output_change_.records() > 0) {
    *comparison.mutable_output_change() = output_change_.Result();
    *comparison.mutable_squared_change() = squared_change_.Result();
  }
  if (class_1_change_.records() > 0) {
    *comparison.mutable_class_1_change() = class_1_change_.Result();
  }
  *comparison.mutable_baseline_non_finite() = baseline_non_finite_;
  *comparison.mutable_candidate_non_finite() = candidate_non_finite_;
  comparison.set_lost_values(lost_values_);
  if (format_.kind == PredictionSpec::VALUE || records_ == 0) {
    return comparison;
  }
  Agreement& agreement = *comparison.mutable_agreement();
  agreement.set_records(agreeing_records_);
  agreement.set_share(static_cast<double>(agreeing_records_) /
                      static_cast<double>(records_));
  *agreement.mutable_interval() = ShareInterval(agreeing_records_, records_);
  if (labelled_records_ == 0) return comparison;
  AccuracyDifference& accuracy = *comparison.mutable_accuracy();
  accuracy.set_baseline_correct(both_correct_ + only_baseline_correct_);
  accuracy.set_candidate_correct(both_correct_ + only_candidate_correct_);
  accuracy.set_only_baseline_correct(only_baseline_correct_);
  accuracy.set_only_candidate_correct(only_candidate_correct_);
  accuracy.set_points(
      100.0 *
      static_cast<double>(only_candidate_correct_ - only_baseline_correct_) /
      static_cast<double>(labelled_records_));
  const Interval interval = PairedDifferenceInterval(
      labelled_records_, only_candidate_correct_, only_baseline_correct_);
  *accuracy.mutable_interval() =
      MakeInterval(100 * interval.low(), 100 * interval.high());
  return comparison;
}

void OutputDifference::Add(absl::Span<const float> first,
                           absl::Span<const float> other, int64_t row) {
  for (size_t i = 0; i < first.size(); ++i) {
    if (!std::isfinite(first[i]) || !std::isfinite(other[i])) {
      ++(AlikeWithoutAValue(first[i], other[i]) ? never_finite_values_
                                                : lost_values_);
      continue;
    }
    const double a = first[i], b = other[i];
    ++values_;
    max_ = std::max(max_, std::abs(a - b));
    squared_difference_.Add((a - b) * (a - b));
    product_.Add(a * b);
    squared_first_.Add(a * a);
    squared_other_.Add(b * b);
  }
  if (row < 2) return;
  for (size_t i = 0; i + row <= first.size(); i += row) {
    AddRow(first.subspan(i, row), other.subspan(i, row));
  }
}

void OutputDifference::AddRow(absl::Span<const float> first,
                              absl::Span<const float> other) {
  PredictionFormat format;
  format.kind = PredictionSpec::SCORES;
  const int64_t best = PredictedClass(format, first);
  ++rows_;
  agreeing_rows_ += best != kNoClass && best == PredictedClass(format, other) &&
                    std::isfinite(first[best]) && std::isfinite(other[best]);
}

OutputDifferenceMessage OutputDifference::Result() const {
  OutputDifferenceMessage message;
  message.set_values(values_);
  if (values_ > 0) {
    message.set_mse(squared_difference_.value() / static_cast<double>(values_));
    message.set_max(max_);
    message.set_cosine(Cosine(product_.value(), squared_first_.value(),
                              squared_other_.value()));
  } else {
    constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
    message.set_mse(kUnknown);
    message.set_max(kUnknown);
    message.set_cosine(kUnknown);
  }
  message.set_rows(rows_);
  message.set_agreeing_rows(agreeing_rows_);
  message.set_lost_values(lost_values_);
  message.set_never_finite_values(never_finite_values_);
  return message;
}

}  // namespace requant
