#include "workflows/display/run_display.h"

#include <signal.h>

#include <memory>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/terminal/progress.h"
#include "base/terminal/terminal_text.h"
#include "workflows/run/run_observer.h"
#include "workflows/run/run_record.pb.h"

namespace requant {
namespace {

// A display with a clock of its own.
class TickingDisplay : public RunObserver {
 public:
  explicit TickingDisplay(std::unique_ptr<RunDisplay> display)
      : display_(std::move(display)) {}
  ~TickingDisplay() override { StopClock(); }

  void RunStarted(const RunRecord& record) override {
    {
      const absl::MutexLock lock(&mutex_);
      display_->RunStarted(record);
    }
    StartClock();
  }
  void TaskStarted(const RunRecord& record, const TaskPlace& place) override {
    const absl::MutexLock lock(&mutex_);
    display_->TaskStarted(record, place);
  }
  void TaskProgressed(const RunRecord& record, const TaskPlace& place,
                      const TaskProgress& progress) override {
    const absl::MutexLock lock(&mutex_);
    display_->TaskProgressed(record, place, progress);
  }
  void TaskEnded(const RunRecord& record, const TaskPlace& place) override {
    const absl::MutexLock lock(&mutex_);
    display_->TaskEnded(record, place);
  }
  void Said(std::string_view line) override {
    const absl::MutexLock lock(&mutex_);
    display_->Said(line);
  }
  void RunEnded(const RunRecord& record) override {
    StopClock();
    const absl::MutexLock lock(&mutex_);
    display_->RunEnded(record);
  }

 private:
  void StartClock() {
    // Signals must find the thread that handles them.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    clock_ = std::thread([this] {
      const absl::MutexLock lock(&mutex_);
      while (!mutex_.AwaitWithTimeout(absl::Condition(&stop_),
                                      absl::Milliseconds(100))) {
        display_->Tick();
      }
    });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void StopClock() {
    {
      const absl::MutexLock lock(&mutex_);
      stop_ = true;
    }
    if (clock_.joinable()) clock_.join();
  }

  absl::Mutex mutex_;
  const std::unique_ptr<RunDisplay> display_ ABSL_PT_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread clock_;
};

}  // namespace

std::unique_ptr<RunDisplay> MakeRunDisplay(const RunDisplayOptions& options,
                                           ProgressEnvironment environment) {
  return environment.is_terminal
             ? MakeLiveDisplay(options, std::move(environment))
             : MakePlainDisplay(std::move(environment));
}

std::unique_ptr<RunObserver> MakeStderrDisplay(bool erase_at_end) {
  RunDisplayOptions options;
  options.utf8 = LocaleIsUtf8();
  options.color = ColorIsWelcome();
  options.erase_at_end = erase_at_end;
  return std::make_unique<TickingDisplay>(
      MakeRunDisplay(options, ProgressEnvironment::Stderr()));
}

}  // namespace requant
