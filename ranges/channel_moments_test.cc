#include "ranges/channel_moments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "ranges/moment_kernel.h"

namespace requant::channel_moments_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Returns rows of correlated channels, each with its own mean.
std::vector<float> RandomRows(int64_t rows, int64_t channels, float mean,
                              int seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values;
  for (int64_t row = 0; row < rows; ++row) {
    const float common = normal(random);
    for (int64_t i = 0; i < channels; ++i) {
      values.push_back(mean * (1 + i % 7) + common + normal(random));
    }
  }
  return values;
}

struct Oracle {
  std::vector<double> mean;
  std::vector<double> covariance;
};

Oracle Computed(const std::vector<float>& values, int64_t channels) {
  const int64_t rows = values.size() / channels;
  Oracle oracle;
  oracle.mean.resize(channels);
  oracle.covariance.resize(channels * channels);
  for (size_t i = 0; i < values.size(); ++i) {
    oracle.mean[i % channels] += static_cast<double>(values[i]) / rows;
  }
  for (int64_t row = 0; row < rows; ++row) {
    const float* x = values.data() + row * channels;
    for (int64_t i = 0; i < channels; ++i) {
      for (int64_t j = 0; j < channels; ++j) {
        oracle.covariance[i * channels + j] +=
            (x[i] - oracle.mean[i]) * (x[j] - oracle.mean[j]) / rows;
      }
    }
  }
  return oracle;
}

void ExpectNear(const ChannelMoments& moments, const Oracle& oracle,
                double tolerance) {
  ASSERT_EQ(moments.channels(), oracle.mean.size());
  for (size_t i = 0; i < oracle.mean.size(); ++i) {
    EXPECT_NEAR(moments.mean()[i], oracle.mean[i],
                1e-12 * (1 + std::fabs(oracle.mean[i])));
  }
  const int64_t channels = moments.channels();
  for (int64_t i = 0; i < channels * channels; ++i) {
    ASSERT_NEAR(moments.Covariance(i / channels, i % channels),
                oracle.covariance[i], tolerance)
        << i;
  }
}

TEST(ChannelMoments, AreThoseOfTheWholePopulation) {
  const auto moments = ChannelMoments::Of({1, 10, 3, 14}, 2);
  ASSERT_TRUE(moments.has_value());
  EXPECT_EQ(moments->rows(), 2);
  EXPECT_EQ(moments->channels(), 2);
  EXPECT_EQ(moments->mean()[0], 2);
  EXPECT_EQ(moments->mean()[1], 12);
  EXPECT_EQ(moments->Covariance(0, 0), 1);
  EXPECT_EQ(moments->Covariance(1, 1), 4);
  EXPECT_EQ(moments->Covariance(0, 1), 2);
  EXPECT_EQ(moments->Covariance(1, 0), 2);
}

TEST(ChannelMoments, EqualALoopForAnyNumberOfChannelsAndRows) {
  for (int64_t channels : {1, 2, 15, 16, 17, 33, 100}) {
    for (int64_t rows : {1, 2, 255, 256, 257, 700}) {
      const std::vector<float> values = RandomRows(rows, channels, 1, 1);
      ExpectNear(*ChannelMoments::Of(values, channels),
                 Computed(values, channels), 1e-5);
    }
  }
}

// Sums of squares of the values themselves would lose the variance.
TEST(ChannelMoments, ArePreciseForGreatMeans) {
  std::vector<float> values = RandomRows(1000, 5, 1e4f, 2);
  ExpectNear(*ChannelMoments::Of(values, 5), Computed(values, 5), 1e-5);
  // Rows with another mean follow.
  const std::vector<float> others = RandomRows(1000, 5, -2e4f, 3);
  values.insert(values.end(), others.begin(), others.end());
  ExpectNear(*ChannelMoments::Of(values, 5), Computed(values, 5), 1e-7 * 1e10);
}

TEST(ChannelMoments, OfValuesBetweenWhichThereIsNoFloatAreExact) {
  const float low = 1 << 24, high = low + 2;
  const auto moments = ChannelMoments::Of({low, high}, 1);
  EXPECT_EQ(moments->mean()[0], low + 1.0);
  EXPECT_EQ(moments->Covariance(0, 0), 1);
}

TEST(ChannelMoments, OfAConstantVaryByNothing) {
  const auto moments = ChannelMoments::Of(std::vector<float>(900, 0.1f), 3);
  EXPECT_EQ(moments->mean()[2], 0.1f);
  for (float covariance : moments->triangle()) EXPECT_EQ(covariance, 0);
}

TEST(ChannelMoments, LeaveOutRowsThatAreNotFiniteOrTooGreat) {
  for (float bad : {kNan, kInfinity, -kInfinity, 2e15f, -3e38f}) {
    EXPECT_EQ(ChannelMoments::Of({1, 2, bad, 0, 3, 4, 5, bad}, 2),
              ChannelMoments::Of({1, 2, 3, 4}, 2));
    EXPECT_FALSE(ChannelMoments::Of({bad, 1}, 2).has_value());
  }
}

TEST(ChannelMoments, OfTheGreatestValuesCanBeRestored) {
  std::vector<float> values;
  for (int row = 0; row < 600; ++row) {
    values.push_back(row % 2 ? kMostMomentValue : -kMostMomentValue);
    values.push_back(kMostMomentValue);
  }
  const auto moments = ChannelMoments::Of(values, 2);
  const auto restored = ChannelMoments::Restore(
      moments->rows(), {moments->mean().begin(), moments->mean().end()},
      {moments->triangle().begin(), moments->triangle().end()});
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(*restored, *moments);
}

TEST(ChannelMoments, ThereAreNoneOfTooManyChannelsNorOfNone) {
  const std::vector<float> wide(kMostMomentChannels + 1);
  EXPECT_FALSE(ChannelMoments::Of(wide, wide.size()).has_value());
  EXPECT_FALSE(ChannelMoments::Of({1, 2}, 0).has_value());
  EXPECT_FALSE(ChannelMoments::Of({}, 2).has_value());
  const absl::Span<const float> widest =
      absl::MakeSpan(wide).subspan(0, kMostMomentChannels);
  EXPECT_TRUE(ChannelMoments::Of(widest, widest.size()).has_value());
}

TEST(ChannelMoments, MergeEqualsOneOfAllRows) {
  const std::vector<float> first = RandomRows(300, 20, 3, 4);
  std::vector<float> both = first;
  const std::vector<float> second = RandomRows(900, 20, -1, 5);
  both.insert(both.end(), second.begin(), second.end());
  ChannelMoments merged = *ChannelMoments::Of(first, 20);
  merged.Merge(*ChannelMoments::Of(second, 20));
  EXPECT_EQ(merged.rows(), 1200);
  ExpectNear(merged, Computed(both, 20), 1e-4);
}

TEST(ChannelMoments, MergeCommutes) {
  const ChannelMoments first = *ChannelMoments::Of(RandomRows(30, 9, 3, 6), 9);
  const ChannelMoments second =
      *ChannelMoments::Of(RandomRows(77, 9, -1, 7), 9);
  ChannelMoments one = first, other = second;
  one.Merge(second);
  other.Merge(first);
  EXPECT_EQ(one, other);
}

TEST(ChannelMoments, MergeWithNoneChangesNothing) {
  const ChannelMoments some = *ChannelMoments::Of({1, 2, 3, 5}, 2);
  ChannelMoments merged = some;
  merged.Merge({});
  EXPECT_EQ(merged, some);
  ChannelMoments none;
  none.Merge(some);
  EXPECT_EQ(none, some);
}

TEST(ChannelMoments, MergeWithItselfDoublesTheRows) {
  ChannelMoments moments = *ChannelMoments::Of({1, 2, 3, 5}, 2);
  const ChannelMoments before = moments;
  moments.Merge(moments);
  EXPECT_EQ(moments.rows(), 4);
  EXPECT_EQ(moments.triangle(), before.triangle());
}

TEST(ChannelMoments, RestoreRefusesWhatNoneAreLike) {
  const auto ok = [](int64_t rows, std::vector<double> mean,
                     std::vector<float> triangle) {
    return ChannelMoments::Restore(rows, std::move(mean), std::move(triangle))
        .ok();
  };
  EXPECT_TRUE(ok(1, {0, 1}, {1, -1, 1}));
  EXPECT_FALSE(ok(0, {0, 1}, {1, -1, 1}));
  EXPECT_FALSE(ok(-1, {0, 1}, {1, -1, 1}));
  EXPECT_FALSE(ok(std::numeric_limits<int64_t>::max(), {0, 1}, {1, -1, 1}));
  EXPECT_FALSE(ok(1, {}, {}));
  EXPECT_FALSE(ok(1, {0, 1}, {1, -1}));
  EXPECT_FALSE(ok(1, {0, 1}, {1, -1, 1, 1}));
  EXPECT_FALSE(ok(1, {0, 1}, {1, -1, -1}));
  EXPECT_FALSE(ok(1, {0, 2e15}, {1, -1, 1}));
  for (float bad : {kNan, kInfinity, 2e30f}) {
    EXPECT_FALSE(ok(1, {0, bad}, {1, -1, 1}));
    EXPECT_FALSE(ok(1, {0, 1}, {bad, -1, 1}));
    EXPECT_FALSE(ok(1, {0, 1}, {1, -bad, 1}));
  }
  const int64_t wide = kMostMomentChannels + 1;
  EXPECT_FALSE(ok(1, std::vector<double>(wide),
                  std::vector<float>(wide * (wide + 1) / 2)));
}

TEST(ChannelMomentsBuilder, DoesNotDependOnTheBatches) {
  const std::vector<float> values = RandomRows(1000, 7, 2, 8);
  for (int64_t batch : {1, 3, 256, 999}) {
    ChannelMomentsBuilder builder;
    for (int64_t row = 0; row < 1000; row += batch) {
      const int64_t rows = std::min<int64_t>(batch, 1000 - row);
      builder.Add(absl::MakeSpan(values).subspan(row * 7, rows * 7), 7);
    }
    EXPECT_EQ(builder.Build(), ChannelMoments::Of(values, 7)) << batch;
  }
}

TEST(ChannelMomentsBuilder, DoesNotDependOnTheNumberOfThreads) {
  // There are enough channels for three threads.
  const std::vector<float> values = RandomRows(600, 640, 2, 9);
  ChannelMomentsBuilder builder(3);
  builder.Add(values, 640);
  EXPECT_EQ(builder.Build(), ChannelMoments::Of(values, 640));
}

TEST(ChannelMomentsBuilder, HasNothingOnceTheChannelsChanged) {
  ChannelMomentsBuilder builder;
  builder.Add({1, 2, 3, 4}, 2);
  builder.Add({1, 2, 3}, 3);
  builder.Add({1, 2}, 2);
  EXPECT_FALSE(builder.Build().has_value());
}

std::vector<MomentRow> RandomPanel(int64_t rows, int seed) {
  const std::vector<float> values = RandomRows(rows, kMomentPanel, 0.3f, seed);
  std::vector<MomentRow> panel(rows);
  for (size_t i = 0; i < values.size(); ++i) {
    panel[i / kMomentPanel].values[i % kMomentPanel] = values[i];
  }
  return panel;
}

// Returns the sums of one tile of random panels.
std::vector<double> Tile(MomentKernel kernel, int64_t rows, bool diagonal) {
  const std::vector<MomentRow> left = RandomPanel(rows, 10);
  const std::vector<MomentRow> right = RandomPanel(rows, 11);
  const std::vector<double> shift(2 * kMomentPanel, 0.1);
  const std::vector<double> remainder(2 * kMomentPanel, 0.3);
  MomentTile tile;
  tile.left = diagonal ? right.data() : left.data();
  tile.right = right.data();
  tile.rows = rows;
  tile.first_left = diagonal ? 0 : kMomentPanel;
  tile.channels = 2 * kMomentPanel - 3;
  tile.shift_weight = 1.0 / 3;
  tile.shift = shift.data();
  tile.remainder_weight = -1.0 / 7;
  tile.remainder = remainder.data();
  std::vector<double> triangle(tile.channels * (tile.channels + 1) / 2, 0.9);
  tile.triangle = triangle.data();
  kernel(tile);
  return triangle;
}

TEST(MomentKernels, AllGiveTheSameBits) {
  for (MomentKernel kernel : MomentKernels()) {
    for (int64_t rows : {1, 31, 256}) {
      for (bool diagonal : {false, true}) {
        EXPECT_EQ(Tile(kernel, rows, diagonal),
                  Tile(AddMomentTile, rows, diagonal));
      }
    }
  }
}

}  // namespace
}  // namespace requant::channel_moments_test
