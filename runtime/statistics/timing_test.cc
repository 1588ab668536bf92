#include "runtime/statistics/timing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>

namespace requant::timing_test {
namespace {

std::vector<double> RandomValues(int n, std::mt19937* random) {
  std::vector<double> values(n);
  // There are few distinct values, so that there are ties.
  for (double& value : values) value = static_cast<double>((*random)() % 20);
  return values;
}

// Computes the quantile by its definition on sorted values.
double SlowQuantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double position = q * (values.size() - 1);
  const double low = values[std::floor(position)];
  const double high = values[std::ceil(position)];
  return low + (position - std::floor(position)) * (high - low);
}

TEST(Quantile, EqualsThatOfSortedValues) {
  std::mt19937 random(1);
  for (int n = 1; n < 30; ++n) {
    const std::vector<double> values = RandomValues(n, &random);
    for (double q : {0.0, 0.01, 0.25, 0.5, 0.75, 0.99, 1.0}) {
      EXPECT_DOUBLE_EQ(Quantile(values, q), SlowQuantile(values, q))
          << n << " values, q = " << q;
    }
  }
}

TEST(Median, LiesBetweenTheTwoMiddleValues) {
  EXPECT_EQ(Median({7}), 7);
  EXPECT_EQ(Median({9, 1, 2}), 2);
  EXPECT_EQ(Median({9, 1, 2, 4}), 3);
}

TEST(RelativeSpread, IsTheDistanceOfTheQuartilesOverTheMedian) {
  EXPECT_DOUBLE_EQ(RelativeSpread({10, 11, 8, 9, 1000}), 0.2);
  EXPECT_EQ(RelativeSpread({5}), 0);
  EXPECT_EQ(RelativeSpread({-1, 0, 1}), 0);
}

// Returns the probability that fewer than k of n values are below the median,
// or fewer than k above it, counted over all 2^n cases.
double MissProbability(int n, int k) {
  int misses = 0;
  for (int which = 0; which < (1 << n); ++which) {
    const int below = __builtin_popcount(which);
    if (below < k || n - below < k) ++misses;
  }
  return static_cast<double>(misses) / (1 << n);
}

TEST(MedianInterval, IsTheNarrowestThatMissesInFivePercentAtMost) {
  std::mt19937 random(2);
  for (int n = 1; n <= 16; ++n) {
    int k = 0;
    while (2 * (k + 1) <= n && MissProbability(n, k + 1) <= 0.05) ++k;
    std::vector<double> values = RandomValues(n, &random);
    const std::optional<Interval> interval = MedianInterval(values);
    ASSERT_EQ(interval.has_value(), k > 0) << n;
    if (k == 0) continue;
    std::sort(values.begin(), values.end());
    EXPECT_EQ(interval->low(), values[k - 1]) << n;
    EXPECT_EQ(interval->high(), values[n - k]) << n;
  }
}

TEST(MedianInterval, OfFiveValuesIsUnknown) {
  EXPECT_FALSE(MedianInterval({1, 2, 3, 4, 5}).has_value());
  EXPECT_FALSE(MedianInterval({}).has_value());
}

TEST(MedianInterval, CoversTheMedianOfASkewedDistribution) {
  std::mt19937 random(3);
  std::exponential_distribution<double> distribution(1);
  int covered = 0;
  constexpr int kTrials = 4000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> values(9);
    for (double& value : values) value = distribution(random);
    const Interval interval = MedianInterval(values).value();
    if (interval.low() <= std::log(2) && std::log(2) <= interval.high())
      ++covered;
  }
  // 96.1 % are expected, with a standard deviation of 0.3 %.
  EXPECT_NEAR(static_cast<double>(covered) / kTrials, 0.961, 0.015);
}

void ExpectTimed(const BatchTimer& timer, int64_t warm_up, int64_t records,
                 double seconds) {
  const Timing timing = timer.Result();
  EXPECT_EQ(timing.warm_up_batches(), warm_up);
  EXPECT_EQ(timing.timed_records(), records);
  EXPECT_EQ(timing.timed_seconds(), seconds);
  EXPECT_EQ(RecordsPerSecond(timing).value_or(0),
            seconds > 0 ? records / seconds : 0);
}

TEST(BatchTimer, TimesASingleBatch) {
  BatchTimer timer;
  ExpectTimed(timer, 0, 0, 0);
  EXPECT_EQ(RecordsPerSecond(timer.Result()), std::nullopt);
  timer.Add(512, 2);
  ExpectTimed(timer, 0, 512, 2);
}

TEST(BatchTimer, LeavesTheFirstHalfOutOrAHundred) {
  const std::pair<int64_t, int64_t> expected[] = {
      {2, 1}, {7, 3}, {8, 4}, {199, 99}, {200, 100}, {391, 100}};
  for (const auto& [batches, warm_up] : expected) {
    BatchTimer timer;
    for (int i = 0; i < batches; ++i) timer.Add(10, i < warm_up ? 1000 : 0.5);
    ExpectTimed(timer, warm_up, 10 * (batches - warm_up),
                0.5 * (batches - warm_up));
  }
}

// The published runs had 2000000 records in batches of 512.
TEST(BatchTimer, LeavesTheFirstHundredOfMany) {
  BatchTimer timer;
  for (int i = 0; i < 3906; ++i) timer.Add(512, i < 100 ? 1000 : 0.25);
  timer.Add(128, 0.125);
  EXPECT_EQ(timer.Result().batches(), 3907);
  EXPECT_EQ(timer.Result().records(), 2000000);
  ExpectTimed(timer, 100, 2000000 - 100 * 512, 3806 * 0.25 + 0.125);
}

TEST(StableSum, KeepsWhatPlainAdditionLoses) {
  StableSum sum;
  sum.Add(1e16);
  for (int i = 0; i < 1000; ++i) sum.Add(1);
  sum.Add(-1e16);
  EXPECT_EQ(sum.value(), 1000);
}

TEST(StableSum, KeepsASmallSumBesideALargeTerm) {
  StableSum sum;
  sum.Add(1);
  sum.Add(1e100);
  sum.Add(1);
  sum.Add(-1e100);
  EXPECT_EQ(sum.value(), 2);
}

TEST(StableSum, DoesNotDriftOverAMillionTerms) {
  StableSum sum;
  for (int i = 0; i < 1000000; ++i) sum.Add(0.1);
  EXPECT_EQ(sum.value(), 100000);
}

TEST(StableSum, StaysInfinite) {
  StableSum sum;
  sum.Add(std::numeric_limits<double>::infinity());
  sum.Add(1);
  EXPECT_EQ(sum.value(), std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace requant::timing_test
