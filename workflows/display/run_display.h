#ifndef REQUANT_WORKFLOWS_DISPLAY_RUN_DISPLAY_H_
#define REQUANT_WORKFLOWS_DISPLAY_RUN_DISPLAY_H_

// What people see on stderr while a workflow runs.
//
// On a terminal: a line per stage, rewritten in place at most ten times a
// second. Where there are fewer rows than stages, lines of finished stages
// scroll up, and what waits is counted. Elsewhere, in a log file say: plain
// lines with the time of day, one when a task ends, and one every ten seconds
// while a long one runs.

#include <memory>

#include "base/terminal/progress.h"
#include "workflows/run/run_observer.h"

namespace requant {

struct RunDisplayOptions {
  // Marks and bars of Unicode rather than ASCII.
  bool utf8 = false;
  bool color = false;
  // On a terminal the stages' lines go when the run ends, because a table of
  // the same is about to be printed there. Those that scrolled up stay.
  bool erase_at_end = false;
};

class RunDisplay : public RunObserver {
 public:
  // To be called about ten times a second: time goes on although nothing
  // happens.
  virtual void Tick() = 0;
};

// By environment.is_terminal. Not thread-safe.
std::unique_ptr<RunDisplay> MakeRunDisplay(const RunDisplayOptions& options,
                                           ProgressEnvironment environment);

// For stderr as it is, with a thread that ticks from RunStarted to RunEnded.
// That thread takes no signals.
std::unique_ptr<RunObserver> MakeStderrDisplay(bool erase_at_end);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_DISPLAY_RUN_DISPLAY_H_
