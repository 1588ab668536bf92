#include "ranges/range_choice.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <iterator>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/message_text.h"
#include "base/status_macros.h"
#include "ranges/value_histogram.h"

namespace requant {
namespace {

// The names of RangeMethod's values, in order.
constexpr std::string_view kMethods[] = {"minmax", "percentile", "mse"};

constexpr double kSteps = 255;
constexpr double kStepsOfMagnitude = 127;
// How many candidates for each end the first, coarse search tries.
constexpr int kCoarseCandidates = 96;

// Prefix sums over the buckets, so that the error of a range takes a few
// additions.
class ErrorOfRanges {
 public:
  explicit ErrorOfRanges(const ValueHistogram& histogram)
      : histogram_(histogram), sums_(histogram.counts().size() + 1) {
    const double within = histogram.width() * histogram.width() / 12;
    for (size_t i = 0; i < histogram.counts().size(); ++i) {
      const double count = histogram.counts()[i];
      const double middle = histogram.Edge(i) + histogram.width() / 2;
      sums_[i + 1] = sums_[i];
      sums_[i + 1].count += count;
      sums_[i + 1].value += count * middle;
      // Values are assumed to be spread evenly over the bucket.
      sums_[i + 1].square += count * (middle * middle + within);
    }
  }

  // Returns the squared error of all values for a range whose ends are edges of
  // buckets.
  double Of(int64_t low, int64_t high) const {
    const double min = histogram_.Edge(low), max = histogram_.Edge(high);
    const double step = (std::max(max, 0.0) - std::min(min, 0.0)) / kSteps;
    const double noise = step * step / 12;
    const Sums& below = sums_[low];
    const Sums above = sums_.back() - sums_[high];
    const double inside = sums_[high].count - below.count;
    // Zero is exactly representable if it is an end of the range.
    const double zeros = min < 0 && max > 0 ? histogram_.zeros() : 0;
    return (inside + zeros) * noise + below.SquaredDistance(min) +
           above.SquaredDistance(max);
  }

  // Returns the same for the range from -m to m, where m is that many buckets
  // wide; zero is exactly representable.
  double OfMagnitude(int64_t buckets) const {
    const int64_t size = histogram_.counts().size();
    const int64_t zero = -int64_t{histogram_.first_bucket()};
    const int64_t low = std::clamp<int64_t>(zero - buckets, 0, size);
    const int64_t high = std::clamp<int64_t>(zero + buckets, 0, size);
    const double max = buckets * histogram_.width();
    const double step = max / kStepsOfMagnitude;
    const Sums above = sums_.back() - sums_[high];
    return (sums_[high].count - sums_[low].count) * step * step / 12 +
           sums_[low].SquaredDistance(-max) + above.SquaredDistance(max);
  }

 private:
  struct Sums {
    double count = 0;
    double value = 0;
    double square = 0;

    Sums operator-(const Sums& other) const {
      return {count - other.count, value - other.value, square - other.square};
    }
    double SquaredDistance(double from) const {
      return std::max(0.0, square - 2 * from * value + from * from * count);
    }
  };

  const ValueHistogram& histogram_;
  std::vector<Sums> sums_;
};

// A pair of edge numbers.
struct EdgeRange {
  int64_t low = 0;
  int64_t high = 0;
};

// Returns the candidate with the least error, whose ends are among every
// stride-th edge of `lows` and `highs`, with a stride that limits their number.
EdgeRange BestOf(const ErrorOfRanges& error, const EdgeRange& lows,
                 const EdgeRange& highs, int64_t* stride) {
  const int64_t most = std::max(lows.high - lows.low, highs.high - highs.low);
  *stride =
      std::max<int64_t>(1, (most + kCoarseCandidates - 1) / kCoarseCandidates);
  EdgeRange best{lows.low, highs.high};
  double least = error.Of(best.low, best.high);
  for (int64_t low = lows.low; low <= lows.high; low += *stride) {
    for (int64_t high = highs.high; high >= highs.low; high -= *stride) {
      const double sum = error.Of(low, high);
      if (sum < least) {
        least = sum;
        best = {low, high};
      }
    }
  }
  return best;
}

// Returns the edges with the least error. Each end stays on its side of zero.
EdgeRange LeastError(const ValueHistogram& histogram) {
  const ErrorOfRanges error(histogram);
  const int64_t size = histogram.counts().size();
  // The edge at zero or the end nearest to it.
  const int64_t zero =
      std::clamp<int64_t>(-int64_t{histogram.first_bucket()}, 0, size);
  EdgeRange lows{0, zero}, highs{zero, size};
  while (true) {
    int64_t stride;
    const EdgeRange best = BestOf(error, lows, highs, &stride);
    if (stride == 1) return best;
    lows = {std::max(lows.low, best.low - stride),
            std::min(lows.high, best.low + stride)};
    highs = {std::max(highs.low, best.high - stride),
             std::min(highs.high, best.high + stride)};
  }
}

// Returns the m, in buckets, for which the range from -m to m has least error.
int64_t LeastErrorMagnitude(const ValueHistogram& histogram) {
  const ErrorOfRanges error(histogram);
  const int64_t first = histogram.first_bucket();
  const int64_t end = first + histogram.counts().size();
  const int64_t most = std::max(std::abs(first), std::abs(end));
  int64_t best = most;
  double least = error.OfMagnitude(most);
  for (int64_t buckets = most - 1; buckets > 0; --buckets) {
    const double sum = error.OfMagnitude(buckets);
    if (sum < least) {
      least = sum;
      best = buckets;
    }
  }
  return best;
}

// Returns the bucket edges beyond which, on either side, at most the share
// `outside` of all values lies.
EdgeRange AtPercentile(const ValueHistogram& histogram, double outside) {
  const std::vector<int64_t>& counts = histogram.counts();
  const double allowed = outside * histogram.total();
  EdgeRange range{0, static_cast<int64_t>(counts.size())};
  for (double left_out = 0; range.low < range.high; ++range.low) {
    left_out += counts[range.low];
    if (left_out > allowed || histogram.Edge(range.low + 1) > 0) break;
  }
  for (double left_out = 0; range.high > range.low; --range.high) {
    left_out += counts[range.high - 1];
    if (left_out > allowed || histogram.Edge(range.high - 1) < 0) break;
  }
  return range;
}

// Clips the range to the observed values, because edges reach beyond them.
RangeChoice WithinObserved(const RangeEntry& entry, const EdgeRange& edges) {
  const ValueHistogram& histogram = *entry.histogram;
  const float low = *std::min_element(entry.mins.begin(), entry.mins.end());
  const float high = *std::max_element(entry.maxs.begin(), entry.maxs.end());
  double min = 0, max = 0;
  if (!histogram.counts().empty()) {
    min = histogram.Edge(edges.low);
    max = histogram.Edge(edges.high);
  }
  RangeChoice choice;
  choice.min = static_cast<float>(std::min(0.0, std::max<double>(low, min)));
  choice.max = static_cast<float>(std::max(0.0, std::min<double>(high, max)));
  return choice;
}

absl::Status CheckValuePercentile(double percentile) {
  if (percentile > 50 && percentile <= 100) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "the percentile of the values is above 50 and at most 100, not %g",
      percentile));
}

// A range has settled when its distance from the final range stays within this
// fraction of the final width.
constexpr double kSettledFraction = 0.01;

// Returns the number of the first observation from which the running extreme
// stays within `tolerance` of the final one.
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

constexpr int kMinValuesForTrend = 5;
// Moves of less than this fraction of the range are not reported.
constexpr float kDriftFraction = 0.05f;

float Median(const std::vector<float>& values) {
  return LowerPercentile(values, 50);
}

bool TrendAtTheEnd(const std::vector<float>& before,
                   const std::vector<float>& last) {
  if (last.size() < kMinValuesForTrend) return false;
  const float median = Median(last);
  return median < LowerPercentile(before, 5) ||
         median > UpperPercentile(before, 5);
}

// Returns the sentence on one side, or "".
std::string SideDrift(
    std::string_view side, const std::vector<float>& values, float width,
    absl::FunctionRef<float(const std::vector<float>&)> choose) {
  if (values.size() < kMinValuesForDrift || !(width > 0)) return "";
  const auto quarter = values.end() - values.size() / 4;
  const std::vector<float> before(values.begin(), quarter);
  const std::vector<float> last(quarter, values.end());
  float from = choose(before), to = choose(values);
  float moved = std::fabs(to - from) / width;
  if (moved > kDriftFraction) {
    return absl::StrFormat(
        "%s moved by %.0f%% of the range in the last quarter of %d values (%g "
        "-> %g)",
        side, moved * 100, values.size(), from, to);
  }
  from = Median(before);
  to = Median(last);
  moved = std::fabs(to - from) / width;
  if (moved <= kDriftFraction || !TrendAtTheEnd(before, last)) return "";
  return absl::StrFormat(
      "%s is still moving: its median in the last quarter of %d values is %g, "
      "%.0f%% of the range away from the %g before",
      side, values.size(), to, moved * 100, from);
}

}  // namespace

absl::StatusOr<RangeMethod> ParseRangeMethod(std::string_view name) {
  for (size_t i = 0; i < std::size(kMethods); ++i) {
    if (kMethods[i] == name) return static_cast<RangeMethod>(i);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the method is minmax, percentile or mse, not \"", name, "\""));
}

std::string_view RangeMethodName(RangeMethod method) {
  return kMethods[static_cast<size_t>(method)];
}

RangeChoice ChooseRange(const RangeEntry& entry,
                        const Percentiles& percentiles) {
  RangeChoice choice;
  if (!entry.mins.empty()) {
    choice.min = LowerPercentile(entry.mins, percentiles.min);
  }
  if (!entry.maxs.empty()) {
    choice.max = UpperPercentile(entry.maxs, percentiles.max);
  }
  return choice;
}

absl::StatusOr<RangeChoiceOptions> ReadRangeChoice(std::string_view method,
                                                   double value_percentile) {
  RangeChoiceOptions options;
  REQUANT_ASSIGN_OR_RETURN(options.method, ParseRangeMethod(method));
  options.percentiles = {0, 0};
  options.value_percentile = value_percentile;
  REQUANT_RETURN_IF_ERROR(CheckValuePercentile(value_percentile));
  return options;
}

absl::Status CheckRangeEntry(std::string_view name, const RangeEntry& entry) {
  if (entry.not_finite.count > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", name, "\" has ", CountText(entry.not_finite.count, "value"),
        " that ", entry.not_finite.count == 1 ? "is" : "are",
        " not finite, the first at ", entry.not_finite.first_place,
        "; calibrate again with records on which the model works"));
  }
  if (entry.inverted.count > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the minimum of \"", name, "\" is above its maximum ",
                     CountText(entry.inverted.count, "time"), ", the first at ",
                     entry.inverted.first_place));
  }
  return absl::OkStatus();
}

absl::StatusOr<RangeChoice> ChooseRangeBy(const RangeChoiceOptions& options,
                                          const RangeEntry& entry) {
  if (options.method == RangeMethod::kMinMax) {
    return ChooseRange(entry, options.percentiles);
  }
  if (!entry.histogram.has_value()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "method=", RangeMethodName(options.method),
        " needs the values' histogram, which neither a log nor a calibration "
        "of range nodes has: run requant calibrate on the float graph"));
  }
  if (entry.mins.empty() || entry.maxs.empty()) return RangeChoice();
  if (options.method == RangeMethod::kMse) {
    return WithinObserved(entry, LeastError(*entry.histogram));
  }
  REQUANT_RETURN_IF_ERROR(CheckValuePercentile(options.value_percentile));
  return WithinObserved(
      entry,
      AtPercentile(*entry.histogram, (100 - options.value_percentile) / 100));
}

absl::StatusOr<float> ChooseMagnitudeBy(const RangeChoiceOptions& options,
                                        const RangeEntry& entry) {
  RangeChoiceOptions whole = options;
  const bool least_error = options.method == RangeMethod::kMse &&
                           entry.histogram.has_value() &&
                           !entry.histogram->counts().empty();
  if (least_error) {
    whole.method = RangeMethod::kMinMax;
    whole.percentiles = {0, 0};
  }
  REQUANT_ASSIGN_OR_RETURN(const RangeChoice choice,
                           ChooseRangeBy(whole, entry));
  const float magnitude = std::max(std::fabs(choice.min.value_or(0)),
                                   std::fabs(choice.max.value_or(0)));
  if (!least_error) return magnitude;
  const ValueHistogram& histogram = *entry.histogram;
  return static_cast<float>(std::min<double>(
      magnitude, LeastErrorMagnitude(histogram) * histogram.width()));
}

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

std::vector<std::string> FindDrift(const RangeEntry& entry,
                                   const Percentiles& percentiles) {
  const RangeChoice choice = ChooseRange(entry, percentiles);
  const float width = std::max(0.0f, choice.max.value_or(0)) -
                      std::min(0.0f, choice.min.value_or(0));
  std::vector<std::string> drifts = {
      SideDrift("min", entry.mins, width,
                [&](const std::vector<float>& mins) {
                  return LowerPercentile(mins, percentiles.min);
                }),
      SideDrift("max", entry.maxs, width, [&](const std::vector<float>& maxs) {
        return UpperPercentile(maxs, percentiles.max);
      })};
  drifts.erase(std::remove(drifts.begin(), drifts.end(), ""), drifts.end());
  return drifts;
}

}  // namespace requant
