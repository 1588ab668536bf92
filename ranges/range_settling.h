#ifndef REQUANT_RANGES_RANGE_SETTLING_H_
#define REQUANT_RANGES_RANGE_SETTLING_H_

// How much had to be observed before a range stopped moving.

#include <cstdint>

#include "ranges/range_table.h"

namespace requant {

// A range has settled once it is within this fraction of its final width of
// what it is in the end.
inline constexpr double kSettledFraction = 0.01;

struct Settling {
  // After so many observations neither end of the range of all observations so
  // far moved any more by more than kSettledFraction in all; 0: there are none.
  int64_t observations = 0;
  // It moved in the last tenth of several observations, at least in the last:
  // more of them would move it further.
  bool still_moving = false;
};

// Of the entry's observations in their order. The width is that of the range
// with zero in it.
Settling FindSettling(const RangeEntry& entry);

}  // namespace requant

#endif  // REQUANT_RANGES_RANGE_SETTLING_H_
