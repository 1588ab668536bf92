#ifndef REQUANT_WORKFLOWS_RUN_TASK_VERDICT_H_
#define REQUANT_WORKFLOWS_RUN_TASK_VERDICT_H_

// Judging what a verification found, and whether it is to look at more records.

#include <cstdint>
#include <optional>
#include <vector>

#include "workflows/plan/plan_tasks.h"
#include "workflows/run/run_record.pb.h"
#include "workflows/run/stage_store.h"
#include "workflows/run/task_key.h"

namespace requant {

// The verdicts on `result` of a verification, all that it waits for being
// finished; none for any other task.
std::vector<GateRecord> JudgeTask(const Plan& plan, const Task& task,
                                  const CachedTask& result,
                                  const FinishedTasks& finished);

// How many records the workflow lets a verification take; 0: all.
int64_t RecordLimit(const Plan& plan, const Task& task);

// How many records a verification that took `limit` at most, and is not
// certain, is to be repeated on; unset: it is not.
std::optional<int64_t> RecordsToRepeatOn(const Plan& plan, const Task& task,
                                         const CachedTask& result,
                                         int64_t limit,
                                         const FinishedTasks& finished);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_RUN_TASK_VERDICT_H_
