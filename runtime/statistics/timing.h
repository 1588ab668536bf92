#ifndef REQUANT_RUNTIME_STATISTICS_TIMING_H_
#define REQUANT_RUNTIME_STATISTICS_TIMING_H_

// The speed of a run, and figures of times that a few wild values do not spoil,
// as on a machine that others use too.

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/evaluation.pb.h"
#include "runtime/statistics/stable_sum.h"

namespace requant {

// Returns the value below which a share `q` (0 to 1) of `values` lies,
// interpolated between neighbours: 0 gives the least, 1 the greatest. `values`
// must not be empty.
double Quantile(std::vector<double> values, double q);

double Median(std::vector<double> values);

// Returns the distance between the quartiles, as a share of the median; 0 when
// the median is 0. `values` must not be empty.
double RelativeSpread(const std::vector<double>& values);

// Returns the interval that holds the median of the distribution that `values`
// come from with a probability of at least 95 %, whatever that distribution is:
// from the k-th least to the k-th greatest value, with the largest such k.
// Unset with fewer than 6 values, which do not determine one.
std::optional<Interval> MedianInterval(std::vector<double> values);

// Times a run whose number of batches is known only when it ends, in flat
// memory: the batches that may turn out to be warm-up, the first 100, are kept
// apart. Of all batches 100 are warm-up, as in the published recipe, but at
// most half, so that much of a short run is still measured. A single batch is
// measured itself, cold as it is.
class BatchTimer {
 public:
  void Add(int64_t records, double seconds);

  // Returns the times of a run that ends here.
  Timing Result() const;

 private:
  struct Batch {
    int64_t records = 0;
    double seconds = 0;
  };

  int64_t batches_ = 0;
  int64_t records_ = 0;
  std::vector<Batch> first_;
  // The batches after `first_`.
  int64_t later_records_ = 0;
  StableSum later_seconds_;
};

// Returns the speed of the timed part; unset when nothing was timed.
std::optional<double> RecordsPerSecond(const Timing& timing);

}  // namespace requant

#endif  // REQUANT_RUNTIME_STATISTICS_TIMING_H_
