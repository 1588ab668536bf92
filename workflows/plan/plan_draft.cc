#include "workflows/plan/plan_draft.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/text/nearest_name.h"
#include "workflows/plan/task_order.h"

namespace requant {

std::string InQuotes(std::string_view text) {
  return absl::StrCat("\"", text, "\"");
}

PlanDraft::PlanDraft(const WorkflowFile& file)
    : workflow_(file.workflow), places_(file.places()), problems_(file.path) {
  plan_.file = file;
  NameEvaluations();
  NameStages();
}

std::string PlanDraft::StageTitle(int stage) const {
  return absl::StrCat("stage ", InQuotes(workflow_.stage(stage).name()));
}

std::string PlanDraft::EvaluationTitle(int evaluation) const {
  return absl::StrCat("evaluation ",
                      InQuotes(workflow_.evaluation(evaluation).name()));
}

void PlanDraft::Refuse(int line, int stage, std::string_view sentence) {
  problems_.Add(line, absl::StrCat(StageTitle(stage), sentence));
}

void PlanDraft::NameEvaluations() {
  for (int i = 0; i < workflow_.evaluation_size(); ++i) {
    const std::string& name = workflow_.evaluation(i).name();
    const int line = EvaluationPlaces(i).Line("name");
    if (!IsPlainName(name)) {
      problems_.Add(line, absl::StrCat(InQuotes(name),
                                       " is no name of an evaluation: letters, "
                                       "digits, \"_\", \"-\" and \".\""));
    } else if (!evaluations_.emplace(name, i).second) {
      problems_.Add(line,
                    absl::StrCat("two evaluations are named ", InQuotes(name)));
    }
  }
}

void PlanDraft::NameStages() {
  for (int i = 0; i < workflow_.stage_size(); ++i) {
    const Stage& stage = workflow_.stage(i);
    const int line = StagePlaces(i).Line("name");
    if (stage.name().empty()) {
      problems_.Add(line, "a stage has no name");
    } else if (!IsPlainName(stage.name())) {
      problems_.Add(line, absl::StrCat(InQuotes(stage.name()),
                                       " is no name of a stage: letters, "
                                       "digits, \"_\", \"-\" and \".\""));
    } else if (!stages_.emplace(stage.name(), i).second) {
      problems_.Add(
          line, absl::StrCat("two stages are named ", InQuotes(stage.name())));
    }
    const auto variable = plan_.file.variables.find(stage.skip_if());
    const bool left_out = variable != plan_.file.variables.end() &&
                          !variable->second.value.empty();
    plan_.left_out_by.push_back(left_out ? stage.skip_if() : "");
    plan_.given_graph.push_back(left_out ? "" : stage.use_file());
  }
  if (workflow_.stage_size() == 0) problems_.Add(0, "it has no stage");
}

int PlanDraft::FindEvaluation(const std::string& name) const {
  const auto found = evaluations_.find(name);
  return found == evaluations_.end() ? -1 : found->second;
}

int PlanDraft::FindStage(const std::string& name, int line,
                         const std::string& reader) {
  const auto found = stages_.find(name);
  if (found != stages_.end()) return found->second;
  if (problems_.full()) {
    problems_.Add(line, "no such stage");
    return -1;
  }
  std::vector<std::string> names;
  for (const Stage& stage : workflow_.stage()) names.push_back(stage.name());
  problems_.Add(line,
                absl::StrCat(reader, " ", InQuotes(name), ": no such stage",
                             SuggestName(name, names)));
  return -1;
}

std::vector<std::string> PlanDraft::EvaluationNames() const {
  std::vector<std::string> names;
  for (const auto& [name, unused] : evaluations_) names.push_back(name);
  return names;
}

int PlanDraft::AddTask(Task::Kind kind, int stage, const std::string& name) {
  Task task;
  task.name = name;
  task.kind = kind;
  task.stage = kind == Task::Kind::kBaseline ? -1 : stage;
  plan_.tasks.push_back(task);
  waits_for_.emplace_back();
  positions_.emplace_back(stage, kind == Task::Kind::kBaseline ? 0
                                 : kind == Task::Kind::kMake   ? 1
                                                               : 2);
  return static_cast<int>(plan_.tasks.size()) - 1;
}

TaskInput PlanDraft::GraphOf(int stage, const std::string& role) const {
  TaskInput input;
  input.role = role;
  if (IsGiven(stage)) {
    input.path = plan_.given_graph[stage];
  } else {
    input.task = plan_.make_task[stage];
    input.output = "graph";
  }
  return input;
}

std::vector<int> PlanDraft::PutInOrder() {
  // First as in the file.
  const int count = static_cast<int>(plan_.tasks.size());
  std::vector<int> by_file(count), place(count);
  for (int i = 0; i < count; ++i) by_file[i] = i;
  std::stable_sort(by_file.begin(), by_file.end(),
                   [&](int a, int b) { return positions_[a] < positions_[b]; });
  for (int i = 0; i < count; ++i) place[by_file[i]] = i;
  std::vector<std::vector<int>> after(count);
  for (int i = 0; i < count; ++i) {
    for (const int other : plan_.tasks[by_file[i]].after) {
      after[i].push_back(place[other]);
    }
  }
  const TaskOrder order = FindOrder(after);
  if (!order.cycle.empty()) {
    std::vector<int> cycle;
    for (const int task : order.cycle) cycle.push_back(by_file[task]);
    return cycle;
  }
  std::vector<int> renamed(count);
  std::vector<Task> tasks;
  for (const int task : order.order) {
    renamed[by_file[task]] = static_cast<int>(tasks.size());
    tasks.push_back(plan_.tasks[by_file[task]]);
  }
  const auto rename = [&](int* task) {
    if (*task >= 0) *task = renamed[*task];
  };
  for (Task& task : tasks) {
    for (TaskInput& input : task.inputs) rename(&input.task);
    for (int& other : task.after) rename(&other);
    std::sort(task.after.begin(), task.after.end());
  }
  for (int& task : plan_.make_task) rename(&task);
  for (int& task : plan_.verify_task) rename(&task);
  plan_.tasks = std::move(tasks);
  return {};
}

}  // namespace requant
