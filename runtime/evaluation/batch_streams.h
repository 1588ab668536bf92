#ifndef REQUANT_RUNTIME_EVALUATION_BATCH_STREAMS_H_
#define REQUANT_RUNTIME_EVALUATION_BATCH_STREAMS_H_

// Batches of records that run side by side, with results in the records' order:
// who takes them cannot tell how many ran at once.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/datasets/batch_source.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant {

// What one graph gave for a batch.
struct GraphRun {
  std::vector<tensorflow::Tensor> outputs;
  double seconds = 0;
};

struct BatchRun {
  // Without its inputs.
  Batch batch;
  // BatchSource::EstimatedRecords when it was read.
  int64_t estimated_records = 0;
  // In the order in which the work ran the graphs.
  std::vector<GraphRun> graphs;
  // The time that this batch ran and none before it: summed up, the time in
  // which batches ran.
  double seconds = 0;
};

class BatchStreams {
 public:
  // Runs a batch. Called from several threads at once.
  using Work =
      std::function<absl::Status(const Batch& batch, std::vector<GraphRun>*)>;

  // Starts `streams` threads, at least one. Their calls of `source`, which must
  // outlive this, are one after another.
  BatchStreams(BatchSource* source, int streams, Work work);
  // Waits for the batches that run.
  ~BatchStreams();
  BatchStreams(const BatchStreams&) = delete;
  BatchStreams& operator=(const BatchStreams&) = delete;

  // The next batch in the order of the records; false at the end of the data,
  // from when on nobody uses the source. An error is that of the first batch
  // that has one; nothing may be called after it.
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
  // Reads the next batch and its number; false when there is nothing to run.
  bool Take(int64_t* number, Finished* finished);
  bool WaitForRoom();
  void Publish(int64_t number, Finished finished);

  BatchSource* const source_;
  const Work work_;
  // Batches that are taken and not handed out, at most.
  const int64_t max_ahead_;

  // Held by the one thread that reads; taken before mutex_.
  std::mutex read_mutex_;
  int64_t taken_ = 0;

  std::mutex mutex_;
  std::condition_variable room_;
  std::condition_variable ready_;
  bool stopped_ = false;
  int64_t handed_out_ = 0;
  // How many batches there are, once that is known.
  std::optional<int64_t> batches_;
  std::map<int64_t, Finished> finished_;

  // The end of what `seconds` of the batches handed out count.
  std::optional<Clock::time_point> counted_until_;
  std::vector<std::thread> threads_;
};

}  // namespace requant

#endif  // REQUANT_RUNTIME_EVALUATION_BATCH_STREAMS_H_
