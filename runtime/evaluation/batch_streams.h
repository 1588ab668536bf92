#ifndef REQUANT_RUNTIME_EVALUATION_BATCH_STREAMS_H_
#define REQUANT_RUNTIME_EVALUATION_BATCH_STREAMS_H_

// Runs batches of records concurrently. Results come in the records' order,
// however many batches run at once.

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

// The result of one graph for a batch.
struct GraphRun {
  std::vector<tensorflow::Tensor> outputs;
  double seconds = 0;
};

struct BatchRun {
  // The batch, without its inputs.
  Batch batch;
  // BatchSource::EstimatedRecords when the batch was read.
  int64_t estimated_records = 0;
  // The runs, in the order in which `Work` ran the graphs.
  std::vector<GraphRun> graphs;
  // The wall time not overlapped by earlier batches; its sum over all batches
  // is the busy time.
  double seconds = 0;
};

class BatchStreams {
 public:
  // Runs a batch. Several threads call it at once.
  using Work =
      std::function<absl::Status(const Batch& batch, std::vector<GraphRun>*)>;

  // Starts `streams` threads, at least one. They call `source`, which must
  // outlive this object, one at a time.
  BatchStreams(BatchSource* source, int streams, Work work);
  // Waits for running batches.
  ~BatchStreams();
  BatchStreams(const BatchStreams&) = delete;
  BatchStreams& operator=(const BatchStreams&) = delete;

  // Sets `run` to the next batch in the records' order. Returns false at the
  // end of the data, after which the source is no longer used. An error is that
  // of the first batch that failed; Next() must not be called after an error.
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
  // Return whether a thread, or Next(), need not wait any longer.
  bool MayTake() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasNext() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  BatchSource* const source_;
  const Work work_;
  // The most batches that are taken but not yet handed out.
  const int64_t max_ahead_;

  // Held by the one thread that reads.
  absl::Mutex read_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);

  absl::Mutex mutex_;
  int64_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t handed_out_ ABSL_GUARDED_BY(mutex_) = 0;
  // The number of batches, once it is known.
  std::optional<int64_t> batches_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, Finished> finished_ ABSL_GUARDED_BY(mutex_);

  // The end of the time counted for the batches handed out so far.
  std::optional<Clock::time_point> counted_until_;
  std::vector<std::thread> threads_;
};

}  // namespace requant

#endif  // REQUANT_RUNTIME_EVALUATION_BATCH_STREAMS_H_
