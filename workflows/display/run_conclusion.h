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

// Returns "<0.1 s", "5.4 s", "1:05".
std::string SecondsText(double seconds);

// Where a stage with its verification is: the state of its tasks, or what its
// gates say of it.
enum class StageState {
  kWaiting = TaskRecord::NOT_RUN,
  kRunning = TaskRecord::RUNNING,
  kDone = TaskRecord::DONE,
  // All of it was done by a former run.
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

// A line of whatever lists a run: a stage, or the run of a baseline.
struct RunRow {
  // That of the stage's own work.
  TaskPlace place;
  std::string name;
  StageState state = StageState::kWaiting;
  // Those of a baseline are its evaluation's. They read the record.
  StageFigures figures;
  // Why it failed, does not run or was left out, or which gate was not passed.
  std::string message;
};

// Returns the stages in the order of the file, each baseline before the first
// stage that is compared with it.
std::vector<RunRow> RowsOf(const RunRecord& record);

// Returns the state. A stage that is yet to be verified waits.
StageState StateOf(const StageRecord& stage);
// Returns whether it neither waits nor runs.
bool IsOver(StageState state);

// Returns a line per stage: time, accuracy, its difference from the baseline's
// in points with the 95 % interval, agreement, mean output change, mean squared
// error, records per second, size and verdict. Columns without a figure are
// left out, and so are the less important ones on a terminal that is narrower
// than the table. Names and figures are never cut. `columns` is the terminal's
// width; 0: there is no such limit.
std::string RunTable(const RunRecord& record, int columns, bool color);

struct RunConclusionOptions {
  // The terminal's width; 0: it is none.
  int columns = 0;
  bool color = false;
  // The report's path, as people would type it; empty: there is none.
  std::string report;
  // The command that goes on where the run ended; empty: none is named.
  std::string resume;
  // What serving the result takes; empty: nothing is said.
  std::string serving;
};

// Returns what is printed when a run has ended: the table of the stages, the
// verdict in a sentence, and what belongs to it: the result against its
// baseline; by how much which gate failed, what to try and how to look closer;
// why a task failed; or how to go on.
std::string RunConclusion(const RunRecord& record,
                          const RunConclusionOptions& options);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_DISPLAY_RUN_CONCLUSION_H_
