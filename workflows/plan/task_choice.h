#ifndef REQUANT_WORKFLOWS_PLAN_TASK_CHOICE_H_
#define REQUANT_WORKFLOWS_PLAN_TASK_CHOICE_H_

// Which tasks of a plan a run is about.

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "workflows/plan/plan.h"

namespace requant {

// Names of stages, as the flags of `requant run` give them.
struct StageChoice {
  // Stages to do, with what they need; empty: all.
  std::set<std::string> only;
  // These stages and all behind them are done again.
  std::set<std::string> from;
  // These stages are done again.
  std::set<std::string> force;
  bool force_all = false;
};

// By task.
struct TaskChoice {
  std::vector<bool> chosen;
  // Done even if the cache has it.
  std::vector<bool> forced;
};

// An error names the stage that there is not, and the nearest that there is.
absl::Status CheckStageNames(const Plan& plan,
                             const std::set<std::string>& names);

TaskChoice ChooseTasks(const Plan& plan, const StageChoice& choice);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_PLAN_TASK_CHOICE_H_
