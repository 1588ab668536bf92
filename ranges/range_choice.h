#ifndef REQUANT_RANGES_RANGE_CHOICE_H_
#define REQUANT_RANGES_RANGE_CHOICE_H_

// From what was observed to the range that is frozen into a graph; and whether
// enough was observed: a range that still moves at the end will be exceeded by
// the next batches.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ranges/range_table.h"

namespace requant {

struct Percentiles {
  float min = 5;
  float max = 5;
};

// What the freeze transforms take for an entry; unset where it has no values.
struct RangeChoice {
  std::optional<float> min;
  std::optional<float> max;
};

enum class RangeMethod {
  // The batches' minima and maxima, at the percentiles of the batches.
  kMinMax,
  // The values, at a percentile of them.
  kPercentile,
  // The range for which eight bits lose least: the mean of the squared error,
  // of rounding inside and of clipping outside, is smallest.
  kMse,
};

// Parses "minmax", "percentile" or "mse"; fails for others and lists these.
absl::StatusOr<RangeMethod> ParseRangeMethod(std::string_view name);
std::string_view RangeMethodName(RangeMethod method);

struct RangeChoiceOptions {
  RangeMethod method = RangeMethod::kMinMax;
  // Used by kMinMax.
  Percentiles percentiles;
  // Used by kPercentile: at least this share of all values, in percent, lies
  // below the max, and as much above the min.
  double value_percentile = 99.99;
};

// Returns options for the whole range of the batches, with the method of that
// name. Fails for another name, and when `value_percentile` is none, whatever
// the method.
absl::StatusOr<RangeChoiceOptions> ReadRangeChoice(std::string_view method,
                                                   double value_percentile);

// Fails when no range may be chosen from the entry, which `name` stands for:
// it has values that are not finite, or minima above their maxima.
absl::Status CheckRangeEntry(std::string_view name, const RangeEntry& entry);

// Returns the choice of kMinMax.
RangeChoice ChooseRange(const RangeEntry& entry,
                        const Percentiles& percentiles);

// Chooses by any method. All but kMinMax need the entry's histogram and include
// zero. kMse leaves the lower end at zero when no value is below it.
absl::StatusOr<RangeChoice> ChooseRangeBy(const RangeChoiceOptions& options,
                                          const RangeEntry& entry);

// Does the same for ranges from -m to m, in which eight bits give 127 levels on
// either side of zero; returns m, which is 0 if only zeros or nothing was
// observed. kMse looks for the m with which those lose least.
absl::StatusOr<float> ChooseMagnitudeBy(const RangeChoiceOptions& options,
                                        const RangeEntry& entry);

// How much had to be observed before a range stopped moving.
struct Settling {
  // The number of observations after which neither end of the range of all
  // observations so far moved by more than 1% of its final width in all; 0:
  // there are none.
  int64_t observations = 0;
  // It moved in the last tenth of several observations, at least in the last:
  // more of them would move it further.
  bool still_moving = false;
};

// Looks at the entry's observations in their order. The width is that of the
// range with zero in it.
Settling FindSettling(const RangeEntry& entry);

}  // namespace requant

#endif  // REQUANT_RANGES_RANGE_CHOICE_H_
