#include "runtime/statistics/timing.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "runtime/statistics/paired_comparison.h"

namespace requant {
namespace {

constexpr int64_t kMaxWarmUpBatches = 100;

}  // namespace

double Quantile(std::vector<double> values, double q) {
  const double position = q * static_cast<double>(values.size() - 1);
  const size_t below = static_cast<size_t>(position);
  std::nth_element(values.begin(), values.begin() + below, values.end());
  const double low = values[below];
  if (below + 1 == values.size()) return low;
  const double high =
      *std::min_element(values.begin() + below + 1, values.end());
  return low + (position - static_cast<double>(below)) * (high - low);
}

double Median(std::vector<double> values) {
  return Quantile(std::move(values), 0.5);
}

double RelativeSpread(const std::vector<double>& values) {
  const double median = Median(values);
  if (median == 0) return 0;
  return (Quantile(values, 0.75) - Quantile(values, 0.25)) / std::abs(median);
}

std::optional<Interval> MedianInterval(std::vector<double> values) {
  // The number of n values below the median is binomial (n, 1/2). The k-th
  // values from both ends miss it if fewer than k lie on one side of it.
  constexpr double kMaxTail = 0.025;
  const double n = static_cast<double>(values.size());
  const auto probability = [n](double below) {
    return std::exp(std::lgamma(n + 1) - std::lgamma(below + 1) -
                    std::lgamma(n - below + 1) - n * std::log(2));
  };
  double tail = probability(0);
  size_t k = 0;
  while (tail <= kMaxTail) {
    ++k;
    tail += probability(static_cast<double>(k));
  }
  if (k == 0) return std::nullopt;
  std::sort(values.begin(), values.end());
  return MakeInterval(values[k - 1], values[values.size() - k]);
}

void BatchTimer::Add(int64_t records, double seconds) {
  ++batches_;
  records_ += records;
  if (first_.size() < static_cast<size_t>(kMaxWarmUpBatches)) {
    first_.push_back({records, seconds});
    return;
  }
  later_records_ += records;
  later_seconds_.Add(seconds);
}

Timing BatchTimer::Result() const {
  Timing timing;
  timing.set_batches(batches_);
  timing.set_records(records_);
  timing.set_warm_up_batches(std::min(batches_ / 2, kMaxWarmUpBatches));
  int64_t records = later_records_;
  StableSum seconds = later_seconds_;
  for (size_t i = timing.warm_up_batches(); i < first_.size(); ++i) {
    records += first_[i].records;
    seconds.Add(first_[i].seconds);
  }
  timing.set_timed_records(records);
  timing.set_timed_seconds(seconds.value());
  return timing;
}

std::optional<double> RecordsPerSecond(const Timing& timing) {
  if (timing.timed_seconds() <= 0) return std::nullopt;
  return static_cast<double>(timing.timed_records()) / timing.timed_seconds();
}

}  // namespace requant
