#include "workflows/run/task_verdict.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "runtime/evaluation.pb.h"
#include "workflows/language/stage_parts.h"
#include "workflows/plan/effective_gates.h"
#include "workflows/run/gates.h"

namespace requant {
namespace {

// A verdict that is not certain is sought on so many times the records.
constexpr int64_t kMoreRecords = 4;

// Of a stage whose error is judged by another's, which is finished.
MseReference ReferenceOf(const Plan& plan, const Stage& stage,
                         const FinishedTasks& finished) {
  const Verify* const verify = VerifyOf(stage);
  if (verify == nullptr || !verify->has_relative_mse()) return {};
  const Workflow& workflow = plan.file.workflow;
  for (int i = 0; i < workflow.stage_size(); ++i) {
    const int other = plan.verify_task[i];
    if (workflow.stage(i).name() != verify->relative_mse().stage() ||
        other < 0) {
      continue;
    }
    const FinishedTask* const reference = finished(other);
    return {&verify->relative_mse(), reference == nullptr
                                         ? &EvaluateResult::default_instance()
                                         : &reference->result.evaluation()};
  }
  return {};
}

}  // namespace

std::vector<GateRecord> JudgeTask(const Plan& plan, const Task& task,
                                  const CachedTask& result,
                                  const FinishedTasks& finished) {
  if (task.kind != Task::Kind::kVerify) return {};
  const Stage& stage = plan.file.workflow.stage(task.stage);
  const Verify* const verify = VerifyOf(stage);
  const bool expects =
      !stage.has_compare() && verify != nullptr && verify->has_expect();
  return JudgeGates(result.evaluation(), EffectiveGates(plan, task),
                    expects ? &verify->expect() : nullptr,
                    !LimitsAccuracyDrop(plan, task),
                    ReferenceOf(plan, stage, finished));
}

int64_t RecordLimit(const Plan& plan, const Task& task) {
  if (task.kind != Task::Kind::kVerify) return 0;
  const Workflow& workflow = plan.file.workflow;
  const std::string& records =
      task.evaluation >= 0
          ? workflow.evaluation(task.evaluation).on().records()
          : workflow.stage(task.stage).compare().on().records();
  int64_t limit = 0;
  return absl::SimpleAtoi(records, &limit) ? limit : 0;
}

std::optional<int64_t> RecordsToRepeatOn(const Plan& plan, const Task& task,
                                         const CachedTask& result,
                                         int64_t limit,
                                         const FinishedTasks& finished) {
  // One that took fewer has reached the end of the data.
  if (limit <= 0 || result.evaluation().timing().records() < limit ||
      WorstVerdict(JudgeTask(plan, task, result, finished)) !=
          VerificationRecord::INCONCLUSIVE) {
    return std::nullopt;
  }
  for (const TaskInput& input : task.inputs) {
    if (input.role != "baseline_predictions") continue;
    const Task& maker = plan.tasks[input.task];
    // The user limited the comparison.
    if (maker.kind == Task::Kind::kBaseline &&
        !maker.baseline_records.empty()) {
      return std::nullopt;
    }
  }
  return limit * kMoreRecords;
}

}  // namespace requant
