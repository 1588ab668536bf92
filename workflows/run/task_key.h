#ifndef REQUANT_WORKFLOWS_RUN_TASK_KEY_H_
#define REQUANT_WORKFLOWS_RUN_TASK_KEY_H_

// What a task's result depends on: its programs, parameters and the contents of
// its inputs, wherever they are.

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "workflows/plan/plan.h"
#include "workflows/run/run_record.h"
#include "workflows/run/stage_store.h"
#include "workflows/run/task_command.h"

namespace requant {

// A task that is done: where its outputs are.
struct FinishedTask {
  std::string key;
  CachedTask result;
};

// The finished tasks by their index in the plan; null for any other.
using FinishedTasks = std::function<const FinishedTask*(int task)>;

// An input as a task's commands get it, and the files that it is.
struct ResolvedInput {
  // For the command line.
  std::string path;
  // The path for a shell in the run's folder; a name for what a task makes.
  std::string shown_path;
  // The files with role, sha256, bytes and stage.
  std::vector<FileRecord> files;
};

// Finds the inputs of `task`, all tasks that make any being finished.
// `run_folder` is where shown paths start.
absl::StatusOr<std::vector<ResolvedInput>> ResolveInputs(
    const Plan& plan, const Task& task, const FinishedTasks& finished,
    const std::string& run_folder, StageStore* store);

// Fails unless the inputs of `task` that no task makes are still what they were
// when ResolveInputs found them. It is called after the work, whose result is
// otherwise not that of its key.
absl::Status CheckUnchanged(const Task& task,
                            const std::vector<ResolvedInput>& inputs,
                            StageStore* store);

// Returns what the result depends on. `tamper` is a program that edits the
// outputs, with arguments after blanks; "": none.
absl::StatusOr<std::vector<KeyPart>> TaskKeyParts(
    const Plan& plan, const Task& task,
    const std::vector<ResolvedInput>& inputs, const RunMachine& machine,
    const CommandSettings& settings, const std::string& tamper,
    StageStore* store);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_RUN_TASK_KEY_H_
