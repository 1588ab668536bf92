#ifndef REQUANT_WORKFLOWS_DISPLAY_RUN_DISPLAY_H_
#define REQUANT_WORKFLOWS_DISPLAY_RUN_DISPLAY_H_

// What people see on stderr while a workflow runs.
//
// On a terminal: a line per stage, rewritten in place at most ten times a
// second. Where there are fewer rows than stages, those around what runs are
// shown. Elsewhere, in a log file say: plain lines with the time of day, one
// when a task ends, and one every ten seconds while a long one runs.

#include <memory>
#include <string>

#include "base/terminal/progress.h"
#include "workflows/run/run_record.h"
#include "workflows/run/run_record.pb.h"

namespace requant {

struct RunDisplayOptions {
  // Whether marks and bars are Unicode rather than ASCII.
  bool utf8 = false;
  bool color = false;
  // Whether a terminal's lines are erased when the run ends, because a table of
  // the same stages is about to be printed.
  bool erase_at_end = false;
};

// Makes the display for a terminal or for other output, as
// environment.is_terminal says. It is not thread-safe.
std::unique_ptr<RunObserver> MakeRunDisplay(const RunDisplayOptions& options,
                                            ProgressEnvironment environment);

// Makes the display for a terminal.
std::unique_ptr<RunObserver> MakeLiveDisplay(const RunDisplayOptions& options,
                                             ProgressEnvironment environment);

// Makes the display that suits this process's stderr.
std::unique_ptr<RunObserver> MakeStderrDisplay(bool erase_at_end);

// Tracks how long a task has been running, how far it is and how fast it goes.
// Times are in seconds of the display's clock.
class TaskClock {
 public:
  explicit TaskClock(double start) : start_(start), rate_(start) {}

  void Take(double now, const TaskProgress& progress) {
    // What comes before the first count, such as loading a model, is not part
    // of the rate; a count that falls belongs to another activity.
    const bool starts = !has_progress_ || progress.done < progress_.done;
    if (starts) rate_ = RateWindow(now, progress.done);
    has_progress_ = true;
    rate_.Add(now, progress.done);
    progress_ = progress;
  }

  double Seconds(double now) const { return now - start_; }
  // Returns the rate per second, or 0 if it is not known.
  double Rate(double now) const { return rate_.Rate(now, progress_.done); }
  const TaskProgress& progress() const { return progress_; }

 private:
  double start_;
  bool has_progress_ = false;
  TaskProgress progress_;
  RateWindow rate_;
};

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_DISPLAY_RUN_DISPLAY_H_
