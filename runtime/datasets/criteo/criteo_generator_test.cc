#include "runtime/datasets/criteo/criteo_generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "runtime/datasets/criteo/criteo_format.h"

namespace requant::criteo_generator_test {
namespace {

struct Row {
  CriteoRecord record;
  double probability;
};

// Their views live as long as `generator`.
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
}  // namespace requant::criteo_generator_test
