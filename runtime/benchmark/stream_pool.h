#ifndef REQUANT_RUNTIME_BENCHMARK_STREAM_POOL_H_
#define REQUANT_RUNTIME_BENCHMARK_STREAM_POOL_H_

// Threads that run batches side by side, and the time that takes.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace requant {

struct RunLength {
  // Every stream goes on for so long and for so many batches.
  double seconds = 0;
  int64_t batches_per_stream = 1;
  // After so long it stops however few its batches are, but not before one; 0
  // means never.
  double max_seconds = 0;
};

struct StreamTimes {
  int64_t records = 0;
  // The sum of the streams' own rates, so that one that ends a batch sooner
  // than another does not count as idle.
  double records_per_second = 0;
  // Of the whole process.
  double cpu_seconds = 0;
  // The same for the time that threads waited for a core (CoreWaitSeconds).
  std::optional<double> waited_seconds;
  // Of every batch.
  std::vector<double> batch_seconds;
};

class StreamPool {
 public:
  // Runs batch number `batch` in stream `stream` and returns its number of
  // records. Called from several threads at once; the numbers go up from 0.
  using Work =
      std::function<absl::StatusOr<int64_t>(int stream, int64_t batch)>;

  // The threads live as long as the pool: what oneDNN caches in each of them
  // is part of being warm.
  StreamPool(int streams, Work work);
  ~StreamPool();
  StreamPool(const StreamPool&) = delete;
  StreamPool& operator=(const StreamPool&) = delete;

  // Runs batches in all streams. The first error ends it and is returned. While
  // batches get done, `on_alive` is called about once a second.
  absl::StatusOr<StreamTimes> Run(const RunLength& length,
                                  const std::function<void()>& on_alive);

 private:
  // What one stream did in one run.
  struct Stream {
    int64_t records = 0;
    double seconds = 0;
    std::vector<double> batch_seconds;
  };

  void Serve(int index);
  void RunStream(int index, const RunLength& length);
  StreamTimes Total() const;

  const Work work_;

  std::mutex mutex_;
  std::condition_variable start_or_quit_;
  std::condition_variable stream_ended_;
  RunLength length_;
  int64_t run_number_ = 0;
  int running_ = 0;
  bool quit_ = false;
  absl::Status error_;
  int64_t next_batch_ = 0;
  int64_t batches_done_ = 0;

  // Each is its thread's own during a run.
  std::vector<Stream> streams_;
  std::vector<std::thread> threads_;
};

}  // namespace requant

#endif  // REQUANT_RUNTIME_BENCHMARK_STREAM_POOL_H_
