#ifndef REQUANT_WORKFLOWS_DISPLAY_LIVE_DISPLAY_H_
#define REQUANT_WORKFLOWS_DISPLAY_LIVE_DISPLAY_H_

// The display of a run on a terminal; made by run_display.h.

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/terminal/progress.h"
#include "base/terminal/terminal_text.h"
#include "workflows/display/display_line.h"
#include "workflows/display/run_display.h"
#include "workflows/display/run_figures.h"
#include "workflows/display/task_clock.h"
#include "workflows/run/run_observer.h"
#include "workflows/run/run_record.pb.h"

namespace requant {

class LiveDisplay : public RunDisplay {
 public:
  LiveDisplay(const RunDisplayOptions& options,
              ProgressEnvironment environment);

  void RunStarted(const RunRecord& record) override;
  void TaskStarted(const RunRecord& record, const TaskPlace& place) override;
  void TaskProgressed(const RunRecord& record, const TaskPlace& place,
                      const TaskProgress& progress) override;
  void TaskEnded(const RunRecord& record, const TaskPlace& place) override;
  void Said(std::string_view line) override;
  void RunEnded(const RunRecord& record) override;
  void Tick() override;

 private:
  struct Running {
    TaskClock clock;
    // A stage's graph, or a baseline.
    bool verifies = false;
  };

  // Takes the rows from the record.
  void Refresh(const RunRecord& record);
  // -1: there is none.
  int RowIndex(const TaskPlace& place) const;
  bool IsOver(int row) const;
  // Lines of finished stages that have to make room, for good; `room` is how
  // many lines the block may have.
  std::vector<StyledLine> TakeLinesThatGo(const DisplayLayout& layout,
                                          int room);
  std::vector<StyledLine> Block(const DisplayLayout& layout, int room) const;
  StyledLine RowLine(const DisplayLayout& layout, int row) const;
  StyledLine Footer() const;
  // The rows that have not scrolled up.
  std::vector<int> RowsLeft() const;
  // `above`: lines to write above the block.
  void Draw(std::vector<StyledLine> above);

  const RunDisplayOptions options_;
  const ProgressEnvironment environment_;
  TerminalBlock block_;
  std::vector<RunRow> sources_;
  std::vector<DisplayRow> rows_;
  // By row.
  std::map<int, Running> running_;
  std::set<int> scrolled_up_;
  bool header_scrolled_up_ = false;
  double start_ = 0;
  double last_drawn_ = 0;
};

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_DISPLAY_LIVE_DISPLAY_H_
