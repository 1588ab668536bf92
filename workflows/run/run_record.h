#ifndef REQUANT_WORKFLOWS_RUN_RUN_RECORD_H_
#define REQUANT_WORKFLOWS_RUN_RUN_RECORD_H_

// The record of a run: what it says of the machine, where each task of the plan
// has its place, how results get there, and who looks on.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/terminal/progress.h"
#include "workflows/plan/plan.h"
#include "workflows/run/run_record.pb.h"
#include "workflows/run/stage_store.pb.h"

namespace requant {

struct RunMachine {
  // The real path of the running program. The other programs are beside it.
  std::string own_path;
  // Variables for children that load TensorFlow (base/process/machine.h).
  std::vector<std::pair<std::string, std::string>> environment;
  // Has, among others, how many threads can run at once, the instruction sets
  // that work, such as "avx2", and what quantization's target "host" means.
  ToolRecord tool;
};

absl::StatusOr<RunMachine> ThisMachine();

// Returns the record of a run that has yet to start: its workflow, variables,
// machine and stages.
RunRecord StartRecord(const Plan& plan, const RunMachine& machine);

// What a task's programs report of their work.
using TaskProgress = ProgressReport;

// Identifies one of a run's tasks.
struct TaskPlace {
  // Index into RunRecord.stage, or -1 for the run of a baseline; `baseline` is
  // then the index into RunRecord.baseline.
  int stage = -1;
  int baseline = -1;
  // Whether it is a stage's verification rather than its own work.
  bool verifies = false;
};

TaskPlace PlaceOf(const Task& task);

// Returns the task's own record.
TaskRecord* WorkOf(const TaskPlace& place, RunRecord* record);
const TaskRecord& WorkOf(const TaskPlace& place, const RunRecord& record);

// Adds what a task found, and how its gates judged it.
void RecordResult(const Task& task, const CachedTask& result,
                  const std::vector<GateRecord>& gates, RunRecord* record);

// Returns the sizes and operations of a graph's file.
absl::StatusOr<GraphRecord> SummarizeGraphFile(const std::string& path);

// Observes a run; the display on a terminal is an example. Calls never overlap.
// The record is always current.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  // Is called before anything runs; cached tasks are already marked as such.
  virtual void RunStarted(const RunRecord&) {}
  virtual void TaskStarted(const RunRecord&, const TaskPlace&) {}
  virtual void TaskProgressed(const RunRecord&, const TaskPlace&,
                              const TaskProgress&) {}
  // Is called when a task is done, failed or interrupted; gates are judged.
  virtual void TaskEnded(const RunRecord&, const TaskPlace&) {}
  // Is called about ten times a second while tasks run, because time passes
  // even if nothing happens.
  virtual void Tick() {}
  // Gets a warning or a note that should not wait.
  virtual void Said(std::string_view) {}
  // Is called after the last task, whatever the outcome.
  virtual void RunEnded(const RunRecord&) {}
};

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_RUN_RUN_RECORD_H_
