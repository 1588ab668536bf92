#ifndef REQUANT_RUNTIME_STATISTICS_BATCH_TIMER_H_
#define REQUANT_RUNTIME_STATISTICS_BATCH_TIMER_H_

#include <cstdint>
#include <vector>

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

  int64_t batches() const { return batches_; }
  int64_t records() const { return records_; }

  // What came after the warm-up of a run that ends here.
  struct Timed {
    int64_t warm_up_batches = 0;
    int64_t records = 0;
    double seconds = 0;
  };
  Timed Result() const;

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

}  // namespace requant

#endif  // REQUANT_RUNTIME_STATISTICS_BATCH_TIMER_H_
