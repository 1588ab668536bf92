#ifndef REQUANT_WORKFLOWS_DISPLAY_TASK_CLOCK_H_
#define REQUANT_WORKFLOWS_DISPLAY_TASK_CLOCK_H_

#include "base/terminal/progress.h"
#include "workflows/run/run_observer.h"

namespace requant {

// How long a task has been running, how far it is and how fast. Times are in
// seconds of the display's clock.
class TaskClock {
 public:
  explicit TaskClock(double start) : start_(start), rate_(start) {}

  void Take(double now, const TaskProgress& progress) {
    // What comes before the first count, such as loading a model, is not part
    // of the rate; a count that falls is that of another activity.
    const bool starts = !has_progress_ || progress.done < progress_.done;
    if (starts) rate_ = RateWindow(now, progress.done);
    has_progress_ = true;
    rate_.Add(now, progress.done);
    progress_ = progress;
  }

  double Seconds(double now) const { return now - start_; }
  // Per second; 0: not known.
  double Rate(double now) const { return rate_.Rate(now, progress_.done); }
  const TaskProgress& progress() const { return progress_; }

 private:
  double start_;
  bool has_progress_ = false;
  TaskProgress progress_;
  RateWindow rate_;
};

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_DISPLAY_TASK_CLOCK_H_
