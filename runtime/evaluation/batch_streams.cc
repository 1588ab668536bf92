#include "runtime/evaluation/batch_streams.h"

#include <algorithm>
#include <utility>

namespace requant {
namespace {

// The number of batches taken per stream, so that a slow one delays no others.
constexpr int64_t kAheadPerStream = 4;

}  // namespace

BatchStreams::BatchStreams(BatchSource* source, int streams, Work work)
    : source_(source),
      work_(std::move(work)),
      max_ahead_(kAheadPerStream * streams) {
  for (int i = 0; i < streams; ++i) {
    threads_.emplace_back([this] { Serve(); });
  }
}

BatchStreams::~BatchStreams() {
  {
    const absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

void BatchStreams::Serve() {
  int64_t number = 0;
  Finished finished;
  while (Take(&number, &finished)) {
    if (finished.status.ok()) {
      finished.status = work_(finished.run.batch, &finished.run.graphs);
      finished.end = Clock::now();
      finished.run.batch.inputs.clear();
    }
    const absl::MutexLock lock(&mutex_);
    // Batches taken before one that failed are still finished, so that the
    // first error in the records' order is the one reported.
    if (!finished.status.ok()) stopped_ = true;
    finished_.emplace(number, std::exchange(finished, Finished()));
  }
}

bool BatchStreams::MayTake() const {
  return stopped_ || taken_ - handed_out_ < max_ahead_;
}

bool BatchStreams::Take(int64_t* number, Finished* finished) {
  const absl::MutexLock reading(&read_mutex_);
  {
    const absl::MutexLock lock(&mutex_,
                               absl::Condition(this, &BatchStreams::MayTake));
    if (stopped_) return false;
    *number = taken_++;
  }
  const absl::StatusOr<bool> more = source_->Next(&finished->run.batch);
  finished->run.estimated_records = source_->EstimatedRecords();
  // Start times are in the order of the numbers.
  finished->start = finished->end = Clock::now();
  if (more.ok() && !*more) {
    const absl::MutexLock lock(&mutex_);
    stopped_ = true;
    batches_ = *number;
    return false;
  }
  finished->status = more.status();
  return true;
}

bool BatchStreams::HasNext() const {
  return batches_ == handed_out_ || finished_.count(handed_out_) > 0;
}

absl::StatusOr<bool> BatchStreams::Next(BatchRun* run) {
  Finished finished;
  {
    const absl::MutexLock lock(&mutex_,
                               absl::Condition(this, &BatchStreams::HasNext));
    if (batches_ == handed_out_) return false;
    const auto next = finished_.find(handed_out_);
    finished = std::move(next->second);
    finished_.erase(next);
    ++handed_out_;
  }
  if (!finished.status.ok()) return finished.status;
  *run = std::move(finished.run);
  const Clock::time_point start =
      std::max(finished.start, counted_until_.value_or(finished.start));
  counted_until_ =
      std::max(finished.end, counted_until_.value_or(finished.end));
  run->seconds = std::max(
      0.0, std::chrono::duration<double>(finished.end - start).count());
  return true;
}

}  // namespace requant
