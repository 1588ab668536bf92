#include "runtime/statistics/batch_timer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

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

BatchTimer::Timed BatchTimer::Result() const {
  Timed timed;
  timed.warm_up_batches = WarmUpBatches(batches_);
  timed.records = later_records_;
  StableSum seconds = later_seconds_;
  for (size_t i = timed.warm_up_batches; i < first_.size(); ++i) {
    timed.records += first_[i].records;
    seconds.Add(first_[i].seconds);
  }
  timed.seconds = seconds.value();
  return timed;
}

}  // namespace requant
