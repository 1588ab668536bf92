#include "runtime/statistics/output_difference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace requant::output_difference_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

OutputDifferenceMessage Compare(const std::vector<float>& first,
                                const std::vector<float>& other, int64_t row) {
  OutputDifference difference;
  difference.Add(first, other, row);
  return difference.Result();
}

TEST(OutputDifference, OfEqualOutputsIsExactlyNothing) {
  const OutputDifferenceMessage found =
      Compare({1, -2, 3, 4}, {1, -2, 3, 4}, 2);
  EXPECT_EQ(found.values(), 4);
  EXPECT_EQ(found.mse(), 0);
  EXPECT_EQ(found.max(), 0);
  EXPECT_EQ(found.cosine(), 1);
  EXPECT_EQ(found.rows(), 2);
  EXPECT_EQ(found.agreeing_rows(), 2);
}

TEST(OutputDifference, IsThatOfAllBatchesTogether) {
  OutputDifference difference;
  difference.Add({1, 0}, {0, 1}, 2);
  difference.Add({2, 0}, {2, 0}, 2);
  const OutputDifferenceMessage found = difference.Result();
  EXPECT_EQ(found.mse(), 0.5);
  EXPECT_EQ(found.max(), 1);
  EXPECT_DOUBLE_EQ(found.cosine(), 4 / 5.0);
  EXPECT_EQ(found.rows(), 2);
  EXPECT_EQ(found.agreeing_rows(), 1);
}

TEST(OutputDifference, CountsValuesThatAreFiniteInOneOnly) {
  const OutputDifferenceMessage found =
      Compare({1, kNan, kInfinity, 3}, {2, kNan, 0, kNan}, 4);
  EXPECT_EQ(found.values(), 1);
  EXPECT_EQ(found.mse(), 1);
  EXPECT_EQ(found.lost_values(), 2);
  EXPECT_EQ(found.never_finite_values(), 1);
  EXPECT_EQ(found.agreeing_rows(), 0);
}

TEST(OutputDifference, OfOutputsThatAreNeverFiniteIsUnknown) {
  for (const float value : {kNan, kInfinity, -kInfinity}) {
    const OutputDifferenceMessage found =
        Compare({value, value}, {value, value}, 2);
    EXPECT_EQ(found.values(), 0);
    EXPECT_EQ(found.never_finite_values(), 2);
    EXPECT_EQ(found.lost_values(), 0);
    EXPECT_TRUE(std::isnan(found.mse())) << value;
    EXPECT_TRUE(std::isnan(found.max())) << value;
    EXPECT_TRUE(std::isnan(found.cosine())) << value;
    EXPECT_EQ(found.rows(), 1);
    EXPECT_EQ(found.agreeing_rows(), 0) << value;
  }
}

TEST(OutputDifference, CountsDifferentNonFiniteValuesAsLost) {
  const OutputDifferenceMessage found =
      Compare({kInfinity, kNan, -kInfinity}, {-kInfinity, kInfinity, kNan}, 1);
  EXPECT_EQ(found.lost_values(), 3);
  EXPECT_EQ(found.never_finite_values(), 0);
  EXPECT_TRUE(std::isnan(found.mse()));
}

TEST(OutputDifference, ComparesRowsWithMaskedValues) {
  const OutputDifferenceMessage found =
      Compare({-kInfinity, 2, 1}, {-kInfinity, 2, 1}, 3);
  EXPECT_EQ(found.never_finite_values(), 1);
  EXPECT_EQ(found.mse(), 0);
  EXPECT_EQ(found.agreeing_rows(), 1);
}

TEST(OutputDifference, HasNoRowsOfSingleValues) {
  EXPECT_EQ(Compare({1, 2}, {1, 2}, 1).rows(), 0);
}

TEST(OutputDifference, KnowsTheCosineOfZeros) {
  EXPECT_EQ(Compare({0, 0}, {0, 0}, 2).cosine(), 1);
  EXPECT_EQ(Compare({0, 0}, {1, 0}, 2).cosine(), 0);
}

}  // namespace
}  // namespace requant::output_difference_test
