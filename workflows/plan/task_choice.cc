#include "workflows/plan/task_choice.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/text/nearest_name.h"

namespace requant {
namespace {

// Whether the task belongs to one of the stages.
bool IsOf(const Plan& plan, const Task& task,
          const std::set<std::string>& stages) {
  return task.stage >= 0 &&
         stages.count(plan.file.workflow.stage(task.stage).name()) > 0;
}

}  // namespace

absl::Status CheckStageNames(const Plan& plan,
                             const std::set<std::string>& names) {
  std::vector<std::string> known;
  for (const Stage& stage : plan.file.workflow.stage()) {
    known.push_back(stage.name());
  }
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(plan.file.path, " has no stage \"", name, "\"",
                     DidYouMean(name, known)));
  }
  return absl::OkStatus();
}

TaskChoice ChooseTasks(const Plan& plan, const StageChoice& choice) {
  const size_t count = plan.tasks.size();
  TaskChoice tasks;
  tasks.chosen.assign(count, choice.only.empty());
  tasks.forced.assign(count, choice.force_all);
  // What is needed is before, what depends on something is behind it.
  for (size_t i = count; i-- > 0;) {
    if (IsOf(plan, plan.tasks[i], choice.only)) tasks.chosen[i] = true;
    if (!tasks.chosen[i]) continue;
    for (const int other : plan.tasks[i].after) tasks.chosen[other] = true;
  }
  std::vector<bool> behind(count, false);
  for (size_t i = 0; i < count; ++i) {
    behind[i] = IsOf(plan, plan.tasks[i], choice.from);
    for (const int other : plan.tasks[i].after) {
      behind[i] = behind[i] || behind[other];
    }
    if (behind[i] || IsOf(plan, plan.tasks[i], choice.force)) {
      tasks.forced[i] = true;
    }
  }
  return tasks;
}

}  // namespace requant
