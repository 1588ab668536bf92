#include "runtime/statistics/batch_timer.h"

#include <gtest/gtest.h>

namespace requant::batch_timer_test {
namespace {

TEST(WarmUpBatches, IsAHundredOfManyAndHalfOfFew) {
  EXPECT_EQ(WarmUpBatches(0), 0);
  EXPECT_EQ(WarmUpBatches(1), 0);
  EXPECT_EQ(WarmUpBatches(2), 1);
  EXPECT_EQ(WarmUpBatches(7), 3);
  EXPECT_EQ(WarmUpBatches(199), 99);
  EXPECT_EQ(WarmUpBatches(200), 100);
  EXPECT_EQ(WarmUpBatches(391), 100);
  EXPECT_EQ(WarmUpBatches(1000000), 100);
}

TEST(BatchTimer, TimesNothingBeforeTheFirstBatch) {
  const BatchTimer timer;
  EXPECT_EQ(timer.Result().timed_records(), 0);
  EXPECT_EQ(timer.Result().timed_seconds(), 0);
}

TEST(BatchTimer, TimesASingleBatch) {
  BatchTimer timer;
  timer.Add(512, 2);
  EXPECT_EQ(timer.Result().warm_up_batches(), 0);
  EXPECT_EQ(timer.Result().timed_records(), 512);
  EXPECT_EQ(timer.Result().timed_seconds(), 2);
}

TEST(BatchTimer, LeavesTheFirstHalfOut) {
  BatchTimer timer;
  for (int i = 0; i < 8; ++i) timer.Add(10, i < 2 ? 1000 : 0.5);
  EXPECT_EQ(timer.Result().warm_up_batches(), 4);
  EXPECT_EQ(timer.Result().timed_records(), 40);
  EXPECT_EQ(timer.Result().timed_seconds(), 2);
}

// The published runs: 2000000 records in batches of 512.
TEST(BatchTimer, LeavesTheFirstHundredOfMany) {
  BatchTimer timer;
  for (int i = 0; i < 3906; ++i) timer.Add(512, i < 100 ? 1000 : 0.25);
  timer.Add(128, 0.125);
  EXPECT_EQ(timer.Result().batches(), 3907);
  EXPECT_EQ(timer.Result().records(), 2000000);
  EXPECT_EQ(timer.Result().warm_up_batches(), 100);
  EXPECT_EQ(timer.Result().timed_records(), 2000000 - 100 * 512);
  EXPECT_EQ(timer.Result().timed_seconds(), 3806 * 0.25 + 0.125);
}

TEST(RecordsPerSecond, IsUnknownWhenNothingWasTimed) {
  BatchTimer timer;
  EXPECT_FALSE(RecordsPerSecond(timer.Result()).has_value());
  timer.Add(512, 2);
  EXPECT_EQ(RecordsPerSecond(timer.Result()), 256);
}

}  // namespace
}  // namespace requant::batch_timer_test
