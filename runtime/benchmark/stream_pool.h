#ifndef REQUANT_RUNTIME_BENCHMARK_STREAM_POOL_H_
#define REQUANT_RUNTIME_BENCHMARK_STREAM_POOL_H_

// Runs batches concurrently in threads and measures the time that takes.

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

// Returns at most five ways to use `cores` cores that are worth trying, from
// one stream with all of them to one stream per core. A nonzero number of
// streams or threads is kept; if both are given, that is the only setting.
std::vector<StreamSetting> SettingsToTry(int cores, int streams, int threads);

// Returns how many seconds the current threads of this process have been ready
// to run while all cores were busy. On a shared machine, that part of the time
// says nothing about a graph. Returns nothing if Linux does not report it.
std::optional<double> CoreWaitSeconds(
    const std::string& tasks_folder = "/proc/self/task");

struct RunLength {
  // Every stream goes on for at least this long and this many batches.
  double seconds = 0;
  int64_t batches_per_stream = 1;
  // After this long it stops regardless of the number of batches, but not
  // before the first; 0 means never.
  double max_seconds = 0;
};

struct StreamTimes {
  // The rate is the sum of the streams' own rates, so that a stream that
  // finishes before another does not count as idle. The CPU time is the whole
  // process's, and the waiting time is from CoreWaitSeconds.
  RoundMeasurement round;
  // One for every batch.
  std::vector<double> batch_seconds;
};

class StreamPool {
 public:
  // Runs batch number `batch` in stream `stream` and returns its number of
  // records. Several threads call it at once; `batch` counts up from 0.
  using Work =
      std::function<absl::StatusOr<int64_t>(int stream, int64_t batch)>;

  // The threads live as long as the pool because being warm includes what
  // oneDNN caches in each of them.
  StreamPool(int streams, Work work);
  ~StreamPool();
  StreamPool(const StreamPool&) = delete;
  StreamPool& operator=(const StreamPool&) = delete;

  // Runs batches in all streams. The first error ends the run and is returned.
  // While batches complete, calls `on_alive` about once a second.
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

  // During a run only its own thread uses each; Run reads them after the end.
  std::vector<Stream> streams_;
  std::vector<std::thread> threads_;
};

}  // namespace requant

#endif  // REQUANT_RUNTIME_BENCHMARK_STREAM_POOL_H_
