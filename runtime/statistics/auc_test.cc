#include "runtime/statistics/auc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace requant::auc_test {
namespace {

struct Record {
  float score;
  bool is_class_1;
};

// Computes AUC by definition: every pair of records of class 1 and class 0.
double PairByPair(const std::vector<Record>& records) {
  double points = 0;
  double pairs = 0;
  for (const Record& one : records) {
    if (!one.is_class_1) continue;
    for (const Record& zero : records) {
      if (zero.is_class_1) continue;
      ++pairs;
      if (one.score > zero.score) points += 1;
      if (one.score == zero.score) points += 0.5;
    }
  }
  return points / pairs;
}

Auc AucOf(const std::vector<Record>& records,
          size_t capacity = AucAccumulator::kDefaultCapacity) {
  AucAccumulator accumulator(capacity);
  for (const Record& record : records) {
    accumulator.Add(record.score, record.is_class_1);
  }
  return accumulator.Result().value();
}

// Returns scores with `levels` distinct values that correlate with the class.
std::vector<Record> RandomRecords(int count, int levels, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Record> records;
  for (int i = 0; i < count; ++i) {
    const bool is_class_1 = random() % 4 == 0;
    const int level =
        static_cast<int>(random() % levels) * (is_class_1 ? 3 : 2) / 3;
    records.push_back(
        {static_cast<float>(level) / static_cast<float>(levels) - 0.25f,
         is_class_1});
  }
  return records;
}

TEST(Auc, IsOneWhenAllOfClass1AreAbove) {
  EXPECT_EQ(AucOf({{0.1f, false}, {0.2f, false}, {0.3f, true}}).value, 1);
}

TEST(Auc, CountsTiesHalf) {
  EXPECT_EQ(AucOf({{0.5f, false}, {0.5f, true}}).value, 0.5);
  EXPECT_EQ(AucOf({{-0.0f, false}, {0.0f, true}}).value, 0.5);
}

TEST(Auc, OrdersNegativeAndInfiniteScores) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(AucOf({{-infinity, false},
                   {-2, true},
                   {-1, false},
                   {1, true},
                   {infinity, true}})
                .value,
            5.0 / 6);
}

TEST(Auc, RanksNanOnTheWrongSideOfAll) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(AucOf({{NAN, true}, {-infinity, false}}).value, 0);
  EXPECT_EQ(AucOf({{infinity, true}, {NAN, false}}).value, 0);
  EXPECT_EQ(AucOf({{NAN, true}, {NAN, false}}).value, 0);
}

TEST(Auc, IsUnsetWithoutBothClasses) {
  AucAccumulator accumulator;
  EXPECT_FALSE(accumulator.Result().has_value());
  accumulator.Add(0.5f, true);
  EXPECT_FALSE(accumulator.Result().has_value());
  accumulator.Add(0.5f, false);
  EXPECT_TRUE(accumulator.Result().has_value());
}

TEST(Auc, EqualsTheCountOverAllPairs) {
  for (const int levels : {1, 2, 10, 1000, 1000000}) {
    const std::vector<Record> records = RandomRecords(2000, levels, levels);
    const Auc auc = AucOf(records);
    EXPECT_DOUBLE_EQ(auc.value, PairByPair(records)) << levels << " levels";
    EXPECT_EQ(auc.max_error, 0);
  }
}

TEST(Auc, IsWithinItsBoundWhenBinsAreShared) {
  const std::vector<Record> records = RandomRecords(3000, 1000000, 7);
  const double exact = PairByPair(records);
  for (const size_t capacity : {1, 2, 16, 100, 1000, 2900}) {
    const Auc auc = AucOf(records, capacity);
    EXPECT_GT(auc.max_error, 0) << capacity;
    EXPECT_LE(std::abs(auc.value - exact), auc.max_error) << capacity;
  }
  EXPECT_LT(AucOf(records, 1000).max_error, 1e-3);
}

// There are more records than are sorted at a time, and more scores than fit.
TEST(Auc, DependsOnTheRecordsAndNotOnTheirOrder) {
  std::vector<Record> records = RandomRecords(300000, 1000000, 11);
  const Auc forward = AucOf(records, 5000);
  std::reverse(records.begin(), records.end());
  const Auc backward = AucOf(records, 5000);
  EXPECT_EQ(forward.value, backward.value);
  EXPECT_EQ(forward.max_error, backward.max_error);
}

// The reference is a sum of ranks (Mann and Whitney's U), since there are too
// many pairs.
TEST(Auc, IsExactForAMillionDistinctScores) {
  constexpr int kRecords = 1 << 20;
  AucAccumulator accumulator;
  long double rank_sum = 0;
  double ones = 0;
  for (int i = 0; i < kRecords; ++i) {
    // An odd factor permutes the ranks.
    const int rank = static_cast<int>(i * 400009LL % kRecords);
    const bool is_class_1 = rank % 7 == 3 || rank % 1000 > 900;
    accumulator.Add(static_cast<float>(rank) / kRecords, is_class_1);
    if (!is_class_1) continue;
    rank_sum += rank + 1;
    ++ones;
  }
  const long double expected =
      (rank_sum - ones * (ones + 1) / 2) / (ones * (kRecords - ones));
  const Auc auc = accumulator.Result().value();
  EXPECT_EQ(auc.max_error, 0);
  EXPECT_NEAR(auc.value, static_cast<double>(expected), 1e-15);
}

TEST(Auc, HasATinyBoundForManyMillionScores) {
  AucAccumulator accumulator;
  std::mt19937 random(5);
  std::uniform_real_distribution<float> uniform(0, 1);
  for (int i = 0; i < 3000000; ++i) {
    const float score = uniform(random);
    accumulator.Add(score, uniform(random) < score);
  }
  const Auc auc = accumulator.Result().value();
  EXPECT_GT(auc.max_error, 0);
  EXPECT_LT(auc.max_error, 1e-6);
  // Scores that are true, evenly spread probabilities have an AUC of 5/6.
  EXPECT_NEAR(auc.value, 5.0 / 6, 1e-3);
}

}  // namespace
}  // namespace requant::auc_test
