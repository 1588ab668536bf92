#ifndef REQUANT_WORKFLOWS_COMMANDS_WORKFLOW_FLAGS_H_
#define REQUANT_WORKFLOWS_COMMANDS_WORKFLOW_FLAGS_H_

// What the commands that take a workflow have in common:
// [FILE] [--set NAME=VALUE ...] [--work_dir=FOLDER].

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/program/flags.h"
#include "workflows/language/workflow_variables.h"
#include "workflows/plan/plan.h"

namespace requant {

struct WorkflowFlags {
  // As typed; "": the default workflow.
  std::string name;
  WorkflowSettings settings;
  std::string work_dir;
};

// As ParseFlags of base/program/flags.h, for a command that takes one workflow.
// `help.flag_files` must have WorkflowFlagsFile() in it.
std::optional<int> ParseWorkflowFlags(const std::vector<std::string>& args,
                                      const ProgramHelp& help,
                                      WorkflowFlags* flags);

// The file that defines the flags.
std::string WorkflowFlagsFile();

// Finds, reads and plans the workflow.
absl::StatusOr<Plan> PlanOf(const WorkflowFlags& flags);

// Prints an error of PlanOf to stderr, whose mistakes have a line each; returns
// kExitFailed.
int ReportMistakes(const std::string& program, const absl::Status& status);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_COMMANDS_WORKFLOW_FLAGS_H_
