#include "runtime/benchmark/stream_pool.h"

#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>

#include "base/testing/testing.h"

namespace requant::stream_pool_test {
namespace {

namespace fs = std::filesystem;
using testing::Pair;

void Nothing() {}

// A pool that records what ran where.
struct LoggedPool {
  explicit LoggedPool(int streams)
      : threads(streams), pool(streams, [this](int stream, int64_t batch) {
          const std::lock_guard<std::mutex> lock(mutex);
          batches.push_back(batch);
          threads[stream].insert(std::this_thread::get_id());
          return 10;
        }) {}

  std::mutex mutex;
  std::vector<int64_t> batches;
  std::vector<std::set<std::thread::id>> threads;
  StreamPool pool;
};

TEST(StreamPool, RunsEveryStreamForItsBatches) {
  LoggedPool log(3);
  ASSERT_OK_AND_ASSIGN(const StreamTimes times,
                       log.pool.Run({.batches_per_stream = 5}, Nothing));
  EXPECT_EQ(times.round.records(), 150);
  EXPECT_EQ(times.batch_seconds.size(), 15u);
  EXPECT_GT(times.round.records_per_second(), 0);
  EXPECT_GT(times.round.cpu_seconds(), 0);
}

TEST(StreamPool, KeepsThreadsFromRunToRunAndGivesEachBatchNumberOnce) {
  LoggedPool log(2);
  for (const int batches : {3, 1, 1}) {
    ASSERT_OK(log.pool.Run({.batches_per_stream = batches}, Nothing));
  }
  EXPECT_THAT(log.batches, UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_EQ(log.threads[0].size(), 1u);
  EXPECT_EQ(log.threads[1].size(), 1u);
  EXPECT_NE(*log.threads[0].begin(), *log.threads[1].begin());
}

TEST(StreamPool, StopsAtTheTimeLimitAfterOneBatch) {
  LoggedPool log(1);
  ASSERT_OK_AND_ASSIGN(
      const StreamTimes times,
      log.pool.Run(
          {.seconds = 1e9, .batches_per_stream = 1 << 30, .max_seconds = 1e-9},
          Nothing));
  EXPECT_EQ(times.batch_seconds.size(), 1u);
}

TEST(StreamPool, ReturnsTheFirstErrorAndCanRunAgain) {
  StreamPool pool(2, [](int stream, int64_t batch) -> absl::StatusOr<int64_t> {
    if (batch == 6) return absl::DataLossError("batch 6");
    return 1;
  });
  // Only the error ends this run.
  EXPECT_EQ(pool.Run({.batches_per_stream = INT64_MAX}, Nothing).status(),
            absl::DataLossError("batch 6"));
  EXPECT_TRUE(pool.Run({.batches_per_stream = 1}, Nothing).ok());
}

TEST(StreamPool, EndsWithoutEverHavingRun) {
  StreamPool pool(4, [](int, int64_t) { return 1; });
}

std::vector<std::pair<int, int>> Try(int cores, int streams, int threads) {
  std::vector<std::pair<int, int>> pairs;
  for (const StreamSetting& setting : SettingsToTry(cores, streams, threads)) {
    pairs.emplace_back(setting.streams(), setting.threads());
  }
  return pairs;
}

TEST(SettingsToTry, RunFromOneStreamToOnePerCore) {
  EXPECT_THAT(Try(1, 0, 0), ElementsAre(Pair(1, 1)));
  EXPECT_THAT(Try(2, 0, 0), ElementsAre(Pair(1, 2), Pair(2, 1)));
  EXPECT_THAT(Try(16, 0, 0), ElementsAre(Pair(1, 16), Pair(2, 8), Pair(4, 4),
                                         Pair(8, 2), Pair(16, 1)));
}

TEST(SettingsToTry, NeverUsesMoreThreadsThanCores) {
  for (int cores = 1; cores <= 130; ++cores) {
    const auto pairs = Try(cores, 0, 0);
    EXPECT_LE(pairs.size(), 5u);
    for (const auto& [streams, threads] : pairs) {
      EXPECT_GE(threads, 1);
      EXPECT_LE(streams * threads, cores);
    }
  }
}

TEST(SettingsToTry, KeepsWhatIsGiven) {
  EXPECT_THAT(Try(8, 3, 7), ElementsAre(Pair(3, 7)));
  EXPECT_THAT(Try(8, 2, 0), ElementsAre(Pair(2, 1), Pair(2, 4)));
  EXPECT_THAT(Try(8, 0, 2), ElementsAre(Pair(1, 2), Pair(4, 2)));
  EXPECT_THAT(Try(2, 4, 0), ElementsAre(Pair(4, 1)));
}

TEST(CoreWaitSeconds, AddsUpTheWaitingTimeOfAllThreads) {
  const fs::path folder = fs::path(testing::TempDir()) / "threads";
  fs::create_directories(folder / "10");
  fs::create_directories(folder / "11");
  // This thread ended between the listing and the reading.
  fs::create_directories(folder / "12");
  std::ofstream(folder / "10" / "schedstat") << "7000000000 1500000000 3\n";
  std::ofstream(folder / "11" / "schedstat") << "0 250000000 1\n";
  EXPECT_DOUBLE_EQ(CoreWaitSeconds(folder).value_or(-1), 1.75);
}

TEST(CoreWaitSeconds, IsUnknownWhereLinuxDoesNotTell) {
  const fs::path folder = fs::path(testing::TempDir()) / "untold";
  fs::create_directories(folder / "10");
  EXPECT_EQ(CoreWaitSeconds(folder), std::nullopt);
  EXPECT_EQ(CoreWaitSeconds(folder / "missing"), std::nullopt);
}

}  // namespace
}  // namespace requant::stream_pool_test
