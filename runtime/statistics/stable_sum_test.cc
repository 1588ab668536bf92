#include "runtime/statistics/stable_sum.h"

#include <gtest/gtest.h>

#include <limits>

namespace requant::stable_sum_test {
namespace {

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
}  // namespace requant::stable_sum_test
