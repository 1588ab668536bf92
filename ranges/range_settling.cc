#include "ranges/range_settling.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ranges/range_table.h"

namespace requant {
namespace {

// The number of the first observation from which on the running extreme is
// within `tolerance` of the final one.
template <typename Better>
int64_t SettledAfter(const std::vector<float>& values, double tolerance,
                     const Better& better) {
  if (values.empty()) return 0;
  double last = values.front();
  for (float value : values) {
    if (better(value, last)) last = value;
  }
  double running = values.front();
  for (size_t i = 0; i < values.size(); ++i) {
    if (better(values[i], running)) running = values[i];
    if (running - last <= tolerance && last - running <= tolerance) {
      return static_cast<int64_t>(i) + 1;
    }
  }
  return static_cast<int64_t>(values.size());
}

}  // namespace

Settling FindSettling(const RangeEntry& entry) {
  double low = 0, high = 0;
  for (float min : entry.mins) low = std::min<double>(low, min);
  for (float max : entry.maxs) high = std::max<double>(high, max);
  const double tolerance = kSettledFraction * (high - low);
  Settling settling;
  settling.observations =
      std::max(SettledAfter(entry.mins, tolerance,
                            [](double a, double b) { return a < b; }),
               SettledAfter(entry.maxs, tolerance,
                            [](double a, double b) { return a > b; }));
  const int64_t all =
      static_cast<int64_t>(std::max(entry.mins.size(), entry.maxs.size()));
  settling.still_moving =
      all > 1 && settling.observations > all - std::max<int64_t>(1, all / 10);
  return settling;
}

}  // namespace requant
