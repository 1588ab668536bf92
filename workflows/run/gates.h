#ifndef REQUANT_WORKFLOWS_RUN_GATES_H_
#define REQUANT_WORKFLOWS_RUN_GATES_H_

// Decides whether what an evaluation found is within a stage's limits, what to
// say about it, and whether it is to look at more records.

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/evaluation.pb.h"
#include "workflows/plan/plan.h"
#include "workflows/run/run_record.pb.h"
#include "workflows/run/task_command.h"
#include "workflows/workflow.pb.h"

namespace requant {

// What a RelativeMse is relative to; nothing unless both are set.
struct MseReference {
  const RelativeMse* relative = nullptr;
  // What that stage's verification found.
  const EvaluateResult* result = nullptr;
};

// Judges every gate that is set and not negative, and `expect` unless it is
// null, in the order of their fields, then `reference`; limits are
// EffectiveGates' (plan.h). One gate more, "lost_values", is always
// judged: outputs of which none is finite never pass, nor does a value that
// became infinite or NaN. A gate that cannot be judged (layers that have no
// counterpart, an output without classes, data without labels) fails.
//
// `accuracy_is_default`: nobody asked for max_accuracy_drop, so that without
// labels or classes it has no verdict, as long as another gate has one.
std::vector<GateRecord> JudgeGates(const EvaluateResult& result,
                                   const Gates& gates, const Expect* expect,
                                   bool accuracy_is_default = false,
                                   const MseReference& reference = {});

// Returns the worst; NONE when none was judged.
VerificationRecord::Verdict WorstVerdict(const std::vector<GateRecord>& gates);

// Returns the verdicts on `result` of a verification, once all that it waits
// for is finished; none for any other task.
std::vector<GateRecord> JudgeTask(const Plan& plan, const Task& task,
                                  const CachedTask& result,
                                  const FinishedTasks& finished);

// Returns how many records the workflow lets a verification take; 0: all.
int64_t RecordLimit(const Plan& plan, const Task& task);

// Returns how many records a verification that took `limit` at most is to be
// repeated on because its `gates` are not certain; unset: it is not repeated.
std::optional<int64_t> RecordsToRepeatOn(const Plan& plan, const Task& task,
                                         const CachedTask& result,
                                         int64_t limit,
                                         const std::vector<GateRecord>& gates);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_RUN_GATES_H_
