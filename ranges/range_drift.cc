#include "ranges/range_drift.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_format.h"
#include "ranges/range_choice.h"
#include "ranges/range_table.h"

namespace requant {
namespace {

constexpr int kMinValuesForTrend = 5;

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

std::optional<Drift> SideDrift(
    std::string_view side, const std::vector<float>& values, float width,
    absl::FunctionRef<float(const std::vector<float>&)> choose) {
  if (values.size() < kMinValuesForDrift || !(width > 0)) return std::nullopt;
  const auto quarter = values.end() - values.size() / 4;
  const std::vector<float> before(values.begin(), quarter);
  const std::vector<float> last(quarter, values.end());
  const auto drift = [&](Drift::Rule rule, float from, float to) {
    return Drift{rule, side, static_cast<int>(values.size()),
                 from, to,   std::fabs(to - from) / width};
  };
  const Drift choice =
      drift(Drift::Rule::kChoiceMoved, choose(before), choose(values));
  if (choice.moved > kDriftFraction) return choice;
  const Drift trend =
      drift(Drift::Rule::kValuesMoved, Median(before), Median(last));
  if (trend.moved > kDriftFraction && TrendAtTheEnd(before, last)) return trend;
  return std::nullopt;
}

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

std::vector<Drift> FindDrift(const RangeEntry& entry,
                             const Percentiles& percentiles) {
  const float width = ChooseRange(entry, percentiles).Width();
  std::vector<Drift> drifts;
  const auto min_drift =
      SideDrift("min", entry.mins, width, [&](const std::vector<float>& mins) {
        return LowerPercentile(mins, percentiles.min);
      });
  const auto max_drift =
      SideDrift("max", entry.maxs, width, [&](const std::vector<float>& maxs) {
        return UpperPercentile(maxs, percentiles.max);
      });
  if (min_drift.has_value()) drifts.push_back(*min_drift);
  if (max_drift.has_value()) drifts.push_back(*max_drift);
  return drifts;
}

std::string DescribeDrift(const Drift& drift) {
  if (drift.rule == Drift::Rule::kChoiceMoved) {
    return absl::StrFormat(
        "%s moved by %.0f%% of the range in the last quarter of %d values (%g "
        "-> %g)",
        drift.side, drift.moved * 100, drift.values, drift.before, drift.after);
  }
  return absl::StrFormat(
      "%s is still moving: its median in the last quarter of %d values is %g, "
      "%.0f%% of the range away from the %g before",
      drift.side, drift.values, drift.after, drift.moved * 100, drift.before);
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

}  // namespace requant
