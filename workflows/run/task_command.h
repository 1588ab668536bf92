#ifndef REQUANT_WORKFLOWS_RUN_TASK_COMMAND_H_
#define REQUANT_WORKFLOWS_RUN_TASK_COMMAND_H_

// The command lines of our own programs that do a task's work, and what its
// result depends on: these programs, their parameters and the contents of its
// inputs, wherever they are.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "workflows/plan/plan.h"
#include "workflows/run/run_record.h"
#include "workflows/run/stage_store.h"

namespace requant {

// Where a task's inputs and outputs are, in the order of Task::inputs and
// Task::outputs. Outputs that the task does not declare are not written.
struct TaskPaths {
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
};

struct CommandSettings {
  // How many batches of an evaluation or a benchmark run side by side.
  int streams = 1;
  // What quantization's target "host" means (base/process/machine.h).
  std::string host_target = "any";
  // How many records an evaluation takes, instead of the workflow's number.
  std::optional<int64_t> records;
};

struct TaskArgument {
  // If empty, the argument is the word `value`.
  std::string flag;
  std::string value;

  std::string Text() const;
};

struct TaskCommand {
  // Requant's command, such as "transform".
  std::string command;
  std::vector<TaskArgument> args;
  // The file that its stdout goes to. If empty, the caller reads it.
  std::string stdout_file;
};

// Returns the commands, to be run one after the other. The task must have all
// inputs and outputs that its kind needs.
std::vector<TaskCommand> TaskCommands(const Plan& plan, const Task& task,
                                      const TaskPaths& paths,
                                      const CommandSettings& settings);

// Returns whether the task's programs use every core, and much of the memory,
// by themselves.
bool UsesAllCores(const Plan& plan, const Task& task);

// Returns whether the task measures times, which other work would distort.
bool MeasuresTime(const Plan& plan, const Task& task);

// Returns the command for a shell: "requant transform --in_graph=…".
std::string ShellCommand(const TaskCommand& command);

// A task that is done, with its outputs' key in the store.
struct FinishedTask {
  std::string key;
  CachedTask result;
};

// Returns the finished task with this index in the plan, or null.
using FinishedTasks = std::function<const FinishedTask*(int task)>;

// An input as a task's commands get it, and the files that it consists of.
struct ResolvedInput {
  // The path for the command line.
  std::string path;
  // The path for a shell in the run's folder, or the name of what a task makes.
  std::string shown_path;
  // The files, with their role, sha256, bytes and stage.
  std::vector<FileRecord> files;
};

// Finds the inputs of `task`. All tasks that make them must be finished. Shown
// paths are relative to `run_folder`.
absl::StatusOr<std::vector<ResolvedInput>> ResolveInputs(
    const Plan& plan, const Task& task, const FinishedTasks& finished,
    const std::string& run_folder, StageStore* store);

// Fails unless the inputs of `task` that no task makes are still what they were
// when ResolveInputs found them. It is called after the work, because a result
// of other inputs would not belong to its key.
absl::Status CheckUnchanged(const Task& task,
                            const std::vector<ResolvedInput>& inputs,
                            StageStore* store);

// Returns what the result depends on. `tamper` is a program that edits the
// outputs, with its arguments, or "" for none.
absl::StatusOr<std::vector<KeyPart>> TaskKeyParts(
    const Plan& plan, const Task& task,
    const std::vector<ResolvedInput>& inputs, const RunMachine& machine,
    const CommandSettings& settings, const std::string& tamper,
    StageStore* store);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_RUN_TASK_COMMAND_H_
