#include "runtime/statistics/output_difference.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "absl/types/span.h"
#include "runtime/statistics/metrics.h"

namespace requant {
namespace {

double Cosine(double product, double squared_first, double squared_other) {
  if (squared_first == 0 || squared_other == 0) {
    return squared_first == squared_other ? 1 : 0;
  }
  // One root, so that the cosine of equal vectors is exactly 1.
  const double cosine = product / std::sqrt(squared_first * squared_other);
  return std::clamp(cosine, -1.0, 1.0);
}

// NaN in both, or the same infinity.
bool AlikeWithoutAValue(float first, float other) {
  return (std::isnan(first) && std::isnan(other)) || first == other;
}

}  // namespace

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
  format.kind = PredictionKind::kScores;
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
