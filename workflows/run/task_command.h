#ifndef REQUANT_WORKFLOWS_RUN_TASK_COMMAND_H_
#define REQUANT_WORKFLOWS_RUN_TASK_COMMAND_H_

// The command lines of our own programs that do a task's work.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "workflows/plan/plan.h"

namespace requant {

// Where a task's inputs and outputs are, in the order of Task::inputs and
// Task::outputs. A role's output that the task does not declare is not written.
struct TaskPaths {
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
};

struct CommandSettings {
  // Batches of an evaluation or a benchmark that run side by side.
  int streams = 1;
  // What quantization's target "host" means (base/process/machine.h).
  std::string host_target = "any";
  // How many records an evaluation takes, instead of the workflow's.
  std::optional<int64_t> records;
};

struct TaskArgument {
  // "": the argument is the word `value`.
  std::string flag;
  std::string value;

  std::string Text() const;
};

struct TaskCommand {
  // Requant's command, such as "transform".
  std::string command;
  std::vector<TaskArgument> args;
  // Where its stdout goes; "": to whoever reads it.
  std::string stdout_file;
};

// Returns the commands, to be run one after the other. Fails if the task lacks
// an input which its kind needs.
absl::StatusOr<std::vector<TaskCommand>> TaskCommands(
    const Plan& plan, const Task& task, const TaskPaths& paths,
    const CommandSettings& settings);

// Returns whether the task's programs use every core, and much of the memory,
// by themselves.
bool UsesAllCores(const Plan& plan, const Task& task);

// Returns whether it measures times, which anything beside it would spoil.
bool MeasuresTime(const Plan& plan, const Task& task);

// Returns the command for a shell: "requant transform --in_graph=…".
std::string ShellCommand(const TaskCommand& command);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_RUN_TASK_COMMAND_H_
