#include "runtime/benchmark/stream_pool.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>
#include <utility>

#include "absl/time/time.h"
#include "base/seconds_since.h"

namespace requant {
namespace {

using Clock = std::chrono::steady_clock;

double ProcessCpuSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) +
         1e-9 * static_cast<double>(time.tv_nsec);
}

bool IsLongEnough(const RunLength& length, double seconds, int64_t batches) {
  if (length.max_seconds > 0 && seconds >= length.max_seconds) return true;
  return seconds >= length.seconds && batches >= length.batches_per_stream;
}

}  // namespace

std::vector<StreamSetting> SettingsToTry(int cores, int streams, int threads) {
  std::set<std::pair<int, int>> pairs;
  if (streams > 0 && threads > 0) {
    pairs.emplace(streams, threads);
  } else if (streams > 0) {
    pairs.emplace(streams, 1);
    pairs.emplace(streams, std::max(1, cores / streams));
  } else if (threads > 0) {
    pairs.emplace(1, threads);
    pairs.emplace(std::max(1, cores / threads), threads);
  } else {
    for (const int some : {1, 2, cores / 4, cores / 2, cores}) {
      if (some < 1 || some > cores) continue;
      pairs.emplace(some, cores / some);
    }
  }
  std::vector<StreamSetting> settings;
  for (const auto& [some_streams, some_threads] : pairs) {
    StreamSetting setting;
    setting.set_streams(some_streams);
    setting.set_threads(some_threads);
    settings.push_back(setting);
  }
  return settings;
}

std::optional<double> CoreWaitSeconds(const std::string& tasks_folder) {
  std::optional<double> seconds;
  std::error_code error;
  for (std::filesystem::directory_iterator task(tasks_folder, error), end;
       !error && task != end; task.increment(error)) {
    // The file has the nanoseconds on a core, the nanoseconds waiting for one,
    // and the turns. If the thread has just ended, the file is gone.
    std::ifstream file(task->path() / "schedstat");
    double ran, waited;
    if (file >> ran >> waited) seconds = seconds.value_or(0) + 1e-9 * waited;
  }
  return seconds;
}

StreamPool::StreamPool(int streams, Work work)
    : work_(std::move(work)), streams_(streams) {
  threads_.reserve(streams);
  for (int i = 0; i < streams; ++i) {
    threads_.emplace_back([this, i] { Serve(i); });
  }
}

StreamPool::~StreamPool() {
  {
    const absl::MutexLock lock(&mutex_);
    quit_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

absl::StatusOr<StreamTimes> StreamPool::Run(
    const RunLength& length, const std::function<void()>& on_alive) {
  const std::optional<double> waited_before = CoreWaitSeconds();
  const double cpu_before = ProcessCpuSeconds();
  mutex_.Lock();
  length_ = length;
  error_ = absl::OkStatus();
  running_ = static_cast<int>(streams_.size());
  ++run_number_;
  int64_t known_batches = batches_done_;
  while (!mutex_.AwaitWithTimeout(absl::Condition(this, &StreamPool::HasEnded),
                                  absl::Seconds(1))) {
    if (batches_done_ == known_batches) continue;
    known_batches = batches_done_;
    mutex_.Unlock();
    on_alive();
    mutex_.Lock();
  }
  const absl::Status error = error_;
  mutex_.Unlock();
  const double cpu_after = ProcessCpuSeconds();
  const std::optional<double> waited_after = CoreWaitSeconds();
  if (!error.ok()) return error;
  StreamTimes times = Total();
  times.round.set_cpu_seconds(cpu_after - cpu_before);
  if (waited_before.has_value() && waited_after.has_value()) {
    // The time of a thread that has ended is no longer included.
    times.round.set_waited_seconds(
        std::max(0.0, *waited_after - *waited_before));
  }
  return times;
}

void StreamPool::Serve(int index) {
  int64_t last_run = 0;
  const auto may_go_on = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return quit_ || run_number_ != last_run;
  };
  while (true) {
    RunLength length;
    {
      const absl::MutexLock lock(&mutex_, absl::Condition(&may_go_on));
      if (quit_) return;
      last_run = run_number_;
      length = length_;
    }
    RunStream(index, length);
    const absl::MutexLock lock(&mutex_);
    --running_;
  }
}

void StreamPool::RunStream(int index, const RunLength& length) {
  Stream& stream = streams_[index];
  stream = Stream();
  const Clock::time_point start = Clock::now();
  double before = 0;
  do {
    int64_t batch;
    {
      const absl::MutexLock lock(&mutex_);
      if (!error_.ok()) return;
      batch = next_batch_++;
    }
    const absl::StatusOr<int64_t> records = work_(index, batch);
    stream.seconds = SecondsSince(start);
    stream.batch_seconds.push_back(stream.seconds - before);
    before = stream.seconds;
    const absl::MutexLock lock(&mutex_);
    if (!records.ok()) {
      if (error_.ok()) error_ = records.status();
      return;
    }
    stream.records += *records;
    ++batches_done_;
  } while (!IsLongEnough(length, stream.seconds,
                         static_cast<int64_t>(stream.batch_seconds.size())));
}

StreamTimes StreamPool::Total() const {
  StreamTimes total;
  int64_t records = 0;
  double rate = 0;
  for (const Stream& stream : streams_) {
    records += stream.records;
    // The clock may stand still during an empty batch.
    if (stream.seconds > 0) {
      rate += static_cast<double>(stream.records) / stream.seconds;
    }
    total.batch_seconds.insert(total.batch_seconds.end(),
                               stream.batch_seconds.begin(),
                               stream.batch_seconds.end());
  }
  total.round.set_records(records);
  total.round.set_batches(static_cast<int64_t>(total.batch_seconds.size()));
  total.round.set_records_per_second(rate);
  return total;
}

}  // namespace requant
