#include "runtime/benchmark/stream_pool.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/seconds_since.h"
#include "runtime/benchmark/core_wait.h"

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

StreamPool::StreamPool(int streams, Work work)
    : work_(std::move(work)), streams_(streams) {
  threads_.reserve(streams);
  for (int i = 0; i < streams; ++i) {
    threads_.emplace_back([this, i] { Serve(i); });
  }
}

StreamPool::~StreamPool() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    quit_ = true;
  }
  start_or_quit_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

absl::StatusOr<StreamTimes> StreamPool::Run(
    const RunLength& length, const std::function<void()>& on_alive) {
  std::unique_lock<std::mutex> lock(mutex_);
  length_ = length;
  error_ = absl::OkStatus();
  running_ = static_cast<int>(streams_.size());
  ++run_number_;
  int64_t known_batches = batches_done_;
  const std::optional<double> waited_before = CoreWaitSeconds();
  const double cpu_before = ProcessCpuSeconds();
  start_or_quit_.notify_all();
  while (!stream_ended_.wait_for(lock, std::chrono::seconds(1),
                                 [this] { return running_ == 0; })) {
    if (batches_done_ == known_batches) continue;
    known_batches = batches_done_;
    lock.unlock();
    on_alive();
    lock.lock();
  }
  const double cpu_after = ProcessCpuSeconds();
  const std::optional<double> waited_after = CoreWaitSeconds();
  if (!error_.ok()) return error_;
  StreamTimes times = Total();
  times.cpu_seconds = cpu_after - cpu_before;
  if (waited_before.has_value() && waited_after.has_value()) {
    // A thread that has ended takes its time away.
    times.waited_seconds = std::max(0.0, *waited_after - *waited_before);
  }
  return times;
}

void StreamPool::Serve(int index) {
  int64_t last_run = 0;
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    start_or_quit_.wait(lock, [&] { return quit_ || run_number_ != last_run; });
    if (quit_) return;
    last_run = run_number_;
    const RunLength length = length_;
    lock.unlock();
    RunStream(index, length);
    lock.lock();
    if (--running_ == 0) stream_ended_.notify_all();
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
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!error_.ok()) return;
      batch = next_batch_++;
    }
    const absl::StatusOr<int64_t> records = work_(index, batch);
    stream.seconds = SecondsSince(start);
    stream.batch_seconds.push_back(stream.seconds - before);
    before = stream.seconds;
    const std::lock_guard<std::mutex> lock(mutex_);
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
  for (const Stream& stream : streams_) {
    total.records += stream.records;
    // A clock may not move during a batch of nothing.
    if (stream.seconds > 0) {
      total.records_per_second +=
          static_cast<double>(stream.records) / stream.seconds;
    }
    total.batch_seconds.insert(total.batch_seconds.end(),
                               stream.batch_seconds.begin(),
                               stream.batch_seconds.end());
  }
  return total;
}

}  // namespace requant
