#ifndef REQUANT_RANGES_RANGE_DRIFT_H_
#define REQUANT_RANGES_RANGE_DRIFT_H_

// Whether enough was observed: a range that still moves at the end of a log
// will be exceeded by the next batches.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ranges/range_choice.h"
#include "ranges/range_table.h"

namespace requant {

// With fewer values nothing is said about drift.
inline constexpr int kMinValuesForDrift = 8;
// Moves of less than this fraction of the range are not reported.
inline constexpr float kDriftFraction = 0.05f;

struct Drift {
  enum class Rule {
    // The value that the freeze transforms take changed by more than
    // kDriftFraction of the range when the last quarter of the values came in.
    kChoiceMoved,
    // The median of the last quarter (of five values or more) is outside the
    // 5th to
    // 95th percentile of the values before, and more than kDriftFraction of the
    // range away from their median: a trend, though the choice held.
    kValuesMoved,
  };
  Rule rule;
  // "min" or "max".
  std::string_view side;
  int values = 0;
  float before = 0;
  float after = 0;
  // |after - before| as a fraction of the range.
  float moved = 0;
};

// Returns at most one drift for either side.
std::vector<Drift> FindDrift(const RangeEntry& entry,
                             const Percentiles& percentiles);

// Returns "min moved by 12% of the range in the last quarter of 40 values (-1
// -> -1.3)".
std::string DescribeDrift(const Drift& drift);

// How much had to be observed before a range stopped moving.

// A range has settled once it is within this fraction of its final width of
// what it is in the end.
inline constexpr double kSettledFraction = 0.01;

struct Settling {
  // The number of observations after which neither end of the range of all
  // observations so far moved by more than kSettledFraction in all; 0: there
  // are none.
  int64_t observations = 0;
  // It moved in the last tenth of several observations, at least in the last:
  // more of them would move it further.
  bool still_moving = false;
};

// Looks at the entry's observations in their order. The width is that of the
// range with zero in it.
Settling FindSettling(const RangeEntry& entry);

}  // namespace requant

#endif  // REQUANT_RANGES_RANGE_DRIFT_H_
