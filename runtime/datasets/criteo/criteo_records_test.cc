#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_replace.h"
#include "base/files/file.h"
#include "graph/testing/testing.h"
#include "runtime/datasets/criteo/criteo_format.h"
#include "runtime/datasets/criteo/criteo_generator.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant::criteo_records_test {
namespace {

CriteoRecord RecordOf(float value) {
  CriteoRecord record;
  record.numeric.fill(value);
  return record;
}

std::string Written(const std::string& json) {
  const std::string path = testing::TempDir() + "ranges.json";
  EXPECT_TRUE(WriteFileAtomically(path, json).ok());
  return path;
}

NumericRanges SomeRanges() {
  NumericRanges ranges;
  for (int i = 0; i < kNumericColumns; ++i) {
    ranges.min[i] = -0.1f * i;
    ranges.range[i] = 1.0f / (3 + i);
  }
  return ranges;
}

TEST(HashBucket, IsWhatTheKernelComputes) {
  const std::vector<std::string> categories = {
      "",         "68fd1e64",           "a", "\xff\x00 b", std::string(40, 'x'),
      "0b153874", std::string(100, 'y')};
  const tensorflow::GraphDef graph = GraphFromText(R"(
    node { name: "text" op: "Placeholder"
           attr { key: "dtype" value { type: DT_STRING } } }
    node { name: "bucket" op: "StringToHashBucketFast" input: "text"
           attr { key: "num_buckets" value { i: 1000 } } })");
  tensorflow::Tensor text(tensorflow::DT_STRING,
                          {static_cast<int64_t>(categories.size())});
  for (size_t i = 0; i < categories.size(); ++i) {
    text.vec<tensorflow::tstring>()(i) = categories[i];
  }
  const auto buckets = RunGraph(graph, {{"text", text}}, {"bucket"});
  ASSERT_TRUE(buckets.ok()) << buckets.status();
  for (size_t i = 0; i < categories.size(); ++i) {
    EXPECT_EQ(HashBucket(categories[i], 1000), (*buckets)[0].vec<int64_t>()(i))
        << i;
  }
}

TEST(HashBucket, TakesManyBuckets) {
  constexpr int64_t kMany = int64_t{1} << 40;
  EXPECT_GE(HashBucket("68fd1e64", kMany), 1000);
  EXPECT_LT(HashBucket("68fd1e64", kMany), kMany);
}

TEST(Order, IsThatOfTheModelZoo) {
  std::vector<std::string> numeric, categorical;
  for (int column : kNumericOrder) numeric.push_back(NumericName(column));
  for (int column : kCategoricalOrder) {
    categorical.push_back(CategoricalName(column));
  }
  EXPECT_THAT(numeric, ElementsAre("I1", "I10", "I11", "I12", "I13", "I2", "I3",
                                   "I4", "I5", "I6", "I7", "I8", "I9"));
  EXPECT_THAT(
      categorical,
      ElementsAre("C10", "C11", "C12", "C13", "C14", "C15", "C16", "C17", "C18",
                  "C19", "C1", "C20", "C21", "C22", "C23", "C24", "C25", "C26",
                  "C2", "C3", "C4", "C5", "C6", "C7", "C8", "C9"));
}

TEST(RangeCollector, TakesSmallestValueAndSpan) {
  RangeCollector collector;
  for (float value : {4.0f, -2.0f, 10.0f}) collector.Add(RecordOf(value));
  const auto ranges = collector.Ranges();
  ASSERT_TRUE(ranges.ok()) << ranges.status();
  EXPECT_EQ(ranges->min[12], -2);
  EXPECT_EQ(ranges->range[12], 12);
  EXPECT_EQ(Normalize(-2, *ranges, 12), 0);
  EXPECT_EQ(Normalize(10, *ranges, 12), 1);
  EXPECT_EQ(Normalize(2, *ranges, 12), 4.0f / 12.0f);
}

TEST(RangeCollector, NormalisesAConstantColumnToZero) {
  RangeCollector collector;
  collector.Add(RecordOf(7));
  collector.Add(RecordOf(7));
  const auto ranges = collector.Ranges();
  ASSERT_TRUE(ranges.ok()) << ranges.status();
  EXPECT_EQ(Normalize(7, *ranges, 0), 0);
}

TEST(RangeCollector, RefusesToJudgeNothing) {
  EXPECT_THAT(std::string(RangeCollector().Ranges().status().message()),
              HasSubstr("no record"));
}

TEST(RangeCollector, RefusesARangeBeyondFloat) {
  RangeCollector collector;
  collector.Add(RecordOf(std::numeric_limits<float>::max()));
  collector.Add(RecordOf(std::numeric_limits<float>::lowest()));
  EXPECT_THAT(std::string(collector.Ranges().status().message()),
              HasSubstr("beyond float32"));
}

TEST(Ranges, SurviveTheirFile) {
  const NumericRanges ranges = SomeRanges();
  const auto read = ReadRanges(Written(RangesAsJson(ranges, 5)));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->min, ranges.min);
  EXPECT_EQ(read->range, ranges.range);
}

TEST(Ranges, RefuseWhatIsNotTheirFile) {
  const std::string good = RangesAsJson(SomeRanges(), 5);
  struct Case {
    std::string json;
    std::string reason;
  };
  const Case cases[] = {
      {"", "not a file of ranges"},
      {"{}", "column I1 is missing"},
      {"[1, 2]", "not a file of ranges"},
      {absl::StrReplaceAll(good, {{"\"I7\"", "\"I6\""}}), "I6 is there twice"},
      {absl::StrReplaceAll(good, {{"\"I7\"", "\"C7\""}}), "no column \"C7\""},
      {absl::StrReplaceAll(good, {{"0.25", "0"}}), "range above 0"},
      {absl::StrReplaceAll(good, {{"0.25", "\"NaN\""}}), "range above 0"},
  };
  for (const Case& c : cases) {
    EXPECT_THAT(std::string(ReadRanges(Written(c.json)).status().message()),
                HasSubstr(c.reason))
        << c.json;
  }
}

struct Row {
  CriteoRecord record;
  double probability;
};

// Returns rows; their views live as long as `generator`.
std::vector<Row> Rows(CriteoGenerator* generator, int count) {
  std::vector<Row> rows(count);
  for (Row& row : rows) row.probability = generator->Next(&row.record);
  return rows;
}

bool Same(const Row& a, const Row& b) {
  return a.record.label == b.record.label &&
         a.record.numeric == b.record.numeric &&
         a.record.missing_numeric == b.record.missing_numeric &&
         a.record.categorical == b.record.categorical &&
         a.probability == b.probability;
}

TEST(CriteoGenerator, DrawsTheSameRowsForTheSameSeed) {
  CriteoGenerator a(3, CriteoSplit::kEval), b(3, CriteoSplit::kEval);
  const std::vector<Row> rows_a = Rows(&a, 100), rows_b = Rows(&b, 100);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(Same(rows_a[i], rows_b[i])) << i;
}

TEST(CriteoGenerator, DrawsOtherRowsForAnotherSeedOrSplit) {
  CriteoGenerator a(3, CriteoSplit::kEval), b(4, CriteoSplit::kEval),
      c(3, CriteoSplit::kTrain), d(3, CriteoSplit::kCalibration);
  std::vector<Row> all;
  for (CriteoGenerator* generator : {&a, &b, &c, &d}) {
    for (const Row& row : Rows(generator, 50)) all.push_back(row);
  }
  for (size_t i = 0; i < all.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_FALSE(Same(all[i], all[j]));
  }
}

TEST(CriteoGenerator, LooksLikeTheChallenge) {
  constexpr int kRows = 20000;
  CriteoGenerator generator(1, CriteoSplit::kTrain);
  std::array<std::set<std::string_view>, kCategoricalColumns> tokens;
  std::array<int, kNumericColumns> missing = {};
  float lowest = 0;
  for (const Row& row : Rows(&generator, kRows)) {
    for (int i = 0; i < kCategoricalColumns; ++i) {
      tokens[i].insert(row.record.categorical[i]);
    }
    for (int i = 0; i < kNumericColumns; ++i) {
      missing[i] += row.record.missing_numeric >> i & 1;
      lowest = std::min(lowest, row.record.numeric[i]);
      EXPECT_EQ(row.record.numeric[i], static_cast<int>(row.record.numeric[i]));
    }
  }
  EXPECT_LT(lowest, 0);
  EXPECT_NEAR(missing[0], 0.45 * kRows, 0.02 * kRows);
  EXPECT_EQ(missing[1], 0);
  EXPECT_EQ(tokens[8].size(), 3);
  EXPECT_GT(tokens[2].size(), 2000);
  EXPECT_TRUE(tokens[18].count(kMissingCategorical));
  for (std::string_view token : tokens[2]) {
    if (token != kMissingCategorical) {
      ASSERT_EQ(token.size(), 8);
      ASSERT_EQ(token.find_first_not_of("0123456789abcdef"), token.npos);
    }
  }
}

TEST(CriteoGenerator, LabelsFollowTheProbability) {
  constexpr int kRows = 50000;
  CriteoGenerator generator(1, CriteoSplit::kTrain);
  double expected = 0, guessed = 0, best = 0;
  int positives = 0;
  for (const Row& row : Rows(&generator, kRows)) {
    expected += row.probability;
    positives += row.record.label;
    best += std::max(row.probability, 1 - row.probability);
    guessed += row.record.label == (row.probability > 0.5 ? 1 : 0);
  }
  // Five standard deviations of a mean of 50,000 coins.
  EXPECT_NEAR(positives, expected, 5 * 0.5 * 224);
  EXPECT_NEAR(guessed, best, 5 * 0.4 * 224);
  EXPECT_NEAR(best / kRows, 0.80, 0.01);
}

TEST(CriteoSplit, HasThreeNames) {
  EXPECT_EQ(CriteoSplitNamed("train"), CriteoSplit::kTrain);
  EXPECT_EQ(CriteoSplitNamed("calibration"), CriteoSplit::kCalibration);
  EXPECT_EQ(CriteoSplitNamed("eval"), CriteoSplit::kEval);
  EXPECT_EQ(CriteoSplitNamed("test"), std::nullopt);
}

}  // namespace
}  // namespace requant::criteo_records_test
