#ifndef REQUANT_WORKFLOWS_RUN_RUN_OBSERVER_H_
#define REQUANT_WORKFLOWS_RUN_RUN_OBSERVER_H_

// What looks on as a workflow runs, such as the display on a terminal.

#include <string_view>

#include "base/terminal/progress.h"
#include "workflows/run/run_record.pb.h"

namespace requant {

// What a task's programs report of their work.
using TaskProgress = ProgressReport;

// Which of a run's tasks it is about.
struct TaskPlace {
  // Index into RunRecord.stage; -1: the run of a baseline, `baseline` being the
  // index into RunRecord.baseline.
  int stage = -1;
  int baseline = -1;
  // Whether it is a stage's verification rather than its own work.
  bool verifies = false;
};

// Calls never overlap. `record` is as of now.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  // Is called before anything runs; what the cache has is marked so already.
  virtual void RunStarted(const RunRecord& record) = 0;
  virtual void TaskStarted(const RunRecord& record, const TaskPlace& place) = 0;
  virtual void TaskProgressed(const RunRecord& record, const TaskPlace& place,
                              const TaskProgress& progress) = 0;
  // The task is done, failed, or was interrupted; gates are judged.
  virtual void TaskEnded(const RunRecord& record, const TaskPlace& place) = 0;
  // Gets a warning or a note that should not wait.
  virtual void Said(std::string_view line) = 0;
  // Is called after the last task, whatever the outcome.
  virtual void RunEnded(const RunRecord& record) = 0;
};

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_RUN_RUN_OBSERVER_H_
