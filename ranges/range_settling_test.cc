#include "ranges/range_settling.h"

#include <gtest/gtest.h>

#include <vector>

#include "ranges/range_table.h"

namespace requant::range_settling_test {
namespace {

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
}  // namespace requant::range_settling_test
