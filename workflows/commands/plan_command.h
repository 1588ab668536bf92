#ifndef REQUANT_WORKFLOWS_COMMANDS_PLAN_COMMAND_H_
#define REQUANT_WORKFLOWS_COMMANDS_PLAN_COMMAND_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "workflows/plan/plan.h"
#include "workflows/plan/plan_text.h"

namespace requant {

// Looks up in a work folder what would become of each task, in their order.
using TaskStateFinder = std::function<absl::StatusOr<std::vector<TaskOutlook>>(
    const Plan& plan, const std::string& work_dir)>;

// `requant plan`: says what a workflow would do. Without `find_states` nothing
// counts as cached. Returns the exit code.
int RunPlanCommand(const std::vector<std::string>& args,
                   const TaskStateFinder& find_states = nullptr);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_COMMANDS_PLAN_COMMAND_H_
