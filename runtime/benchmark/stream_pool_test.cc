#include "runtime/benchmark/stream_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace requant::stream_pool_test {
namespace {

void Nothing() {}

// Remembers what ran where.
struct Log {
  std::mutex mutex;
  std::vector<int64_t> batches;
  std::vector<std::set<std::thread::id>> threads =
      std::vector<std::set<std::thread::id>>(8);

  absl::StatusOr<int64_t> Run(int stream, int64_t batch) {
    const std::lock_guard<std::mutex> lock(mutex);
    batches.push_back(batch);
    threads[stream].insert(std::this_thread::get_id());
    return 10;
  }
};

TEST(StreamPool, RunsEveryStreamForItsBatches) {
  Log log;
  StreamPool pool(
      3, [&](int stream, int64_t batch) { return log.Run(stream, batch); });
  const auto times = pool.Run({.batches_per_stream = 5}, Nothing);
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_EQ(times->records, 150);
  EXPECT_EQ(times->batch_seconds.size(), 15u);
  EXPECT_GT(times->records_per_second, 0);
  EXPECT_GT(times->cpu_seconds, 0);
}

TEST(StreamPool, GivesEachBatchNumberOnceAndGoesOnInTheNextRun) {
  Log log;
  StreamPool pool(
      2, [&](int stream, int64_t batch) { return log.Run(stream, batch); });
  ASSERT_TRUE(pool.Run({.batches_per_stream = 3}, Nothing).ok());
  ASSERT_TRUE(pool.Run({.batches_per_stream = 2}, Nothing).ok());
  std::sort(log.batches.begin(), log.batches.end());
  EXPECT_THAT(log.batches, testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST(StreamPool, KeepsItsThreadsFromRunToRun) {
  Log log;
  StreamPool pool(
      2, [&](int stream, int64_t batch) { return log.Run(stream, batch); });
  for (int run = 0; run < 3; ++run) {
    ASSERT_TRUE(pool.Run({.batches_per_stream = 2}, Nothing).ok());
  }
  EXPECT_EQ(log.threads[0].size(), 1u);
  EXPECT_EQ(log.threads[1].size(), 1u);
  EXPECT_NE(*log.threads[0].begin(), *log.threads[1].begin());
}

TEST(StreamPool, StopsAtTheTimeLimitAfterOneBatch) {
  Log log;
  StreamPool pool(
      1, [&](int stream, int64_t batch) { return log.Run(stream, batch); });
  const auto times = pool.Run(
      {.seconds = 1e9, .batches_per_stream = 1 << 30, .max_seconds = 1e-9},
      Nothing);
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_EQ(times->batch_seconds.size(), 1u);
}

TEST(StreamPool, ReturnsTheFirstErrorAndCanRunAgain) {
  StreamPool pool(2, [](int stream, int64_t batch) -> absl::StatusOr<int64_t> {
    if (batch == 6) return absl::DataLossError("batch 6");
    return 1;
  });
  // Without an end of its own: only the error ends it.
  EXPECT_EQ(pool.Run({.batches_per_stream = INT64_MAX}, Nothing).status(),
            absl::DataLossError("batch 6"));
  EXPECT_TRUE(pool.Run({.batches_per_stream = 1}, Nothing).ok());
}

TEST(StreamPool, EndsWithoutEverHavingRun) {
  StreamPool pool(4, [](int, int64_t) { return 1; });
}

}  // namespace
}  // namespace requant::stream_pool_test
