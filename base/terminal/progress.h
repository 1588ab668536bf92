#ifndef REQUANT_BASE_TERMINAL_PROGRESS_H_
#define REQUANT_BASE_TERMINAL_PROGRESS_H_

// Shows how far long work is:
//
//   Progress progress({"evaluating", "records", total});
//   while (...) progress.Update(done, "accuracy 77.5 %");
//   progress.Finish();
//
// On a terminal one line of stderr is rewritten in place, at most ten times a
// second, and erased at the end:
//
//   evaluating [======>       ]  45 %  900k/2M records  312k/s  0:03 left
//
// Elsewhere, in a log file say, there is a plain line with the time of day
// every ten seconds, so that work done sooner says nothing at all.
//
// A parent that sets REQUANT_PROGRESS_FD shows progress in its own way: nothing
// is drawn then, and that descriptor gets lines of ProgressReport.

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/terminal/terminal_text.h"

namespace requant {

struct ProgressOptions {
  // Such as "evaluating".
  std::string what;
  // What is counted, in the plural.
  std::string unit = "records";
  // How many there are; 0 when that is not known.
  int64_t total = 0;
};

// What the outside world looks like; tests have their own.
struct ProgressEnvironment {
  bool is_terminal = false;
  // Seconds from any fixed point, never going back.
  std::function<double()> now;
  // Such as "14:05:09".
  std::function<std::string()> time_of_day;
  // The terminal's width at this moment.
  std::function<int()> columns;
  // Its height, likewise.
  std::function<int()> rows;
  // How often the process was stopped (Ctrl-Z) and continued, which leaves the
  // shell's lines below the cursor's; may be unset.
  std::function<int()> pauses;
  std::function<void(std::string_view text)> write;
  // Takes lines of ProgressReport, in place of all that is shown; may be unset.
  std::function<void(std::string_view text)> report;

  // Returns stderr and the clocks of the machine. A terminal that cannot
  // rewrite a line (TERM is "dumb") is none. Width and height are those of the
  // variables COLUMNS and LINES, if they have one, or else the terminal's own.
  static ProgressEnvironment Stderr();
};

// How fast something that is counted grows: over the last ten seconds or so, or
// since its start if that is sooner.
class RateWindow {
 public:
  // Starts at `start`, in seconds, when `done` were there already.
  explicit RateWindow(double start, int64_t done = 0)
      : samples_({{start, done}}) {}

  void Add(double now, int64_t done);
  // Returns the rate per second, given the count at this time.
  double Rate(double now, int64_t done) const;

 private:
  struct Sample {
    double time = 0;
    int64_t done = 0;
  };

  std::deque<Sample> samples_;
};

// Thread-safe.
class Progress {
 public:
  explicit Progress(ProgressOptions options, ProgressEnvironment environment =
                                                 ProgressEnvironment::Stderr());
  // Erases the line, so that an error message has one of its own.
  ~Progress();

  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Shows `done`, counted from the start of the work. The note, if any, is
  // shown after the figures as far as there is space.
  void Update(int64_t done, std::string_view note = "");

  // Sets a total that is known better as the work goes on; 0: not known.
  void SetTotal(int64_t total);

  // Writes a line, such as a warning, without disturbing the progress line.
  void Say(std::string_view line);

  // Marks the work as done. On a terminal the line goes; elsewhere, if there
  // were lines, a last one says how long it took. Further calls do nothing.
  void Finish();

 private:
  std::string TerminalLine(double now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string PlainLine(double now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the count, "312k/s", "0:03 left" and the note, as far as they are
  // known.
  std::vector<std::string> Figures(double now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns how much of the total is done, from 0 to 1.
  double Share() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Erase() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Report() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ProgressOptions options_;
  const ProgressEnvironment environment_;
  const double start_;

  absl::Mutex mutex_;
  int64_t total_ ABSL_GUARDED_BY(mutex_);
  int64_t done_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string note_ ABSL_GUARDED_BY(mutex_);
  RateWindow rate_ ABSL_GUARDED_BY(mutex_);
  double last_shown_ ABSL_GUARDED_BY(mutex_);
  bool line_is_shown_ ABSL_GUARDED_BY(mutex_) = false;
  bool said_anything_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

// Lines at the bottom of a terminal that are rewritten in place, while others
// scroll up above them.
//
// The cursor rests on an empty line below the block: whatever ends the process
// leaves a terminal on which the shell can go on, and what the terminal itself
// writes there ("^C") is gone with the next frame. A frame is one write, and
// lines are overwritten rather than cleared, so that nothing flickers.
// After a pause the block starts anew below what the shell has written.
class TerminalBlock {
 public:
  TerminalBlock(const ProgressEnvironment& environment, bool color)
      : environment_(environment), color_(color) {}

  // Writes `above`, for good and in full, and under it `block` instead of the
  // block that was there. Lines of the block are cut to the terminal's width.
  // There must be more rows than lines in the block.
  void Show(const std::vector<StyledLine>& above,
            const std::vector<StyledLine>& block);

 private:
  // Returns how many rows of the screen the block takes on a terminal of this
  // width: one that was narrowed has wrapped what was too long.
  int RowsShown(int columns) const;

  const ProgressEnvironment environment_;
  const bool color_;
  // The block's lines, and their widths.
  std::string shown_;
  // The terminal's width at the last frame.
  int columns_ = 0;
  std::vector<int> widths_;
  int pauses_ = 0;
};

// What a parent learns: how far a child's work is.
struct ProgressReport {
  int64_t done = 0;
  // 0 when that is not known.
  int64_t total = 0;
  std::string what;
  std::string unit;
  std::string note;
};

// Returns "progress\t<done>\t<total>\t<what>\t<unit>\t<note>" with no line end.
std::string FormatProgressReport(const ProgressReport& report);
// Returns nothing for any other line.
std::optional<ProgressReport> ParseProgressReport(std::string_view line);

// Returns three digits and a unit: "999", "1.23k", "312k", "1.50M", "2G"; round
// numbers have no decimals.
std::string HumanCount(int64_t count);

// Does the same as HumanCount, but with decimals below 100: "3.25".
std::string HumanRate(double rate);

// Returns "0:07", "1:05", "2:03:00".
std::string HumanDuration(double seconds);

}  // namespace requant

#endif  // REQUANT_BASE_TERMINAL_PROGRESS_H_
