#ifndef REQUANT_WORKFLOWS_RUN_TASK_WORK_H_
#define REQUANT_WORKFLOWS_RUN_TASK_WORK_H_

// Doing a task: its programs run one after the other and leave their outputs in
// a folder.

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/terminal/progress.h"
#include "workflows/plan/plan.h"
#include "workflows/run/run_machine.h"
#include "workflows/run/stage_store.h"
#include "workflows/run/task_command.h"

namespace requant {

struct TaskWork {
  const Task* task = nullptr;
  std::vector<TaskCommand> commands;
  // Where the outputs are to be, in the order of the task's.
  std::vector<std::string> output_paths;
  // The folder that they are in; messages leave it out.
  std::string folder;
  // Edits the outputs in the end (--tamper); "": nothing does.
  std::string tamper;
  // Whether the output "result" is a BenchmarkResult.
  bool is_benchmark = false;
};

struct TaskWatch {
  std::function<void(const ProgressReport& report)> on_progress;
  // A warning as it comes.
  std::function<void(const std::string& warning)> on_warning;
  // Once true, the work is given up.
  const std::atomic<bool>* stop = nullptr;
};

// The result's work has outputs, notes, warnings and work_seconds; its key
// parts and task's name are the caller's. The error of a program that failed is
// the sentence that it wrote; Cancelled: it was interrupted or stopped.
absl::StatusOr<CachedTask> DoTaskWork(const TaskWork& work,
                                      const RunMachine& machine,
                                      const TaskWatch& watch);

// Sizes and operations of a graph's file.
absl::StatusOr<GraphRecord> SummarizeGraphFile(const std::string& path);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_RUN_TASK_WORK_H_
