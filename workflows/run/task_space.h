#ifndef REQUANT_WORKFLOWS_RUN_TASK_SPACE_H_
#define REQUANT_WORKFLOWS_RUN_TASK_SPACE_H_

// Room on the disk for what tasks will write.

#include <vector>

#include "absl/status/status.h"
#include "workflows/plan/plan_tasks.h"
#include "workflows/run/stage_store.h"

namespace requant {

// Whether the store's disk has room for what `tasks`, by their index, are
// expected to write. OK when there is none of them, or when that cannot be
// told; ResourceExhausted says how much is free, how much is needed, and what
// to do.
absl::Status CheckSpace(const Plan& plan, const std::vector<int>& tasks,
                        const StageStore& store);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_RUN_TASK_SPACE_H_
