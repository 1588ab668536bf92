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

// The gate that is always judged: it fails if no output is finite, or if a
// value became infinite or NaN.
inline constexpr char kLostValuesGate[] = "lost_values";

// What a RelativeMse is relative to, if both fields are set.
struct MseReference {
  const RelativeMse* relative = nullptr;
  // What that stage's verification found.
  const EvaluateResult* result = nullptr;
};

// Judges every gate that is set and not negative, in the order of the fields,
// then `expect` unless it is null, then `reference`. Limits are those of
// EffectiveGates (plan.h). kLostValuesGate is added. A gate that cannot be
// judged (layers without a counterpart, an output without classes, data without
// labels) fails.
//
// `accuracy_is_default` means that nobody asked for max_accuracy_drop: without
// labels or classes it has no verdict if there is another gate.
std::vector<GateRecord> JudgeGates(const EvaluateResult& result,
                                   const Gates& gates, const Expect* expect,
                                   bool accuracy_is_default = false,
                                   const MseReference& reference = {});

// Returns the worst verdict, or NONE if no gate was judged.
VerificationRecord::Verdict WorstVerdict(const std::vector<GateRecord>& gates);

// Returns the verdicts on a verification's `result`, or none for any other
// task. All that the task waits for must be finished.
std::vector<GateRecord> JudgeTask(const Plan& plan, const Task& task,
                                  const CachedTask& result,
                                  const FinishedTasks& finished);

// Returns how many records the workflow lets a verification take, or 0 for all.
int64_t RecordLimit(const Plan& plan, const Task& task);

// Returns how many records to repeat a verification on whose `gates` are not
// certain on `limit` records at most, or nothing if it is not to be repeated.
std::optional<int64_t> RecordsToRepeatOn(const Plan& plan, const Task& task,
                                         const CachedTask& result,
                                         int64_t limit,
                                         const std::vector<GateRecord>& gates);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_RUN_GATES_H_
