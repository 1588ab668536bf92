#include "ranges/range_choice.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>

#include "absl/crc/crc32c.h"
#include "base/testing/fuzz_rounds.h"
#include "base/testing/testing.h"
#include "ranges/range_table.h"
#include "ranges/value_histogram.h"

namespace requant::range_choice_test {
namespace {

RangeEntry EntryOf(const std::vector<float>& values) {
  RangeEntry entry;
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  entry.AddRange(*min, *max, {"x", 1});
  entry.histogram.emplace();
  entry.histogram->Add(values);
  return entry;
}

RangeChoiceOptions By(RangeMethod method, double value_percentile = 99.99) {
  return {method, {}, value_percentile};
}

RangeChoice Choose(RangeMethod method, const std::vector<float>& values,
                   double value_percentile = 99.99) {
  const auto choice =
      ChooseRangeBy(By(method, value_percentile), EntryOf(values));
  EXPECT_OK(choice);
  return choice.value_or(RangeChoice());
}

// Returns the measured error of eight bits for the values.
double MeasuredError(const std::vector<float>& values, double min, double max) {
  const double step = (max - min) / 255;
  double sum = 0;
  for (double value : values) {
    const double code =
        std::clamp(std::nearbyint((value - min) / step), 0.0, 255.0);
    sum += std::pow(min + code * step - value, 2);
  }
  return sum / values.size();
}

std::vector<float> Normal(int count, float outlier, int outliers) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  for (int i = 0; i < outliers; ++i) values[i] = outlier;
  return values;
}

std::vector<float> Relu(std::vector<float> values) {
  for (float& value : values) value = std::max(value, 0.0f);
  return values;
}

TEST(ChooseRange, LeavesOutASideWithoutValues) {
  RangeEntry entry;
  entry.AddMin(-2, {"log", 1});
  const RangeChoice choice = ChooseRange(entry, {});
  EXPECT_EQ(choice.min, -2);
  EXPECT_FALSE(choice.max.has_value());
}

TEST(ChooseRange, MinMaxTakesThePercentilesOfTheBatches) {
  RangeEntry entry;
  for (int i = 1; i <= 100; ++i) entry.AddRange(-i, i, {"log", i});
  ASSERT_OK_AND_ASSIGN(const RangeChoice choice, ChooseRangeBy({}, entry));
  EXPECT_EQ(choice.min, LowerPercentile(entry.mins, 5));
  EXPECT_EQ(choice.max, UpperPercentile(entry.maxs, 5));
}

TEST(ChooseRange, OtherMethodsNeedAHistogram) {
  RangeEntry entry;
  entry.AddRange(-1, 1, {"log", 1});
  for (RangeMethod method : {RangeMethod::kPercentile, RangeMethod::kMse}) {
    EXPECT_THAT(ChooseRangeBy(By(method), entry),
                FailsWith(testing::HasSubstr("histogram")));
  }
}

TEST(ChooseRangePercentile, LeavesTheShareOfValuesOutsideOnEitherSide) {
  std::vector<float> values;
  for (int i = -1000; i <= 1000; ++i) values.push_back(i);
  const RangeChoice choice = Choose(RangeMethod::kPercentile, values, 99);
  const double width = EntryOf(values).histogram->width();
  // The 20 of 2001 values outside are -1000 to -981 and 981 to 1000.
  EXPECT_NEAR(*choice.min, -980, width);
  EXPECT_NEAR(*choice.max, 981, width);
}

TEST(ChooseRangePercentile, OfAHundredIsTheWholeRange) {
  const RangeChoice choice =
      Choose(RangeMethod::kPercentile, {-1.3f, 0, 2.7f}, 100);
  EXPECT_EQ(choice.min, -1.3f);
  EXPECT_EQ(choice.max, 2.7f);
}

TEST(ChooseRangePercentile, CountsZeros) {
  std::vector<float> values(990, 0.0f);
  for (int i = 1; i <= 10; ++i) values.push_back(i);
  const RangeChoice choice = Choose(RangeMethod::kPercentile, values, 99.5);
  EXPECT_EQ(choice.min, 0);
  EXPECT_NEAR(*choice.max, 5, 0.01);
}

TEST(ChooseRangePercentile, IncludesZero) {
  RangeChoice choice = Choose(RangeMethod::kPercentile, {5, 6, 7}, 60);
  EXPECT_EQ(choice.min, 0);
  EXPECT_GT(*choice.max, 5);
  choice = Choose(RangeMethod::kPercentile, {-5, -6, -7}, 60);
  EXPECT_EQ(choice.max, 0);
  EXPECT_LT(*choice.min, -5);
}

TEST(ChooseRangePercentile, RefusesAPercentileThatIsNone) {
  for (double percentile : {50.0, 101.0, std::nan("")}) {
    EXPECT_FALSE(
        ChooseRangeBy(By(RangeMethod::kPercentile, percentile), EntryOf({1}))
            .ok())
        << percentile;
  }
}

TEST(ChooseRangeMse, KeepsTheWholeRangeOfEvenlySpreadValues) {
  std::vector<float> values;
  for (int i = 0; i <= 100000; ++i) values.push_back(i * 1e-3f);
  const RangeChoice choice = Choose(RangeMethod::kMse, values);
  EXPECT_EQ(choice.min, 0);
  EXPECT_NEAR(*choice.max, 100, 1);
}

// Clipping one value by nearly all of max costs max^2; rounding all values with
// range max costs (max / 255)^2 / 12 for half of them.
TEST(ChooseRangeMse, ClipsOutliersThatAreRareEnough) {
  RangeEntry entry = EntryOf(Relu(Normal(100000, 12, 1)));
  const std::vector<float> more = Relu(Normal(100000, 0, 0));
  for (int i = 0; i < 50; ++i) entry.histogram->Add(more);
  ASSERT_OK_AND_ASSIGN(const RangeChoice choice,
                       ChooseRangeBy(By(RangeMethod::kMse), entry));
  EXPECT_EQ(choice.min, 0);
  EXPECT_LT(*choice.max, 6);
  EXPECT_GT(*choice.max, 3);
}

TEST(ChooseRangeMse, LosesNoMoreThanAnyOtherRange) {
  for (const std::vector<float>& values :
       {Relu(Normal(50000, 8, 20)), Normal(50000, -9, 5)}) {
    const RangeChoice choice = Choose(RangeMethod::kMse, values);
    const double chosen = MeasuredError(values, *choice.min, *choice.max);
    const bool has_negative = *choice.min < 0;
    for (double max = 1; max <= 10; max += 0.25) {
      for (double min = has_negative ? -10 : 0; min <= 0; min += 0.5) {
        EXPECT_LE(chosen, MeasuredError(values, min, max) * 1.02)
            << min << " " << max;
      }
    }
  }
}

TEST(ChooseRangeMse, OfZerosOnlyIsEmpty) {
  const RangeChoice choice = Choose(RangeMethod::kMse, {0, 0});
  EXPECT_EQ(choice.min, 0);
  EXPECT_EQ(choice.max, 0);
}

float Magnitude(RangeMethod method, const std::vector<float>& values) {
  const auto magnitude = ChooseMagnitudeBy(By(method), EntryOf(values));
  EXPECT_OK(magnitude);
  return magnitude.value_or(-1);
}

TEST(ChooseMagnitude, IsTheFartherEndOfTheRange) {
  EXPECT_EQ(Magnitude(RangeMethod::kMinMax, {-3, 1, 2}), 3);
  EXPECT_EQ(Magnitude(RangeMethod::kMinMax, {1, 2}), 2);
  EXPECT_EQ(Magnitude(RangeMethod::kPercentile, {-3, 1, 4}), 4);
}

TEST(ChooseMagnitude, OfNothingIsZero) {
  EXPECT_EQ(Magnitude(RangeMethod::kMse, {0, 0}), 0);
  EXPECT_EQ(*ChooseMagnitudeBy({}, RangeEntry()), 0);
}

// Returns the measured error of 127 levels on either side of zero.
double MeasuredErrorOfMagnitude(const std::vector<float>& values, double m) {
  const double step = m / 127;
  double sum = 0;
  for (double value : values) {
    const double code = std::clamp(std::nearbyint(value / step), -127.0, 127.0);
    sum += std::pow(code * step - value, 2);
  }
  return sum / values.size();
}

TEST(ChooseMagnitudeMse, LosesNoMoreThanAnyOther) {
  for (const std::vector<float>& values :
       {Normal(20000, 0, 0), Normal(20000, -30, 3), Relu(Normal(20000, 9, 9)),
        std::vector<float>{5, 5.5, 6}, std::vector<float>{-4000, -4001}}) {
    const double chosen = Magnitude(RangeMethod::kMse, values);
    const double least = MeasuredErrorOfMagnitude(values, chosen);
    for (double other : {.3, .5, .8, .9, 1.1, 1.25, 2.0, 4.0}) {
      EXPECT_LE(least,
                MeasuredErrorOfMagnitude(values, chosen * other) * 1.02 + 1e-12)
          << chosen << " times " << other;
    }
  }
}

TEST(ChooseMagnitude, NeedsAHistogramForMse) {
  RangeEntry entry;
  entry.AddRange(-1, 1, {"log", 1});
  EXPECT_FALSE(ChooseMagnitudeBy(By(RangeMethod::kMse), entry).ok());
}

// Any file with a valid checksum must do, whatever its content.
TEST(ChooseRangeBy, MakesARangeOfAnyEntryThatWasRead) {
  RangeTable table;
  table.FindOrAdd("x") = EntryOf({4000, 4001, 0, 4005});
  table.FindOrAdd("y") = EntryOf({-4000, 1, 2, 95});
  std::string whole = *SerializeRangeTable(table);
  whole.resize(whole.size() - sizeof(uint32_t));
  std::mt19937 random(5);
  int read = 0;
  for (int round = 0; round < FuzzRounds(2000); ++round) {
    std::string changed = whole.substr(0, whole.size() - 1);
    const int changes = 1 + random() % 3;
    for (int i = 0; i < changes; ++i) {
      changed[random() % changed.size()] = static_cast<char>(random());
    }
    const auto checksum = static_cast<uint32_t>(absl::ComputeCrc32c(changed));
    changed += whole.back();
    changed.append(reinterpret_cast<const char*>(&checksum), sizeof(checksum));
    const auto parsed = ParseRangeTable(changed, "f");
    if (!parsed.ok()) continue;
    ++read;
    for (const auto& [key, entry] : parsed->entries()) {
      for (RangeMethod method : {RangeMethod::kPercentile, RangeMethod::kMse}) {
        const auto choice = ChooseRangeBy(By(method), entry);
        if (!choice.ok() || !choice->min.has_value()) continue;
        EXPECT_LE(*choice->min, 0);
        EXPECT_GE(*choice->max, 0);
        EXPECT_TRUE(std::isfinite(*choice->max) && std::isfinite(*choice->min));
        ASSERT_OK_AND_ASSIGN(const float magnitude,
                             ChooseMagnitudeBy(By(method), entry));
        EXPECT_TRUE(std::isfinite(magnitude) && magnitude >= 0);
      }
    }
  }
  EXPECT_GT(read, 100);
}

TEST(RangeMethod, HasANameThatReadsBack) {
  for (RangeMethod method :
       {RangeMethod::kMinMax, RangeMethod::kPercentile, RangeMethod::kMse}) {
    EXPECT_EQ(*ParseRangeMethod(RangeMethodName(method)), method);
  }
  EXPECT_FALSE(ParseRangeMethod("kl").ok());
}

// Returns an entry of n ranges from -1 to max(i).
RangeEntry WithMaxs(int n, const std::function<float(int i)>& max) {
  RangeEntry entry;
  for (int i = 0; i < n; ++i) entry.AddRange(-1, max(i), {"log", i});
  return entry;
}

TEST(FindDrift, IsSilentOnAConstantRangeAndOnOneThatIsAlwaysZero) {
  EXPECT_TRUE(FindDrift(WithMaxs(100, [](int) { return 3; }), {}).empty());
  RangeEntry entry;
  for (int i = 0; i < 100; ++i) entry.AddRange(0, 0, {"log", i});
  EXPECT_TRUE(FindDrift(entry, {}).empty());
}

// Batch extremes scatter by a few hundredths of the range.
TEST(FindDrift, IsSilentOnStationaryNoise) {
  std::mt19937 random(5);
  std::normal_distribution<float> noise(3, 0.1f);
  int warned = 0;
  for (int repeat = 0; repeat < 200; ++repeat) {
    const int n = 8 + random() % 400;
    warned +=
        FindDrift(WithMaxs(n, [&](int) { return noise(random); }), {}).size();
  }
  EXPECT_EQ(warned, 0);
}

TEST(FindDrift, ReportsAGrowingRange) {
  EXPECT_THAT(FindDrift(WithMaxs(40, [](int i) { return 1 + i * 0.1f; }), {}),
              ElementsAre("max moved by 16% of the range in the last quarter "
                          "of 40 values (3.9 -> 4.8)"));
}

TEST(FindDrift, ReportsAStepInTheLastQuarter) {
  EXPECT_THAT(FindDrift(WithMaxs(40, [](int i) { return i < 32 ? 1 : 2; }), {}),
              ElementsAre(StartsWith("max moved by")));
}

TEST(FindDrift, ReportsAShrinkingRangeWhoseChoiceHolds) {
  EXPECT_THAT(
      FindDrift(WithMaxs(40, [](int i) { return i < 30 ? 2 : 1; }), {}),
      ElementsAre("max is still moving: its median in the last quarter of 40 "
                  "values is 1, 33% of the range away from the 2 before"));
}

TEST(FindDrift, IgnoresOutliersThatThePercentileLeavesOut) {
  const RangeEntry entry =
      WithMaxs(100, [](int i) { return i == 90 ? 50 : 2; });
  EXPECT_TRUE(FindDrift(entry, {}).empty());
  EXPECT_FALSE(FindDrift(entry, {0, 0}).empty());
}

TEST(FindDrift, SaysNothingAboutTooFewValues) {
  const auto growing = [](int i) { return 1.0f + i; };
  EXPECT_TRUE(FindDrift(WithMaxs(kMinValuesForDrift - 1, growing), {}).empty());
  EXPECT_FALSE(FindDrift(WithMaxs(kMinValuesForDrift, growing), {}).empty());
}

TEST(FindDrift, ReportsTheMinOfAnEntryWithoutMaxs) {
  RangeEntry entry;
  for (int i = 0; i < 40; ++i) entry.AddMin(-1 - i * 0.1f, {"log", i});
  EXPECT_THAT(FindDrift(entry, {}), ElementsAre(StartsWith("min moved by")));
}

RangeEntry WithMaxs(const std::vector<float>& maxs) {
  RangeEntry entry;
  for (float max : maxs) entry.AddRange(0, max, {"log", 1});
  return entry;
}

TEST(FindSettling, CountsTheObservationsUpToTheLastMove) {
  const Settling settling = FindSettling(WithMaxs({1, 5, 10, 3, 2}));
  EXPECT_EQ(settling.observations, 3);
  EXPECT_FALSE(settling.still_moving);
}

TEST(FindSettling, OverlooksMovesWithinOnePercentOfTheWidth) {
  EXPECT_EQ(FindSettling(WithMaxs({99.5f, 1, 100})).observations, 1);
  EXPECT_EQ(FindSettling(WithMaxs({98.5f, 1, 100})).observations, 3);
}

// Many small moves add up to a large one.
TEST(FindSettling, AddsUpSmallMoves) {
  std::vector<float> maxs;
  for (int i = 0; i < 50; ++i) maxs.push_back(50 + i * 0.4f);
  EXPECT_TRUE(FindSettling(WithMaxs(maxs)).still_moving);
}

TEST(FindSettling, LooksAtBothEnds) {
  RangeEntry entry;
  for (float min : {-1.0f, -1.0f, -4.0f, -1.0f}) {
    entry.AddRange(min, 1, {"log", 1});
  }
  EXPECT_EQ(FindSettling(entry).observations, 3);
}

TEST(FindSettling, MeasuresMinimaAloneAgainstTheirDistanceFromZero) {
  RangeEntry entry;
  for (float min : {-100.0f, -100.5f}) entry.AddMin(min, {"log", 1});
  EXPECT_EQ(FindSettling(entry).observations, 1);
}

TEST(FindSettling, ARangeThatMovesInTheLastTenthIsStillMoving) {
  std::vector<float> maxs(30, 1);
  maxs[27] = 2;
  EXPECT_TRUE(FindSettling(WithMaxs(maxs)).still_moving);
  maxs[26] = 2;
  EXPECT_FALSE(FindSettling(WithMaxs(maxs)).still_moving);
  EXPECT_TRUE(FindSettling(WithMaxs({1, 2})).still_moving);
}

TEST(FindSettling, OneObservationOrNoneTellsNothingOfMoves) {
  const Settling settling = FindSettling(WithMaxs({1}));
  EXPECT_EQ(settling.observations, 1);
  EXPECT_FALSE(settling.still_moving);
  EXPECT_EQ(FindSettling({}).observations, 0);
}

}  // namespace
}  // namespace requant::range_choice_test
