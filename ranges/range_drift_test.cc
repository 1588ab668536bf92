#include "ranges/range_drift.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <vector>

#include "ranges/range_table.h"

namespace requant::range_drift_test {
namespace {

// Returns an entry of n ranges from -1 to max(i).
RangeEntry WithMaxs(int n, const std::function<float(int i)>& max) {
  RangeEntry entry;
  for (int i = 0; i < n; ++i) entry.AddRange(-1, max(i), {"log", i});
  return entry;
}

TEST(FindDrift, IsSilentOnAConstantRange) {
  EXPECT_TRUE(FindDrift(WithMaxs(100, [](int) { return 3; }), {}).empty());
}

TEST(FindDrift, IsSilentOnARangeThatIsAlwaysZero) {
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
  const auto drifts =
      FindDrift(WithMaxs(40, [](int i) { return 1 + i * 0.1f; }), {});
  ASSERT_EQ(drifts.size(), 1);
  EXPECT_EQ(DescribeDrift(drifts[0]),
            "max moved by 16% of the range in the last quarter of 40 values "
            "(3.9 -> 4.8)");
}

TEST(FindDrift, ReportsAStepInTheLastQuarter) {
  const auto drifts =
      FindDrift(WithMaxs(40, [](int i) { return i < 32 ? 1 : 2; }), {});
  ASSERT_EQ(drifts.size(), 1);
  EXPECT_EQ(drifts[0].rule, Drift::Rule::kChoiceMoved);
}

TEST(FindDrift, ReportsAShrinkingRangeWhoseChoiceHolds) {
  const auto drifts =
      FindDrift(WithMaxs(40, [](int i) { return i < 30 ? 2 : 1; }), {});
  ASSERT_EQ(drifts.size(), 1);
  EXPECT_EQ(DescribeDrift(drifts[0]),
            "max is still moving: its median in the last quarter of 40 values "
            "is 1, 33% of the range away from the 2 before");
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
  const auto drifts = FindDrift(entry, {});
  ASSERT_EQ(drifts.size(), 1);
  EXPECT_EQ(drifts[0].side, "min");
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

// Many small moves make a great one.
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

TEST(FindSettling, OneObservationTellsNothingOfMoves) {
  const Settling settling = FindSettling(WithMaxs({1}));
  EXPECT_EQ(settling.observations, 1);
  EXPECT_FALSE(settling.still_moving);
}

TEST(FindSettling, OfNothingIsZero) {
  EXPECT_EQ(FindSettling({}).observations, 0);
}

}  // namespace
}  // namespace requant::range_drift_test
