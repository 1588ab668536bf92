#include "runtime/calibration/value_observer.h"

#include <algorithm>
#include <limits>
#include <random>

#include "base/testing/testing.h"

namespace requant::value_observer_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

RangeEntry Observe(const std::vector<std::vector<float>>& batches,
                   int64_t channels) {
  ValueObserver observer("x:0");
  int64_t first = 0;
  for (const std::vector<float>& values : batches) {
    const int64_t records = values.size() / std::max<int64_t>(1, channels);
    observer.Add({values, channels, first, records});
    first += records;
  }
  return observer.Take();
}

TEST(ValueObserver, KeepsTheExtremesOfEachBatch) {
  const RangeEntry entry = Observe({{1, -2, 3, 0}, {5, 4}}, 2);
  EXPECT_EQ(entry.count, 2);
  EXPECT_EQ(entry.records, 3);
  EXPECT_EQ(entry.mins, (std::vector<float>{-2, 4}));
  EXPECT_EQ(entry.maxs, (std::vector<float>{3, 5}));
  EXPECT_EQ(entry.histogram->total(), 6);
  EXPECT_EQ(entry.histogram->zeros(), 1);
}

TEST(ValueObserver, KeepsTheExtremesOfEachChannel) {
  const RangeEntry entry = Observe({{1, -2, 3, 0}, {5, -4}}, 2);
  EXPECT_EQ(entry.channel_mins, (std::vector<float>{1, -4}));
  EXPECT_EQ(entry.channel_maxs, (std::vector<float>{5, 0}));
}

TEST(ValueObserver, KeepsNoChannelsThatChangeOrAreTooMany) {
  ValueObserver changing("x:0");
  const std::vector<float> six = {1, 2, 3, 4, 5, 6};
  changing.Add({six, 2, 0, 3});
  changing.Add({six, 3, 3, 2});
  changing.Add({six, 2, 5, 3});
  EXPECT_TRUE(changing.Take().channel_mins.empty());
  const std::vector<float> wide(kMostChannels + 1);
  EXPECT_TRUE(Observe({wide}, wide.size()).channel_mins.empty());
  EXPECT_TRUE(Observe({six}, 0).channel_mins.empty());
}

TEST(ValueObserver, EqualsALoopForAnyNumberOfChannels) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal(1, 2);
  for (int64_t channels : {1, 2, 3, 13, 63, 64, 65, 100, 845}) {
    for (int64_t records : {1, 2, 5, 77}) {
      std::vector<float> values(channels * records);
      for (float& value : values) value = normal(random);
      const RangeEntry entry = Observe({values}, channels);
      std::vector<float> mins(channels, kInfinity), maxs(channels, -kInfinity);
      for (size_t i = 0; i < values.size(); ++i) {
        mins[i % channels] = std::min(mins[i % channels], values[i]);
        maxs[i % channels] = std::max(maxs[i % channels], values[i]);
      }
      EXPECT_EQ(entry.channel_mins, mins) << channels << " " << records;
      EXPECT_EQ(entry.channel_maxs, maxs) << channels << " " << records;
      EXPECT_EQ(entry.mins[0], *std::min_element(mins.begin(), mins.end()));
      EXPECT_EQ(entry.maxs[0], *std::max_element(maxs.begin(), maxs.end()));
    }
  }
}

TEST(ValueObserver, CountsValuesThatAreNotFiniteAndNamesTheFirstRecord) {
  for (float bad : {kNan, kInfinity, -kInfinity}) {
    const RangeEntry entry = Observe({{1, 2, 3, 4}, {5, 6, 7, bad, bad, 8}}, 2);
    EXPECT_EQ(entry.count, 2);
    EXPECT_EQ(entry.not_finite.count, 2);
    EXPECT_EQ(entry.not_finite.first_place, "tensor x:0 record 3");
    EXPECT_EQ(entry.mins, (std::vector<float>{1, 5}));
    EXPECT_EQ(entry.maxs, (std::vector<float>{4, 8}));
    EXPECT_EQ(entry.histogram->total(), 8);
    EXPECT_TRUE(entry.channel_mins.empty());
  }
}

TEST(ValueObserver, ABatchWithoutAnyFiniteValueCounts) {
  const RangeEntry entry = Observe({{kNan, kNan}}, 2);
  EXPECT_EQ(entry.count, 1);
  EXPECT_EQ(entry.not_finite.count, 2);
  EXPECT_TRUE(entry.mins.empty());
}

TEST(ValueObserver, ABatchWithoutValuesIsNone) {
  EXPECT_EQ(Observe({{}}, 2).count, 0);
}

TEST(ValueObserver, KeepsTheMomentsOfTheFirstRecords) {
  ValueObserver observer("x:0", {3, 1});
  const std::vector<float> first = {1, 2, 3, 5}, second = {7, 7, 100, 100};
  observer.Add({first, 2, 0, 2});
  observer.Add({second, 2, 2, 2});
  observer.Add({second, 2, 4, 2});
  EXPECT_EQ(observer.Take().moments, ChannelMoments::Of({1, 2, 3, 5, 7, 7}, 2));
}

TEST(ValueObserver, KeepsTheMomentsOfAllRowsOfARecord) {
  ValueObserver observer("x:0", {1, 1});
  const std::vector<float> values = {1, 2, 3, 5, 7, 7, 9, 9};
  observer.Add({values, 2, 0, 2});
  EXPECT_EQ(observer.Take().moments, ChannelMoments::Of({1, 2, 3, 5}, 2));
}

TEST(ValueObserver, KeepsNoMomentsUnlessAskedToNorOfASingleDimension) {
  EXPECT_FALSE(Observe({{1, 2, 3, 4}}, 2).moments.has_value());
  ValueObserver observer("x:0", {10, 1});
  const std::vector<float> values = {1, 2};
  observer.Add({values, 0, 0, 2});
  EXPECT_FALSE(observer.Take().moments.has_value());
}

TEST(ObserveRange, IsReadAsALineOfALog) {
  RangeEntry entry, line;
  ObserveRange({-1.0f, -3.0f}, {2.0f, 1.0f}, "here", &entry);
  line.AddRange(-3, 2, {"log", 1});
  EXPECT_EQ(entry.count, line.count);
  EXPECT_EQ(entry.mins, line.mins);
  EXPECT_EQ(entry.maxs, line.maxs);
}

TEST(ObserveRange, NamesThePlaceOfFaults) {
  RangeEntry entry;
  ObserveRange({2.0f}, {1.0f}, "first", &entry);
  ObserveRange({kNan}, {1.0f}, "second", &entry);
  EXPECT_EQ(entry.count, 2);
  EXPECT_EQ(entry.inverted.first_place, "first");
  EXPECT_EQ(entry.not_finite.first_place, "second");
  EXPECT_EQ(entry.not_finite.count, 1);
  EXPECT_EQ(entry.maxs, (std::vector<float>{1, 1}));
}

TEST(ObserveMin, TakesTheSmallestOfSeveralValues) {
  RangeEntry entry;
  ObserveMin({3.0f, -1.0f}, "here", &entry);
  ObserveMin({kInfinity, -1.0f}, "there", &entry);
  EXPECT_EQ(entry.count, 2);
  EXPECT_EQ(entry.mins, std::vector<float>{-1});
  EXPECT_EQ(entry.not_finite.first_place, "there");
}

}  // namespace
}  // namespace requant::value_observer_test
