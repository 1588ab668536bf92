#ifndef REQUANT_WORKFLOWS_DISPLAY_RUN_CONCLUSION_H_
#define REQUANT_WORKFLOWS_DISPLAY_RUN_CONCLUSION_H_

// A run's stages as people read them: where each is, all as a table, and what
// is printed when the run has ended. Figures are those of
// workflows/report/figures.h.

#include <string>
#include <vector>

#include "workflows/report/figures.h"
#include "workflows/run/run_record.h"
#include "workflows/run/run_record.pb.h"

namespace requant {

// Returns a text such as "<0.1 s", "5.4 s" or "1:05".
std::string SecondsText(double seconds);

// The state of a stage and its verification: that of its tasks, or its gates'
// verdict.
enum class StageState {
  kWaiting = TaskRecord::NOT_RUN,
  kRunning = TaskRecord::RUNNING,
  kDone = TaskRecord::DONE,
  // All of it was done by an earlier run.
  kCached = TaskRecord::CACHED,
  kFailed = TaskRecord::FAILED,
  // A file was given instead.
  kGiven = TaskRecord::GIVEN,
  kInterrupted = TaskRecord::INTERRUPTED,
  kLeftOut,
  // Gates could not be decided.
  kInconclusive,
  kGateFailed,
};

// A line in a list of a run's stages and of its baselines' runs.
struct RunRow {
  // The place of the stage's own work.
  TaskPlace place;
  std::string name;
  StageState state = StageState::kWaiting;
  // A baseline's figures are its evaluation's. They point into the record.
  StageFigures figures;
  // Why it failed, does not run or was left out, or which gate was not passed.
  std::string message;
};

// Returns the stages in the order of the file, each baseline before the first
// stage that is compared with it.
std::vector<RunRow> RowsOf(const RunRecord& record);

// Returns the stage's state. A stage that is yet to be verified is waiting.
StageState StateOf(const StageRecord& stage);
// Returns whether a stage in this state neither waits nor runs.
bool IsOver(StageState state);

// Returns a line per stage: time, accuracy, its difference from the baseline's
// in points with the 95 % interval, agreement, mean output change, mean squared
// error, records per second, size and verdict. Columns without a figure are
// left out, and so are the less important ones on a terminal that is narrower
// than the table. Names and figures are never cut. `columns` is the terminal's
// width, or 0 for no limit.
std::string RunTable(const RunRecord& record, int columns, bool color);

struct RunConclusionOptions {
  // The terminal's width, or 0 if there is no terminal.
  int columns = 0;
  bool color = false;
  // The report's path, as people would type it, or empty if there is none.
  std::string report;
  // The command that resumes the run, or empty to name none.
  std::string resume;
  // What serving the result requires, or empty to say nothing.
  std::string serving;
};

// Returns what is printed at a run's end: the table of the stages, the verdict
// in a sentence, and its details: the result against its baseline; which gate
// failed by how much, what to try and how to look closer; why a task failed; or
// how to resume the run.
std::string RunConclusion(const RunRecord& record,
                          const RunConclusionOptions& options);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_DISPLAY_RUN_CONCLUSION_H_
