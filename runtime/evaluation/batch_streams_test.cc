#include "runtime/evaluation/batch_streams.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>

#include "base/testing/testing.h"

namespace requant::batch_streams_test {
namespace {

// Provides batches of two records; after the last there may be an error.
class CountingSource : public BatchSource {
 public:
  explicit CountingSource(int64_t batches, absl::Status end = absl::OkStatus())
      : batches_(batches), end_(std::move(end)) {}

  absl::StatusOr<bool> Next(Batch* batch) override {
    EXPECT_EQ(readers_.fetch_add(1), 0) << "read by two at once";
    absl::StatusOr<bool> more = true;
    if (given_ == batches_) {
      more = end_.ok() ? absl::StatusOr<bool>(false) : end_;
    } else {
      *batch = Batch();
      batch->first_record = 2 * given_++;
      batch->size = 2;
      batch->inputs.resize(1);
    }
    readers_.fetch_sub(1);
    return more;
  }
  int64_t EstimatedRecords() const override { return 2 * batches_; }
  int64_t bad_records() const override { return 0; }
  int64_t lost_rests() const override { return 0; }

  int64_t given() const { return given_; }

 private:
  const int64_t batches_;
  const absl::Status end_;
  int64_t given_ = 0;
  std::atomic<int> readers_{0};
};

// Lets the first of each pair of batches end only after the second has ended.
class Swapper {
 public:
  void Run(int64_t number, int64_t batches) {
    std::unique_lock<std::mutex> lock(mutex_);
    const bool waits = number % 2 == 0 && number + 1 < batches;
    if (waits) ended_or_not_.wait(lock, [&] { return ended_ > number; });
    ended_ = std::max(ended_, number);
    ended_or_not_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_or_not_;
  int64_t ended_ = -1;
};

absl::Status DoNothing(const Batch&, std::vector<GraphRun>*) {
  return absl::OkStatus();
}

std::vector<int64_t> FirstRecords(BatchStreams* streams) {
  std::vector<int64_t> records;
  BatchRun run;
  while (true) {
    if (!streams->Next(&run).value()) return records;
    records.push_back(run.batch.first_record);
  }
}

TEST(BatchStreams, HandOutResultsInTheRecordsOrder) {
  constexpr int64_t kBatches = 9;
  CountingSource source(kBatches);
  Swapper swapper;
  BatchStreams streams(&source, 2,
                       [&](const Batch& batch, std::vector<GraphRun>*) {
                         swapper.Run(batch.first_record / 2, kBatches);
                         return absl::OkStatus();
                       });
  EXPECT_THAT(FirstRecords(&streams),
              ElementsAre(0, 2, 4, 6, 8, 10, 12, 14, 16));
}

TEST(BatchStreams, HandOutWhatTheWorkGaveWithoutTheInputs) {
  CountingSource source(1);
  BatchStreams streams(&source, 3,
                       [&](const Batch& batch, std::vector<GraphRun>* runs) {
                         EXPECT_EQ(batch.inputs.size(), 1u);
                         runs->resize(2);
                         (*runs)[1].seconds = 0.5;
                         return absl::OkStatus();
                       });
  BatchRun run;
  ASSERT_OK_AND_ASSIGN(const bool more, streams.Next(&run));
  ASSERT_TRUE(more);
  EXPECT_EQ(run.batch.size, 2);
  EXPECT_EQ(run.estimated_records, 2);
  EXPECT_TRUE(run.batch.inputs.empty());
  ASSERT_EQ(run.graphs.size(), 2u);
  EXPECT_EQ(run.graphs[1].seconds, 0.5);
  EXPECT_GE(run.seconds, 0);
}

TEST(BatchStreams, EndAtOnceWithoutData) {
  CountingSource source(0);
  BatchStreams streams(&source, 2, DoNothing);
  EXPECT_THAT(FirstRecords(&streams), IsEmpty());
}

// This holds whichever of several batches fails first by the clock.
TEST(BatchStreams, TellTheFirstErrorInTheRecordsOrder) {
  constexpr int64_t kBatches = 8;
  CountingSource source(kBatches);
  Swapper swapper;
  BatchStreams streams(
      &source, 2, [&](const Batch& batch, std::vector<GraphRun>*) {
        const int64_t number = batch.first_record / 2;
        swapper.Run(number, kBatches);
        if (number < 4) return absl::OkStatus();
        return absl::InternalError(absl::StrCat("batch ", number));
      });
  BatchRun run;
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(streams.Next(&run).ok());
  EXPECT_EQ(streams.Next(&run).status().message(), "batch 4");
}

TEST(BatchStreams, TellAnErrorOfTheSourceAfterTheBatchesBeforeIt) {
  CountingSource source(3, absl::DataLossError("a bad record"));
  BatchStreams streams(&source, 2, DoNothing);
  BatchRun run;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(streams.Next(&run).ok());
  EXPECT_EQ(streams.Next(&run).status().message(), "a bad record");
}

TEST(BatchStreams, TakeOnlySomeBatchesAheadOfWhoTakesThem) {
  CountingSource source(1000);
  {
    BatchStreams streams(&source, 2, DoNothing);
    BatchRun run;
    ASSERT_TRUE(streams.Next(&run).ok());
  }
  EXPECT_LT(source.given(), 20);
}

}  // namespace
}  // namespace requant::batch_streams_test
