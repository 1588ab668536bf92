#ifndef REQUANT_RUNTIME_BENCHMARK_STREAM_POOL_H_
#define REQUANT_RUNTIME_BENCHMARK_STREAM_POOL_H_

// Threads that run batches side by side, and the time that takes.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "runtime/session/job.pb.h"

namespace requant {

// Returns the ways to use `cores` cores that are worth a try: from one stream
// with all of them to one stream per core, five at most. A number of streams or
// threads that is given (not 0) is kept; with both there is only that one.
std::vector<StreamSetting> SettingsToTry(int cores, int streams, int threads);

// Returns how many seconds the threads of this process, those that live now,
// have been ready to run while all cores were busy: on a machine that others
// use, the part of the time that says nothing about a graph. Unset where Linux
// does not say.
std::optional<double> CoreWaitSeconds(
    const std::string& tasks_folder = "/proc/self/task");

struct RunLength {
  // Every stream goes on for at least this long and this many batches.
  double seconds = 0;
  int64_t batches_per_stream = 1;
  // After this long it stops however few its batches are, but not before one; 0
  // means never.
  double max_seconds = 0;
};

struct StreamTimes {
  // The rate is the sum of the streams' own, so that one that ends a batch
  // sooner than another does not count as idle; CPU time is that of the whole
  // process, and the time waited that of CoreWaitSeconds.
  RoundMeasurement round;
  // One for every batch.
  std::vector<double> batch_seconds;
};

class StreamPool {
 public:
  // Runs batch number `batch` in stream `stream` and returns its number of
  // records. Several threads call it at once; the numbers go up from 0.
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

  void Serve(int index) ABSL_LOCKS_EXCLUDED(mutex_);
  void RunStream(int index, const RunLength& length)
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasEnded() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return running_ == 0;
  }
  StreamTimes Total() const;

  const Work work_;

  absl::Mutex mutex_;
  RunLength length_ ABSL_GUARDED_BY(mutex_);
  int64_t run_number_ ABSL_GUARDED_BY(mutex_) = 0;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  bool quit_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
  int64_t next_batch_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t batches_done_ ABSL_GUARDED_BY(mutex_) = 0;

  // Each is its thread's own during a run; Run reads them when all have ended.
  std::vector<Stream> streams_;
  std::vector<std::thread> threads_;
};

}  // namespace requant

#endif  // REQUANT_RUNTIME_BENCHMARK_STREAM_POOL_H_
