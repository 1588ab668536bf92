#include "workflows/display/run_display.h"

#include <signal.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include "base/terminal/progress.h"
#include "base/terminal/terminal_text.h"
#include "workflows/display/live_display.h"
#include "workflows/display/plain_display.h"
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
      const std::lock_guard<std::mutex> lock(mutex_);
      display_->RunStarted(record);
    }
    StartClock();
  }
  void TaskStarted(const RunRecord& record, const TaskPlace& place) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    display_->TaskStarted(record, place);
  }
  void TaskProgressed(const RunRecord& record, const TaskPlace& place,
                      const TaskProgress& progress) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    display_->TaskProgressed(record, place, progress);
  }
  void TaskEnded(const RunRecord& record, const TaskPlace& place) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    display_->TaskEnded(record, place);
  }
  void Said(std::string_view line) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    display_->Said(line);
  }
  void RunEnded(const RunRecord& record) override {
    StopClock();
    display_->RunEnded(record);
  }

 private:
  void StartClock() {
    // Signals must find the thread that handles them.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    clock_ = std::thread([this] {
      std::unique_lock<std::mutex> lock(mutex_);
      while (!wake_.wait_for(lock, std::chrono::milliseconds(100),
                             [this] { return stop_; })) {
        display_->Tick();
      }
    });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void StopClock() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
    }
    wake_.notify_one();
    if (clock_.joinable()) clock_.join();
  }

  const std::unique_ptr<RunDisplay> display_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread clock_;
};

}  // namespace

std::unique_ptr<RunDisplay> MakeRunDisplay(const RunDisplayOptions& options,
                                           ProgressEnvironment environment) {
  if (environment.is_terminal) {
    return std::make_unique<LiveDisplay>(options, std::move(environment));
  }
  return std::make_unique<PlainDisplay>(std::move(environment));
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
