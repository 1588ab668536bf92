#ifndef REQUANT_WORKFLOWS_COMMANDS_COMMANDS_H_
#define REQUANT_WORKFLOWS_COMMANDS_COMMANDS_H_

// The commands that requant itself does, and the flags that several of them
// have. A command gets the arguments that follow its name, and returns the exit
// code.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/program/flags.h"
#include "workflows/plan/plan.h"
#include "workflows/run/runner.h"

namespace requant {

// Does `requant cache`: shows what work folders keep, or removes some of it.
int RunCacheCommand(const std::vector<std::string>& args);

// Does `requant compare_runs`: shows several runs side by side.
int RunCompareRunsCommand(const std::vector<std::string>& args);

// Does `requant completion`: prints a script for the shell.
int RunCompletionCommand(const std::vector<std::string>& args);

// Does `requant doctor`: examines the machine and prints what it found. The
// exit code is 0 if no check found an error.
int RunDoctorCommand(const std::vector<std::string>& args);

// With this word as its first argument, the program is the child process of
// `requant doctor` that loads TensorFlow.
inline constexpr char kTensorFlowCheckCommand[] = "__tensorflow_check";

// Loads TensorFlow, runs an int8 layer, and reports each step to the parent.
int RunTensorFlowCheckCommand(const std::vector<std::string>& args);

// Does `requant init MODEL`: writes a dataset declaration and a workflow for a
// model.
int RunInitCommand(const std::vector<std::string>& args);

// Does `requant plan`: shows what a workflow would do.
int RunPlanCommand(const std::vector<std::string>& args);

// Does `requant run`: runs a workflow and leaves its results in a folder.
int RunRunCommand(const std::vector<std::string>& args);

// Does `requant shell`: starts a shell in which the published documents'
// commands are found.
int RunShellCommand(const std::vector<std::string>& args);

// Does `requant verify MANIFEST`: says whether a run's files are still what the
// run read and made. The exit code is 0 if they are.
int RunVerifyCommand(const std::vector<std::string>& args);

// Returns what would happen to each task. An empty `work_dir` means the
// workflow's own.
absl::StatusOr<std::vector<TaskOutlook>> FindTaskStates(
    const Plan& plan, const std::string& work_dir,
    const RunOptions& options = {});

// Return the values of --format and --output, which several commands share, and
// the files that define them, for ProgramHelp::flag_files.
const std::string& OutputFormatFlag();
std::string OutputFormatFlagFile();
const std::string& OutputFlag();
std::string OutputFlagFile();

// The arguments that commands on a workflow share: [FILE] [--set NAME=VALUE
// ...] [--work_dir=FOLDER].
struct WorkflowFlags {
  // As typed, or "" for the default workflow.
  std::string name;
  // The values from --set.
  std::map<std::string, std::string> settings;
  std::string work_dir;
};

// Does what ParseFlags (base/program/flags.h) does, and takes one workflow.
// `help.flag_files` must have WorkflowFlagsFile(), which defines the flags.
std::optional<int> ParseWorkflowFlags(const std::vector<std::string>& args,
                                      const ProgramHelp& help,
                                      WorkflowFlags* flags);
std::string WorkflowFlagsFile();

// Takes a flag that may be given several times out of the arguments, and
// returns its values by their names. `form` is how a value is written, such as
// "NAME=VALUE". Values may contain commas, which those of other repeatable
// flags, joined by commas, may not.
absl::StatusOr<std::map<std::string, std::string>> TakePairs(
    const std::string& flag, std::string_view form,
    std::vector<std::string>* args);

// Finds, reads and plans the workflow.
absl::StatusOr<Plan> PlanOf(const WorkflowFlags& flags);

// Prints an error of PlanOf to stderr, a line for each mistake, and returns
// kExitFailed.
int ReportMistakes(const std::string& program, const absl::Status& status);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_COMMANDS_COMMANDS_H_
