#ifndef REQUANT_WORKFLOWS_PLAN_PLAN_H_
#define REQUANT_WORKFLOWS_PLAN_PLAN_H_

// A workflow as tasks: what makes what, and what waits for what.

#include "absl/status/statusor.h"
#include "workflows/language/workflow_file.h"
#include "workflows/plan/plan_tasks.h"

namespace requant {

// Resolves names, finds the order, and checks all that can be checked before
// anything runs. An error is one sentence for each mistake, a line each, that
// starts with FILE:LINE.
absl::StatusOr<Plan> MakePlan(const WorkflowFile& file);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_PLAN_PLAN_H_
