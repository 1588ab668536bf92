#ifndef REQUANT_RANGES_RANGE_CHOICE_H_
#define REQUANT_RANGES_RANGE_CHOICE_H_

// Chooses the range to freeze into a graph from what was observed, and checks
// whether enough was observed: the next batches will exceed a range that still
// moves at the end.

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

// What the freeze transforms take for an entry; unset if it has no values.
struct RangeChoice {
  std::optional<float> min;
  std::optional<float> max;
};

enum class RangeMethod {
  // Takes the batches' minima and maxima at the percentiles of the batches.
  kMinMax,
  // Takes a percentile of the values.
  kPercentile,
  // Takes the range for which eight bits have the smallest mean squared error,
  // from rounding inside and clipping outside.
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
  // below the max, and the same share above the min.
  double value_percentile = 99.99;
};

// Returns options for the batches' full range, with the method of that name.
// Fails if the name is unknown or `value_percentile` is invalid, even if the
// method does not use it.
absl::StatusOr<RangeChoiceOptions> ReadRangeChoice(std::string_view method,
                                                   double value_percentile);

// Fails if no range may be chosen from the entry, called `name` in messages: it
// has values that are not finite or minima above their maxima.
absl::Status CheckRangeEntry(std::string_view name, const RangeEntry& entry);

// Returns the choice of kMinMax.
RangeChoice ChooseRange(const RangeEntry& entry,
                        const Percentiles& percentiles);

// Chooses by any method. All but kMinMax need the entry's histogram and include
// zero. kMse leaves the lower end at zero if no value is below it.
absl::StatusOr<RangeChoice> ChooseRangeBy(const RangeChoiceOptions& options,
                                          const RangeEntry& entry);

// Does the same for ranges from -m to m, in which eight bits give 127 levels on
// either side of zero; returns m, which is 0 if nothing but zeros was observed.
// kMse minimizes the error with these levels.
absl::StatusOr<float> ChooseMagnitudeBy(const RangeChoiceOptions& options,
                                        const RangeEntry& entry);

// How much had to be observed before a range stopped moving.
struct Settling {
  // The number of observations after which neither end of the range observed so
  // far moved by more than 1% of its final width in total, or 0 if there are
  // none.
  int64_t observations = 0;
  // Whether it moved in the last tenth of several observations, or at least in
  // the last one, so that more observations would move it further.
  bool still_moving = false;
};

// Examines the entry's observations in order. The width is that of the range
// with zero included.
Settling FindSettling(const RangeEntry& entry);

// Ranges with fewer values are not examined for drift.
inline constexpr int kMinValuesForDrift = 8;

// Returns at most one sentence for either side:
//
// - "min moved by 12% of the range in the last quarter of 40 values (-1 ->
//   -1.3)", if the last quarter changed the value that the freeze transforms
//   take by more than 5%; or else
// - "min is still moving: ...", if the median of the last quarter (of five
//   values or more) is outside the 5th to 95th percentile of the values before,
//   and more than 5% of the range away from their median: a trend, although the
//   choice did not move.
std::vector<std::string> FindDrift(const RangeEntry& entry,
                                   const Percentiles& percentiles);

}  // namespace requant

#endif  // REQUANT_RANGES_RANGE_CHOICE_H_
