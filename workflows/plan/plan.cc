#include "workflows/plan/plan.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/text/nearest_name.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "workflows/language/stage_fields.h"
#include "workflows/plan/planner.h"

namespace requant {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Reflection;

// In percentage points, as in the published recipe.
constexpr double kDefaultMaxAccuracyDrop = 0.5;

// Messages of gates, the narrowest first.
std::vector<const Gates*> GatesOf(const Plan& plan, const Task& task) {
  const Workflow& workflow = plan.file.workflow;
  std::vector<const Gates*> places;
  const Stage& stage = workflow.stage(task.stage);
  if (stage.has_compare()) {
    places.push_back(&stage.compare().gates());
  } else if (const Verify* verify = VerifyOf(stage)) {
    places.push_back(&verify->gates());
  }
  if (task.evaluation >= 0) {
    places.push_back(&workflow.evaluation(task.evaluation).gates());
  }
  places.push_back(&workflow.gates());
  return places;
}

// Returns whether the task belongs to one of the stages.
bool IsOf(const Plan& plan, const Task& task,
          const std::set<std::string>& stages) {
  return task.stage >= 0 &&
         stages.count(plan.file.workflow.stage(task.stage).name()) > 0;
}

}  // namespace

const TaskInput* Task::Find(std::string_view input_role) const {
  const auto found = std::find_if(
      inputs.begin(), inputs.end(),
      [&](const TaskInput& input) { return input.role == input_role; });
  return found == inputs.end() ? nullptr : &*found;
}

absl::StatusOr<Plan> MakePlan(const WorkflowFile& file) {
  return Planner(file).Make();
}

Gates EffectiveGates(const Plan& plan, const Task& task) {
  Gates effective;
  if (task.kind != Task::Kind::kVerify ||
      (task.Find("baseline_predictions") == nullptr &&
       task.Find("baseline") == nullptr)) {
    return effective;
  }
  effective.set_max_accuracy_drop(kDefaultMaxAccuracyDrop);
  const Reflection* const reflection = effective.GetReflection();
  for (int i = 0; i < Gates::descriptor()->field_count(); ++i) {
    const FieldDescriptor* const field = Gates::descriptor()->field(i);
    for (const Gates* gates : GatesOf(plan, task)) {
      if (!reflection->HasField(*gates, field)) continue;
      const double limit = reflection->GetDouble(*gates, field);
      if (limit < 0) {
        reflection->ClearField(&effective, field);
      } else {
        reflection->SetDouble(&effective, field, limit);
      }
      break;
    }
  }
  return effective;
}

bool LimitsAccuracyDrop(const Plan& plan, const Task& task) {
  for (const Gates* gates : GatesOf(plan, task)) {
    if (gates->has_max_accuracy_drop()) return true;
  }
  return false;
}

std::string UselessLayerGate(const Plan& plan, const Task& task) {
  if (task.kind != Task::Kind::kVerify) return "";
  const Stage& stage = plan.file.workflow.stage(task.stage);
  const bool compared = stage.has_compare()
                            ? !stage.compare().layer_records().empty()
                            : task.Find("baseline") != nullptr;
  if (compared) return "";
  const Gates gates = EffectiveGates(plan, task);
  for (int i = 0; i < Gates::descriptor()->field_count(); ++i) {
    const FieldDescriptor* const field = Gates::descriptor()->field(i);
    if (absl::StrContains(field->name(), "_layer_") &&
        gates.GetReflection()->HasField(gates, field) &&
        gates.GetReflection()->GetDouble(gates, field) >= 0) {
      return std::string(field->name());
    }
  }
  return "";
}

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
  // What is needed is before, what depends on something is after it.
  for (size_t i = count; i-- > 0;) {
    if (IsOf(plan, plan.tasks[i], choice.only)) tasks.chosen[i] = true;
    if (!tasks.chosen[i]) continue;
    for (const int other : plan.tasks[i].after) tasks.chosen[other] = true;
  }
  std::vector<bool> depends(count, false);
  for (size_t i = 0; i < count; ++i) {
    depends[i] = IsOf(plan, plan.tasks[i], choice.from);
    for (const int other : plan.tasks[i].after) {
      depends[i] = depends[i] || depends[other];
    }
    if (depends[i] || IsOf(plan, plan.tasks[i], choice.force)) {
      tasks.forced[i] = true;
    }
  }
  return tasks;
}

}  // namespace requant
