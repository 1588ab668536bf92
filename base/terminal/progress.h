#ifndef REQUANT_BASE_TERMINAL_PROGRESS_H_
#define REQUANT_BASE_TERMINAL_PROGRESS_H_

// Shows the progress of long work:
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
// Elsewhere, such as in a log file, a plain line with the time of day is
// printed every ten seconds, so that shorter work prints nothing.
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
  // The activity, such as "evaluating".
  std::string what;
  // What is counted, in the plural.
  std::string unit = "records";
  // The total count, or 0 if unknown.
  int64_t total = 0;
};

// The environment of progress display; tests supply their own.
struct ProgressEnvironment {
  bool is_terminal = false;
  // Returns seconds from any fixed point, never decreasing.
  std::function<double()> now;
  // Returns the time of day, such as "14:05:09".
  std::function<std::string()> time_of_day;
  // Returns the terminal's current width.
  std::function<int()> columns;
  // Returns the terminal's current height.
  std::function<int()> rows;
  // Returns how often the process was stopped (Ctrl-Z) and continued, which
  // leaves the shell's lines below the cursor. It may be unset.
  std::function<int()> pauses;
  std::function<void(std::string_view text)> write;
  // Receives ProgressReport lines, which replace the display; it may be unset.
  std::function<void(std::string_view text)> report;

  // Returns stderr and the machine's clocks. A terminal that cannot rewrite a
  // line (TERM is "dumb") does not count as one. Width and height are the
  // variables COLUMNS and LINES if set, or else the terminal's own.
  static ProgressEnvironment Stderr();
};

// Computes how fast a count grows, over about the last ten seconds or since the
// start if that is more recent.
class RateWindow {
 public:
  // Starts at the time `start`, in seconds, with a count of `done`.
  explicit RateWindow(double start, int64_t done = 0)
      : samples_({{start, done}}) {}

  void Add(double now, int64_t done);
  // Returns the rate per second, given the current time and count.
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
  // Erases the line, so that an error message starts on a fresh one.
  ~Progress();

  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Shows `done`, counted from the start of the work. The note, if any, is
  // shown after the figures if there is space.
  void Update(int64_t done, std::string_view note = "");

  // Sets a total that becomes better known during the work; 0 means unknown.
  void SetTotal(int64_t total);

  // Writes a line, such as a warning, without disturbing the progress line.
  void Say(std::string_view line);

  // Marks the work as done. On a terminal the line is erased; elsewhere, if any
  // were printed, a last line gives the elapsed time. Further calls do nothing.
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
// The cursor rests on an empty line below the block, so that the shell can
// continue there whatever ends the process, and anything the terminal echoes
// there ("^C") disappears with the next frame. A frame is one write, and lines
// are overwritten rather than cleared to avoid flicker. After a pause the block
// restarts below the shell's output.
class TerminalBlock {
 public:
  TerminalBlock(const ProgressEnvironment& environment, bool color)
      : environment_(environment), color_(color) {}

  // Writes `above` permanently and in full, followed by `block` in place of the
  // previous block. Lines of the block are cut to the terminal's width. The
  // terminal must have more rows than the block.
  void Show(const std::vector<StyledLine>& above,
            const std::vector<StyledLine>& block);

 private:
  // Returns how many rows of the screen the block takes on a terminal of this
  // width; a narrowed terminal has wrapped lines that became too long.
  int RowsShown(int columns) const;

  const ProgressEnvironment environment_;
  const bool color_;
  // The block's text; widths_ has its lines' widths.
  std::string shown_;
  // The terminal's width in the last frame.
  int columns_ = 0;
  std::vector<int> widths_;
  int pauses_ = 0;
};

// What a parent learns about a child's progress.
struct ProgressReport {
  int64_t done = 0;
  // The total count, or 0 if unknown.
  int64_t total = 0;
  std::string what;
  std::string unit;
  std::string note;
};

// Returns "progress\t<done>\t<total>\t<what>\t<unit>\t<note>" with no line end.
std::string FormatProgressReport(const ProgressReport& report);
// Returns nullopt for any other line.
std::optional<ProgressReport> ParseProgressReport(std::string_view line);

// Returns up to three digits and a unit: "999", "1.23k", "312k", "1.50M", "2G";
// round numbers have no decimals.
std::string HumanCount(int64_t count);

// Does the same as HumanCount, but with decimals below 100: "3.25".
std::string HumanRate(double rate);

// Returns a duration such as "0:07", "1:05" or "2:03:00".
std::string HumanDuration(double seconds);

}  // namespace requant

#endif  // REQUANT_BASE_TERMINAL_PROGRESS_H_
