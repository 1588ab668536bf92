#ifndef REQUANT_RUNTIME_STATISTICS_ORDER_STATISTICS_H_
#define REQUANT_RUNTIME_STATISTICS_ORDER_STATISTICS_H_

// Figures that a few wild values do not spoil, such as times on a machine that
// others use too.

#include <optional>
#include <vector>

#include "runtime/evaluation.pb.h"

namespace requant {

// The value below which a share `q` (0 to 1) of `values` lies, interpolated
// between neighbours: 0 is the least, 1 the greatest. `values` must not be
// empty.
double Quantile(std::vector<double> values, double q);

double Median(std::vector<double> values);

// The distance between the quartiles, as a share of the median; 0 when the
// median is 0. `values` must not be empty.
double RelativeSpread(const std::vector<double>& values);

// The interval that holds the median of the distribution behind `values` with
// a probability of at least 95 %, whatever that distribution is: from the k-th
// least to the k-th greatest value, with the largest such k. Unset with fewer
// than 6 values, which cannot tell.
std::optional<Interval> MedianInterval(std::vector<double> values);

}  // namespace requant

#endif  // REQUANT_RUNTIME_STATISTICS_ORDER_STATISTICS_H_
