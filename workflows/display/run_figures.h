#ifndef REQUANT_WORKFLOWS_DISPLAY_RUN_FIGURES_H_
#define REQUANT_WORKFLOWS_DISPLAY_RUN_FIGURES_H_

// What a RunRecord says, as people read it: times, and where a stage is. Its
// figures are those of workflows/report/figures.h.

#include <cstdint>
#include <string>
#include <vector>

#include "workflows/run/run_record.pb.h"

namespace requant {

// "<0.1 s", "5.4 s", "1:05".
std::string SecondsText(double seconds);

enum class StageState {
  kWaiting,
  kRunning,
  kDone,
  // All of it was done by a former run.
  kCached,
  // A file was given instead.
  kGiven,
  kLeftOut,
  // Gates could not be decided.
  kInconclusive,
  kGateFailed,
  kFailed,
  kInterrupted,
};

// A line of whatever lists a run: a stage, or the run of a baseline.
struct RunRow {
  bool is_baseline = false;
  // Into RunRecord.stage or RunRecord.baseline.
  int index = 0;
};

// The stages in the order of the file, each baseline before the first stage
// that is compared with it.
std::vector<RunRow> RowsOf(const RunRecord& record);

// Of a stage with its verification. One that is yet to be verified waits.
StageState StateOf(const StageRecord& stage);
StageState StateOf(const BaselineRecord& baseline);
// Neither waiting nor running.
bool IsOver(StageState state);

// What the stage itself did, its verification apart.
const TaskRecord& OwnWork(const StageRecord& stage);
// Of this run: its work and its verification.
double SecondsOf(const StageRecord& stage);
// The first of its tasks that did not succeed, or else its last.
const TaskRecord& DecisiveTask(const StageRecord& stage);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_DISPLAY_RUN_FIGURES_H_
