#include "ranges/range_table.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "base/testing/testing.h"
#include "ranges/channel_moments.h"

namespace requant::range_table_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

RangeTable SmallTable() {
  RangeTable table;
  table.FindOrAdd("b", 1).AddRange(-1.5f, 2.5f, {"log", 1});
  table.FindOrAdd("a").AddMin(-3.0f, {"log", 2});
  table.FindOrAdd("a").AddMin(kNan, {"log", 3});
  table.FindOrAdd("c").AddRange(2.0f, 1.0f, {"log", 4});
  return table;
}

// Adds to an entry what a calibration adds for two records of three channels.
// The values are close together, so that there are few buckets between them.
void AddCalibrated(RangeEntry* entry) {
  const std::vector<float> values = {4001, 0, 4003, 4000, 0, 4005};
  entry->AddRange(0, 4005, {"x:0", 1});
  entry->records += 2;
  if (!entry->histogram.has_value()) entry->histogram.emplace();
  entry->histogram->Add(values);
  entry->channel_mins = {4000, 0, 4003};
  entry->channel_maxs = {4001, 0, 4005};
  entry->moments = ChannelMoments::Of(values, 3);
}

RangeTable CalibratedTable() {
  RangeTable table = SmallTable();
  AddCalibrated(&table.FindOrAdd("x"));
  AddCalibrated(&table.FindOrAdd("y", 1));
  table.set_made_from("digest");
  return table;
}

TEST(RangeEntry, KeepsOnlyWhatAnObservationHas) {
  RangeEntry entry;
  entry.AddMin(-1.0f, {"log", 1});
  entry.AddMax(2.0f, {"log", 2});
  entry.AddMax(3.0f, {"log", 3});
  EXPECT_EQ(entry.count, 3);
  EXPECT_EQ(entry.mins, std::vector<float>{-1.0f});
  EXPECT_EQ(entry.maxs, (std::vector<float>{2.0f, 3.0f}));
  entry.AddRange(-1.0f, 2.0f, {"log", 4});
  EXPECT_EQ(entry.count, 4);
}

TEST(RangeEntry, CountsValuesThatAreNotFiniteWithTheFirstPlace) {
  RangeEntry entry;
  entry.AddRange(0.0f, 1.0f, {"log", 1});
  entry.AddRange(kNan, 1.0f, {"log", 2});
  entry.AddRange(-kInfinity, kInfinity, {"log", 3});
  EXPECT_EQ(entry.count, 3);
  EXPECT_EQ(entry.not_finite.count, 3);
  EXPECT_EQ(entry.not_finite.first_place, "log:2");
  EXPECT_EQ(entry.mins, std::vector<float>{0.0f});
  EXPECT_EQ(entry.maxs, (std::vector<float>{1.0f, 1.0f}));
}

TEST(RangeEntry, CountsInvertedRangesWithTheFirstPlace) {
  RangeEntry entry;
  entry.AddRange(1.0f, 1.0f, {"log", 1});
  entry.AddRange(2.0f, 1.0f, {"log", 2});
  entry.AddRange(3.0f, 1.0f, {"log", 3});
  EXPECT_EQ(entry.inverted.count, 2);
  EXPECT_EQ(entry.inverted.first_place, "log:2");
}

TEST(RangeTable, FindsNothingForAnotherOutput) {
  EXPECT_NE(SmallTable().Find("b", 1), nullptr);
  EXPECT_EQ(SmallTable().Find("b", 0), nullptr);
}

TEST(RangeTable, MergeAppendsInOrderAndKeepsTheFirstPlace) {
  RangeTable first, second;
  first.FindOrAdd("a").AddRange(1.0f, 2.0f, {"first", 1});
  first.FindOrAdd("a").AddMin(kNan, {"first", 2});
  second.FindOrAdd("a").AddMin(kNan, {"second", 1});
  second.FindOrAdd("a").AddRange(4.0f, 3.0f, {"second", 2});
  second.FindOrAdd("b").AddMax(5.0f, {"second", 3});
  first.Merge(second);
  const RangeEntry& a = *first.Find("a");
  EXPECT_EQ(a.count, 4);
  EXPECT_EQ(a.mins, (std::vector<float>{1.0f, 4.0f}));
  EXPECT_EQ(a.maxs, (std::vector<float>{2.0f, 3.0f}));
  EXPECT_EQ(a.not_finite.count, 2);
  EXPECT_EQ(a.not_finite.first_place, "first:2");
  EXPECT_EQ(a.inverted.first_place, "second:2");
  EXPECT_EQ(first.Find("b")->maxs, std::vector<float>{5.0f});
}

TEST(RangeTable, MergeWithItselfDoublesEveryObservation) {
  RangeTable table = SmallTable();
  table.Merge(table);
  EXPECT_EQ(table.Find("b", 1)->mins, (std::vector<float>{-1.5f, -1.5f}));
  EXPECT_EQ(table.Find("a")->count, 4);
}

TEST(RangeTable, MergeAddsUpWhatBothCalibrationsSaw) {
  RangeTable first = CalibratedTable(), second;
  RangeEntry& other = second.FindOrAdd("x");
  AddCalibrated(&other);
  other.channel_mins = {-9, 0, 4004};
  other.channel_maxs = {-8, 1, 4004};
  first.Merge(second);
  const RangeEntry& merged = *first.Find("x");
  EXPECT_EQ(merged.records, 4);
  EXPECT_EQ(merged.histogram->total(), 12);
  EXPECT_EQ(merged.histogram->zeros(), 4);
  EXPECT_EQ(merged.channel_mins, (std::vector<float>{-9, 0, 4003}));
  EXPECT_EQ(merged.channel_maxs, (std::vector<float>{4001, 1, 4005}));
  EXPECT_EQ(merged.moments->rows(), 4);
  EXPECT_EQ(merged.moments->Covariance(0, 2), -0.5f);
}

TEST(RangeTable, MergeWithALogLeavesNoHistogramOfOnlySome) {
  for (bool log_first : {false, true}) {
    RangeEntry log, calibrated;
    log.AddRange(-1, 1, {"log", 1});
    AddCalibrated(&calibrated);
    RangeEntry& into = log_first ? log : calibrated;
    into.Merge(log_first ? calibrated : log);
    EXPECT_EQ(into.count, 2);
    EXPECT_EQ(into.records, 0);
    EXPECT_FALSE(into.histogram.has_value());
    EXPECT_TRUE(into.channel_mins.empty());
    EXPECT_FALSE(into.moments.has_value());
  }
}

TEST(RangeTable, MergeOfDifferentNumbersOfChannelsLeavesNone) {
  RangeEntry one, other;
  AddCalibrated(&one);
  AddCalibrated(&other);
  other.channel_mins.push_back(0);
  other.channel_maxs.push_back(0);
  other.moments = ChannelMoments::Of({1, 2, 3, 4}, 4);
  one.Merge(other);
  EXPECT_FALSE(one.moments.has_value());
  EXPECT_TRUE(one.channel_mins.empty());
  EXPECT_TRUE(one.channel_maxs.empty());
  EXPECT_TRUE(one.histogram.has_value());
}

TEST(RangeTable, AMergedTableIsMadeFromNothingInParticular) {
  RangeTable table = CalibratedTable();
  table.Merge({});
  EXPECT_EQ(table.made_from(), "");
}

TEST(RangeTableFile, ReadsWhatACalibrationWrote) {
  ASSERT_OK_AND_ASSIGN(
      const RangeTable table,
      ParseRangeTable(*SerializeRangeTable(CalibratedTable()), "f"));
  EXPECT_EQ(table.made_from(), "digest");
  const RangeEntry& entry = *table.Find("y", 1);
  EXPECT_EQ(entry.records, 2);
  EXPECT_EQ(*entry.histogram, *CalibratedTable().Find("y", 1)->histogram);
  EXPECT_EQ(entry.channel_mins, (std::vector<float>{4000, 0, 4003}));
  EXPECT_EQ(entry.channel_maxs, (std::vector<float>{4001, 0, 4005}));
  EXPECT_FALSE(table.Find("a")->histogram.has_value());
  EXPECT_EQ(entry.moments, CalibratedTable().Find("y", 1)->moments);
  EXPECT_FALSE(table.Find("a")->moments.has_value());
}

// Programs that predate calibrations can read these.
TEST(RangeTableFile, ATableOfLogsIsOfVersionOne) {
  EXPECT_NE(SerializeRangeTable(SmallTable())->find("\x18\x01"),
            std::string::npos);
  EXPECT_NE(SerializeRangeTable(CalibratedTable())->find("\x18\x02"),
            std::string::npos);
}

// Returns the error for a file of `table` with the byte after `bytes` changed.
std::string MessageForChanged(const RangeTable& table, const std::string& bytes,
                              char changed) {
  std::string contents = *SerializeRangeTable(table);
  const size_t place = contents.find(bytes);
  EXPECT_NE(place, std::string::npos);
  contents[place + bytes.size() - 1] = changed;
  return std::string(ParseRangeTable(contents, "f").status().message());
}

TEST(RangeTableFile, SaysWhatIsWrong) {
  // These are field 12 and its size, then its field 1: two rows.
  EXPECT_EQ(MessageForChanged(CalibratedTable(), "\x62\x36\x08\x02", 0),
            "f is damaged: it has moments that are none (node \"x\"); parse "
            "the log or calibrate again");
  // This is field 3 with the value 1.
  EXPECT_EQ(
      MessageForChanged(SmallTable(), "\x18\x01", 3),
      "f is a RangeTable of version 3, and this program reads versions up to "
      "2: parse the log or calibrate again, or use a newer requant");
}

TEST(RangeTableFile, RefusesEntriesThatNoWriterMakes) {
  using Damage = std::function<void(RangeEntry*)>;
  const auto first_max = [](float max) {
    return [max](RangeEntry* entry) { entry->channel_maxs[0] = max; };
  };
  for (const Damage& damage : std::vector<Damage>{
           first_max(-3), first_max(kNan), first_max(kInfinity),
           [](RangeEntry* entry) { entry->channel_maxs.pop_back(); },
           [](RangeEntry* entry) {
             entry->channel_mins.assign(kMostChannels + 1, 0);
             entry->channel_maxs.assign(kMostChannels + 1, 0);
           },
           // Otherwise sums of counts could overflow.
           [](RangeEntry* entry) {
             entry->records = std::numeric_limits<int64_t>::max();
           }}) {
    RangeTable table = CalibratedTable();
    damage(&table.FindOrAdd("x"));
    EXPECT_FALSE(ParseRangeTable(*SerializeRangeTable(table), "f").ok());
  }
}

TEST(RangeTableFile, ReadsWhatWasWritten) {
  const std::string path = testing::TempDir() + "round_trip.ranges";
  ASSERT_OK(WriteRangeTable(SmallTable(), path));
  const auto table = ReadRangeTable(path);
  ASSERT_OK(table);
  ASSERT_EQ(table->entries().size(), 3);
  EXPECT_EQ(table->Find("b", 1)->mins, std::vector<float>{-1.5f});
  EXPECT_EQ(table->Find("b", 1)->maxs, std::vector<float>{2.5f});
  EXPECT_EQ(table->Find("a")->count, 2);
  EXPECT_EQ(table->Find("a")->not_finite.first_place, "log:3");
  EXPECT_EQ(table->Find("c")->inverted.count, 1);
  EXPECT_EQ(table->Find("c")->inverted.first_place, "log:4");
}

TEST(RangeTableFile, DoesNotDependOnTheOrderNodesWereSeen) {
  RangeTable one, other;
  one.FindOrAdd("a").AddMin(1.0f, {"log", 1});
  one.FindOrAdd("b").AddMin(2.0f, {"log", 2});
  other.FindOrAdd("b").AddMin(2.0f, {"log", 1});
  other.FindOrAdd("a").AddMin(1.0f, {"log", 2});
  EXPECT_EQ(*SerializeRangeTable(one), *SerializeRangeTable(other));
}

TEST(RangeTableFile, HoldsATableWithoutEntries) {
  EXPECT_TRUE(ParseRangeTable(*SerializeRangeTable({}), "f").value().empty());
}

TEST(RangeTableFile, RefusesAFileOfAnotherKind) {
  EXPECT_THAT(ParseRangeTable(";a__print__;__min:[1]\n", "x.log"),
              FailsWith("x.log is not a RangeTable file: expected one that "
                        "requant parse_log --output or requant calibrate "
                        "wrote"));
}

TEST(RangeTableFile, RefusesAFileCutAnywhere) {
  for (const RangeTable& table : {SmallTable(), CalibratedTable()}) {
    const std::string whole = *SerializeRangeTable(table);
    for (size_t size = 0; size < whole.size(); ++size) {
      EXPECT_FALSE(ParseRangeTable(whole.substr(0, size), "f").ok())
          << "cut to " << size << " bytes";
    }
  }
}

TEST(RangeTableFile, RefusesAFileWithAnyBitChanged) {
  for (const RangeTable& table : {SmallTable(), CalibratedTable()}) {
    const std::string whole = *SerializeRangeTable(table);
    for (size_t i = 0; i < whole.size() * 8; ++i) {
      std::string changed = whole;
      changed[i / 8] ^= 1 << (i % 8);
      EXPECT_FALSE(ParseRangeTable(changed, "f").ok()) << "bit " << i;
    }
  }
}

TEST(RangeTableFile, NamesAMissingFile) {
  EXPECT_THAT(ReadRangeTable(testing::TempDir() + "none"),
              FailsWith(testing::HasSubstr("none")));
}

std::vector<float> OneTo(int n) {
  std::vector<float> values;
  for (int i = n; i >= 1; --i) values.push_back(i);
  return values;
}

TEST(Percentile, CountsFromItsOwnTail) {
  EXPECT_EQ(LowerPercentile(OneTo(100), 5), 6);   // Index 5.
  EXPECT_EQ(UpperPercentile(OneTo(100), 5), 96);  // Index 95.
}

TEST(Percentile, IsClampedToTheValuesThereAre) {
  EXPECT_EQ(LowerPercentile(OneTo(10), 0), 1);
  EXPECT_EQ(LowerPercentile(OneTo(10), 100), 10);
  EXPECT_EQ(UpperPercentile(OneTo(10), 0), 10);
  EXPECT_EQ(UpperPercentile(OneTo(10), 100), 1);
  EXPECT_EQ(LowerPercentile(OneTo(10), -20), 1);
  EXPECT_EQ(UpperPercentile(OneTo(10), -20), 10);
  EXPECT_EQ(LowerPercentile({7.0f}, 50), 7);
  EXPECT_TRUE(std::isnan(LowerPercentile({}, 5)));
  EXPECT_TRUE(std::isnan(UpperPercentile({}, 5)));
}

TEST(Percentile, RoundsHalfAwayFromZero) {
  EXPECT_EQ(LowerPercentile(OneTo(10), 5), 2);   // round(0.5) = 1.
  EXPECT_EQ(UpperPercentile(OneTo(10), 5), 10);  // round(9.5) = 10, clamped.
  EXPECT_EQ(LowerPercentile(OneTo(9), 5), 1);    // round(0.45) = 0.
}

TEST(Percentile, EqualsTheFormulaOnSortedValues) {
  std::mt19937 random(1);
  for (int repeat = 0; repeat < 500; ++repeat) {
    std::vector<float> values(1 + random() % 700);
    for (float& value : values) value = static_cast<int>(random() % 1000) - 500;
    const float percentile = (random() % 1001) / 10.0f;
    std::vector<float> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const int last = values.size() - 1;
    const int lower = std::round(values.size() * (percentile / 100.0f));
    const int upper =
        std::round(values.size() * (1.0f - (percentile / 100.0f)));
    EXPECT_EQ(LowerPercentile(values, percentile),
              sorted[std::min(last, lower)]);
    EXPECT_EQ(UpperPercentile(values, percentile),
              sorted[std::min(last, upper)]);
  }
}

}  // namespace
}  // namespace requant::range_table_test
