#ifndef REQUANT_WORKFLOWS_COMMANDS_RUN_COMMAND_H_
#define REQUANT_WORKFLOWS_COMMANDS_RUN_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "workflows/plan/plan.h"
#include "workflows/plan/plan_text.h"

namespace requant {

// `requant run`: runs a workflow and leaves its results in a folder. Returns
// the exit code.
int RunRunCommand(const std::vector<std::string>& args);

// What would become of each task, for `requant plan`. An empty `work_dir` is
// the workflow's own.
absl::StatusOr<std::vector<TaskOutlook>> FindTaskStates(
    const Plan& plan, const std::string& work_dir);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_COMMANDS_RUN_COMMAND_H_
