#include "runtime/statistics/batch_timer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/statistics/stable_sum.h"

namespace requant {
namespace {

constexpr int64_t kMaxWarmUpBatches = 100;

}  // namespace

int64_t WarmUpBatches(int64_t batches) {
  if (batches < 2) return 0;
  return std::clamp<int64_t>(batches / 2, 1, kMaxWarmUpBatches);
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
  timing.set_warm_up_batches(WarmUpBatches(batches_));
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
