#ifndef REQUANT_RUNTIME_EVALUATION_BATCH_STREAMS_H_
#define REQUANT_RUNTIME_EVALUATION_BATCH_STREAMS_H_

// Batches of records that run side by side. Results come in the records' order,
// however many batches ran at once.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "runtime/datasets/batch_source.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant {

// What one graph gave for a batch.
struct GraphRun {
  std::vector<tensorflow::Tensor> outputs;
  double seconds = 0;
};

struct BatchRun {
  // The batch without its inputs.
  Batch batch;
  // BatchSource::EstimatedRecords when it was read.
  int64_t estimated_records = 0;
  // The runs in the order in which the work ran the graphs.
  std::vector<GraphRun> graphs;
  // Wall time not overlapped by earlier batches; the sum over batches is the
  // busy time.
  double seconds = 0;
};

class BatchStreams {
 public:
  // Runs a batch. It is called from several threads at once.
  using Work =
      std::function<absl::Status(const Batch& batch, std::vector<GraphRun>*)>;

  // Starts `streams` threads, at least one. Their calls of `source`, which must
  // outlive this, are one after another.
  BatchStreams(BatchSource* source, int streams, Work work);
  // Waits for the batches that run.
  ~BatchStreams();
  BatchStreams(const BatchStreams&) = delete;
  BatchStreams& operator=(const BatchStreams&) = delete;

  // Gives the next batch in the order of the records. Returns false at the end
  // of the data, after which the source is no longer used. An error is that of
  // the first batch that has one; nothing may be called after it.
  absl::StatusOr<bool> Next(BatchRun* run);

 private:
  using Clock = std::chrono::steady_clock;

  struct Finished {
    BatchRun run;
    absl::Status status;
    Clock::time_point start;
    Clock::time_point end;
  };

  void Serve();
  // Reads the next batch and its number; returns false if there is none.
  bool Take(int64_t* number, Finished* finished) ABSL_LOCKS_EXCLUDED(mutex_);
  // Return whether what the threads and Next() wait for is there.
  bool MayTake() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasNext() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  BatchSource* const source_;
  const Work work_;
  // Batches that are taken and not handed out, at most.
  const int64_t max_ahead_;

  // Held by the one thread that reads.
  absl::Mutex read_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);

  absl::Mutex mutex_;
  int64_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t handed_out_ ABSL_GUARDED_BY(mutex_) = 0;
  // How many batches there are, once that is known.
  std::optional<int64_t> batches_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, Finished> finished_ ABSL_GUARDED_BY(mutex_);

  // The end of the time that the batches handed out have counted.
  std::optional<Clock::time_point> counted_until_;
  std::vector<std::thread> threads_;
};

}  // namespace requant

#endif  // REQUANT_RUNTIME_EVALUATION_BATCH_STREAMS_H_
