#ifndef REQUANT_WORKFLOWS_DISPLAY_DISPLAY_LINE_H_
#define REQUANT_WORKFLOWS_DISPLAY_DISPLAY_LINE_H_

// The lines of the display of a run, one per stage, as wide as the terminal
// allows:
//
//     stage        time   accuracy  agreement   change  verdict
//   ✓ freeze      1.2 s   78.455 %
//   ✓ optimize    5.4 s   78.455 %     1.0000  0.00000  PASS
//   ▸ quantize      3 s  ━━━━━━━╸────────────  38 %   312k/s  accuracy 78.40 %
//   · calibrate

#include <string>
#include <string_view>
#include <vector>

#include "base/terminal/terminal_text.h"
#include "workflows/display/run_conclusion.h"
#include "workflows/run/run_record.h"
#include "workflows/run/run_record.pb.h"

namespace requant {

// What is known of a stage or a baseline, ready to print.
struct DisplayRow {
  std::string name;
  StageState state = StageState::kWaiting;
  // What it took in this run; 0 if nothing of it ran.
  double seconds = 0;
  // The figures in the order of the columns.
  std::vector<std::string> figures;
  VerificationRecord::Verdict verdict = VerificationRecord::NONE;
  // Why it failed, does not run or was left out, or which gate was not passed.
  std::string message;
};

DisplayRow RowOf(const StageRecord& stage, bool utf8);
DisplayRow RowOf(const BaselineRecord& baseline, bool utf8);

// What a row's task is doing.
struct RunningTask {
  // The time, with what the row's other task took.
  double seconds = 0;
  bool verifies = false;
  TaskProgress progress;
  // How fast it progresses, per second; 0: not known.
  double rate = 0;
};

// Which columns there are and where: a function of the terminal's width and the
// widest name alone, so that nothing moves while figures change.
class DisplayLayout {
 public:
  DisplayLayout(int columns, const std::vector<DisplayRow>& rows, bool utf8);

  // Returns nothing when there is no space for a column that needs a title.
  StyledLine Header() const;
  // Returns the line of a row; `running` is null unless a task of it runs.
  StyledLine Line(const DisplayRow& row, const RunningTask* running) const;

 private:
  std::string Shorten(const std::string& text, int width) const;
  bool ShowsTime() const;
  // Returns how many columns are left after the time.
  int Room() const;
  void AppendResults(const DisplayRow& row, StyledLine* line) const;
  void AppendProgress(const RunningTask& running, StyledLine* line) const;
  void AppendCount(const RunningTask& running, StyledLine* line) const;
  std::string Bar(int width, double share) const;

  const bool utf8_;
  // How much of a line may be used: a character in the last column would move
  // the cursor to the next line.
  const int width_;
  int name_width_ = 0;
  // Indexes of the columns of results that fit, ascending.
  std::vector<int> columns_;
};

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_DISPLAY_DISPLAY_LINE_H_
