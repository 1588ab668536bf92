#ifndef REQUANT_RUNTIME_STATISTICS_BATCH_TIMER_H_
#define REQUANT_RUNTIME_STATISTICS_BATCH_TIMER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/evaluation.pb.h"
#include "runtime/statistics/stable_sum.h"

namespace requant {

// How many of the first batches are warm-up when there are `batches` in all:
// 100, as in the published recipe, but at most half, so that much of a
// short run is still measured; of two or more batches at least one. A single
// batch is measured itself, cold as it is.
int64_t WarmUpBatches(int64_t batches);

// Times a run whose number of batches is known only when it ends, in flat
// memory: the batches that may turn out to be warm-up, the first 100, are kept
// apart.
class BatchTimer {
 public:
  void Add(int64_t records, double seconds);

  // Of a run that ends here.
  Timing Result() const;

 private:
  struct Batch {
    int64_t records = 0;
    double seconds = 0;
  };

  int64_t batches_ = 0;
  int64_t records_ = 0;
  std::vector<Batch> first_;
  // Of the batches after `first_`.
  int64_t later_records_ = 0;
  StableSum later_seconds_;
};

// The speed of the timed part; unset when nothing was timed.
std::optional<double> RecordsPerSecond(const Timing& timing);

}  // namespace requant

#endif  // REQUANT_RUNTIME_STATISTICS_BATCH_TIMER_H_
