#ifndef REQUANT_RUNTIME_STATISTICS_TIMING_H_
#define REQUANT_RUNTIME_STATISTICS_TIMING_H_

// Measures the speed of a run, and summarizes times robustly, because other
// users of the machine cause outliers.

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/evaluation.pb.h"
#include "runtime/statistics/stable_sum.h"

namespace requant {

// Returns the value below which a share `q` (0 to 1) of `values` lies,
// interpolated between neighbors: 0 gives the least and 1 the greatest.
// `values` must not be empty.
double Quantile(std::vector<double> values, double q);

double Median(std::vector<double> values);

// Returns the distance between the quartiles as a fraction of the median, or 0
// if the median is 0. `values` must not be empty.
double RelativeSpread(const std::vector<double>& values);

// Returns an interval that, with a probability of at least 95 %, holds the
// median of the distribution that `values` come from, whatever it is: from the
// k-th least to the k-th greatest value, with the largest such k. Returns
// nothing for fewer than 6 values, which do not determine one.
std::optional<Interval> MedianInterval(std::vector<double> values);

// Times a run whose number of batches is known only at its end, in bounded
// memory: the first 100 batches, which may turn out to be warm-up, are kept
// separately. The warm-up is 100 batches, as in the published recipe, but at
// most half of all, so that much of a short run is still measured. A single
// batch is measured even though it is cold.
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

// Returns the speed of the timed part, or nothing if nothing was timed.
std::optional<double> RecordsPerSecond(const Timing& timing);

}  // namespace requant

#endif  // REQUANT_RUNTIME_STATISTICS_TIMING_H_
