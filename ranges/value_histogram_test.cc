#include "ranges/value_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "base/testing/fuzz_rounds.h"

namespace requant::value_histogram_test {
namespace {

ValueHistogram Of(const std::vector<float>& values) {
  ValueHistogram histogram;
  histogram.Add(values);
  return histogram;
}

// Returns the number of the bucket that holds `value`, and its count.
int64_t CountAt(const ValueHistogram& histogram, double value) {
  for (size_t i = 0; i < histogram.counts().size(); ++i) {
    if (value >= histogram.Edge(i) && value < histogram.Edge(i + 1)) {
      return histogram.counts()[i];
    }
  }
  return 0;
}

TEST(ValueHistogram, KeepsZerosApart) {
  const ValueHistogram histogram = Of({0.0f, -0.0f, 1.0f, 0.0f});
  EXPECT_EQ(histogram.zeros(), 3);
  EXPECT_EQ(histogram.counts(), std::vector<int64_t>{1});
  EXPECT_EQ(histogram.total(), 4);
}

TEST(ValueHistogram, TakesSubnormalNumbersForZeros) {
  EXPECT_EQ(Of({FLT_MIN / 2, -FLT_TRUE_MIN}), Of({0.0f, 0.0f}));
  EXPECT_EQ(Of({FLT_MIN, -FLT_MIN}).zeros(), 0);
}

TEST(ValueHistogram, PutsAnEdgeIntoTheBucketAboveIt) {
  const ValueHistogram histogram = Of({-2.0f, -1.0f, 1.0f, 2.0f});
  for (double value : {-2.0, -1.0, 1.0, 2.0}) {
    EXPECT_EQ(CountAt(histogram, value), 1) << value;
    EXPECT_EQ(CountAt(histogram, value - histogram.width()), 0) << value;
  }
}

TEST(ValueHistogram, UsesTheNarrowestBucketsThatSuffice) {
  // 4095 / 2^0 is in the last of 4096 buckets from 0 on.
  EXPECT_EQ(Of({4095.0f}).exponent(), 0);
  EXPECT_EQ(Of({4096.0f}).exponent(), 1);
  EXPECT_EQ(Of({-4095.0f, 0.5f}).exponent(), 0);
  EXPECT_EQ(Of({-4096.0f, 0.5f}).exponent(), 1);
}

TEST(ValueHistogram, HoldsTheGreatestAndTheLeastFloats) {
  const ValueHistogram histogram =
      Of({FLT_MAX, -FLT_MAX, FLT_MIN, -FLT_MIN, 1.0f, -1.0f});
  EXPECT_EQ(histogram.total(), 6);
  EXPECT_EQ(histogram.zeros(), 0);
  EXPECT_EQ(CountAt(histogram, FLT_MIN), 2);
  EXPECT_EQ(CountAt(histogram, -1.0), 2);
}

TEST(ValueHistogram, DoublesTheWidthWhenValuesFallOutside) {
  ValueHistogram histogram = Of({1.0f, 2.0f});
  const int before = histogram.exponent();
  histogram.Add({1000.0f});
  EXPECT_GT(histogram.exponent(), before);
  EXPECT_EQ(histogram, Of({1.0f, 2.0f, 1000.0f}));
}

// Returns values of sizes that differ by up to 2^240, zeros, powers of two.
std::vector<float> RandomValues(std::mt19937& random) {
  std::vector<float> values(random() % 2000);
  const int spread = random() % 3 == 0 ? 240 : 8;
  for (float& value : values) {
    if (random() % 4 == 0) continue;
    const int exponent = static_cast<int>(random() % spread) - spread / 2;
    const float mantissa =
        random() % 4 == 0 ? 1.0f : 1.0f + random() % 1000 / 1000.0f;
    value = std::ldexp(random() % 2 == 0 ? mantissa : -mantissa, exponent);
  }
  return values;
}

TEST(ValueHistogram, IsTheSameInWhateverPortionsAndOrderTheValuesCome) {
  std::mt19937 random(1);
  for (int round = 0; round < FuzzRounds(300); ++round) {
    std::vector<float> values = RandomValues(random);
    const ValueHistogram whole = Of(values);
    std::shuffle(values.begin(), values.end(), random);
    const size_t cut = values.empty() ? 0 : random() % values.size();
    const ValueHistogram a =
        Of(std::vector<float>(values.begin(), values.begin() + cut));
    const ValueHistogram b =
        Of(std::vector<float>(values.begin() + cut, values.end()));
    ValueHistogram ab = a, ba = b;
    ab.Merge(b);
    ba.Merge(a);
    EXPECT_EQ(ab, ba) << round;
    EXPECT_EQ(ab, whole) << round;
  }
}

TEST(ValueHistogram, CountsAsALoopInDoublesDoes) {
  std::mt19937 random(2);
  for (int round = 0; round < FuzzRounds(300); ++round) {
    const std::vector<float> values = RandomValues(random);
    const ValueHistogram histogram = Of(values);
    std::map<int64_t, int64_t> expected;
    int64_t zeros = 0;
    for (double value : values) {
      if (value == 0) {
        ++zeros;
      } else {
        ++expected[std::floor(value / histogram.width())];
      }
    }
    EXPECT_EQ(histogram.zeros(), zeros);
    for (size_t i = 0; i < histogram.counts().size(); ++i) {
      const auto found = expected.find(histogram.first_bucket() + i);
      EXPECT_EQ(histogram.counts()[i],
                found == expected.end() ? 0 : found->second);
    }
    EXPECT_EQ(histogram.total(), values.size());
    EXPECT_LE(histogram.counts().size(), ValueHistogram::kMostBuckets);
  }
}

TEST(ValueHistogram, AllFloatsFitIntoOne) {
  ValueHistogram histogram = Of({FLT_MAX});
  histogram.Merge(Of({-FLT_MAX}));
  EXPECT_EQ(histogram.exponent(), 117);
  const auto restored =
      ValueHistogram::Restore(histogram.zeros(), histogram.exponent(),
                              histogram.first_bucket(), histogram.counts());
  EXPECT_TRUE(restored.ok()) << restored.status();
}

TEST(ValueHistogram, MergesWithItself) {
  ValueHistogram histogram = Of({1.0f, 0.0f});
  histogram.Merge(histogram);
  EXPECT_EQ(histogram, Of({1.0f, 0.0f, 1.0f, 0.0f}));
}

TEST(ValueHistogram, IsRestoredFromItsParts) {
  for (const auto& histogram :
       {Of({}), Of({0.0f}), Of({-3.0f, 0.0f, 5.0f, 5.5f})}) {
    const auto restored =
        ValueHistogram::Restore(histogram.zeros(), histogram.exponent(),
                                histogram.first_bucket(), histogram.counts());
    ASSERT_TRUE(restored.ok()) << restored.status();
    EXPECT_EQ(*restored, histogram);
  }
}

TEST(ValueHistogram, RefusesPartsOfNone) {
  const auto refused = [](int64_t zeros, int exponent, int32_t first,
                          std::vector<int64_t> counts) {
    return !ValueHistogram::Restore(zeros, exponent, first, counts).ok();
  };
  EXPECT_TRUE(refused(-1, 0, 0, {1}));
  EXPECT_TRUE(refused(INT64_MAX, 0, 0, {1}));
  EXPECT_TRUE(refused(0, -127, 0, {1}));
  EXPECT_TRUE(refused(0, 118, 0, {1}));
  EXPECT_TRUE(refused(0, 117, 2048, {1}));
  EXPECT_TRUE(refused(0, 117, -2049, {1}));
  EXPECT_TRUE(refused(0, 0, 4095, {1, 1}));
  EXPECT_TRUE(refused(0, 0, INT32_MAX, {1, 1}));
  EXPECT_TRUE(refused(0, 0, INT32_MIN, {1}));
  EXPECT_TRUE(refused(0, 0, 0, {0, 1}));
  EXPECT_TRUE(refused(0, 0, 0, {1, 0}));
  EXPECT_TRUE(refused(0, 0, 0, {1, -1, 1}));
  EXPECT_TRUE(refused(0, 0, 0, {INT64_MAX, INT64_MAX}));
  EXPECT_TRUE(refused(0, 1, 0, {}));
  EXPECT_TRUE(refused(0, 0, 0, std::vector<int64_t>(4097, 1)));
}

}  // namespace
}  // namespace requant::value_histogram_test
