#include "workflows/plan/plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/text/nearest_name.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "workflows/language/stage_fields.h"
#include "workflows/plan/planner.h"

namespace requant {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Reflection;

// The limit in percentage points, as in the published recipe.
constexpr double kDefaultMaxAccuracyDrop = 0.5;

// Returns the messages of gates that apply, the narrowest first.
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

// Returns the first gate on layers that could never be judged, because the
// verification does not compare layers, or "" if there is none.
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
  // What a task needs is before it, and what depends on it is after it.
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

std::string InQuotes(std::string_view text) {
  return absl::StrCat("\"", text, "\"");
}

Planner::Planner(const WorkflowFile& file)
    : workflow_(file.workflow), places_(file.places()), problems_(file.path) {
  plan_.file = file;
  NameEvaluations();
  NameStages();
}

std::string Planner::StageTitle(int stage) const {
  return absl::StrCat("stage ", InQuotes(workflow_.stage(stage).name()));
}

std::string Planner::EvaluationTitle(int evaluation) const {
  return absl::StrCat("evaluation ",
                      InQuotes(workflow_.evaluation(evaluation).name()));
}

CheckedPart Planner::RecordsPart(int stage) {
  return {RecordsPlaces(workflow_.stage(stage), StagePlaces(stage)),
          StageTitle(stage), &problems_};
}

void Planner::Refuse(int line, int stage, std::string_view sentence) {
  problems_.Add(line, absl::StrCat(StageTitle(stage), sentence));
}

void Planner::NameEvaluations() {
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

void Planner::NameStages() {
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

int Planner::FindEvaluation(const std::string& name) const {
  const auto found = evaluations_.find(name);
  return found == evaluations_.end() ? -1 : found->second;
}

int Planner::FindStage(const std::string& name, int line,
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

void Planner::CheckVerification(int stage, const Verify& verify,
                                const FieldPlaces& places) {
  CheckVerify(verify, {places, StageTitle(stage), &problems_});
  std::vector<std::string> names, quoted;
  for (const auto& [name, unused] : evaluations_) {
    names.push_back(name);
    quoted.push_back(InQuotes(name));
  }
  const std::string all =
      names.empty() ? "; the workflow has none"
                    : absl::StrCat("; there are ", absl::StrJoin(quoted, ", "));
  if (verify.evaluation().empty()) {
    Refuse(places.line(), stage,
           absl::StrCat(": verify names no evaluation", all));
  } else if (FindEvaluation(verify.evaluation()) < 0) {
    const std::string suggestion = SuggestName(verify.evaluation(), names);
    Refuse(places.Line("evaluation"), stage,
           absl::StrCat(" is verified by ", InQuotes(verify.evaluation()),
                        ": no such evaluation",
                        suggestion.empty() ? all : suggestion));
  }
}

// Unused evaluations are not checked: their variables may lack values.
void Planner::CheckWorkflow() {
  const std::string problem = WorkflowNameProblem(workflow_.name());
  if (!problem.empty()) problems_.Add(places_.Line("name"), problem);
  CheckGates(workflow_.gates(),
             {places_.Nested("gates"), "the workflow", &problems_});
  std::set<int> used;
  for (int i = 0; i < workflow_.stage_size(); ++i) {
    if (IsLeftOut(i)) continue;
    const Stage& stage = workflow_.stage(i);
    CheckStage(stage, StagePart(i));
    const std::string graph_problem =
        IsGiven(i) ? GraphPathProblem(plan_.given_graph[i]) : "";
    if (!graph_problem.empty()) {
      Refuse(StagePlaces(i).Line("use_file"), i,
             absl::StrCat(": use_file: ", graph_problem));
    }
    const Verify* const verify = VerifyOf(stage);
    if (verify == nullptr) continue;
    CheckVerification(i, *verify, VerifyPlaces(stage, StagePlaces(i)));
    const int evaluation = FindEvaluation(verify->evaluation());
    if (evaluation >= 0) used.insert(evaluation);
  }
  for (const int evaluation : used) {
    CheckEvaluation(workflow_.evaluation(evaluation),
                    EvaluationPart(evaluation));
  }
}

int Planner::AddTask(Task::Kind kind, int stage, const std::string& name) {
  const int index = static_cast<int>(plan_.tasks.size());
  Task& task = plan_.tasks.emplace_back();
  task.name = name;
  task.kind = kind;
  task.stage = kind == Task::Kind::kBaseline ? -1 : stage;
  waits_for_.emplace_back();
  const int rank = kind == Task::Kind::kBaseline ? 0
                   : kind == Task::Kind::kMake   ? 1
                                                 : 2;
  positions_.emplace_back(stage, rank, index);
  return index;
}

void Planner::AddTasks(int index) {
  plan_.make_task.push_back(-1);
  plan_.verify_task.push_back(-1);
  const Stage& stage = workflow_.stage(index);
  if (IsLeftOut(index) || StageKind(stage).empty()) return;
  const std::vector<StageOutput> outputs = OutputsOf(stage, StagePlaces(index));
  if (!outputs.empty() && !IsGiven(index)) {
    plan_.make_task[index] = AddTask(Task::Kind::kMake, index, stage.name());
    for (const StageOutput& output : outputs) {
      plan_.tasks.back().outputs.push_back({output.role, output.file});
    }
  }
  const Verify* const verify = VerifyOf(stage);
  if (verify == nullptr && !stage.has_compare()) return;
  plan_.verify_task[index] = AddTask(Task::Kind::kVerify, index,
                                     absl::StrCat(stage.name(), "/verify"));
  plan_.tasks.back().outputs = {
      {"predictions", absl::StrCat(stage.name(), ".predictions")},
      {"result", absl::StrCat(stage.name(), ".evaluation.pb")}};
  if (verify != nullptr) {
    plan_.tasks.back().evaluation = FindEvaluation(verify->evaluation());
  }
}

void Planner::CheckOutputNames() {
  // For each file, the stage that writes it, and the task.
  std::map<std::string, std::pair<int, std::string>> writers;
  for (int i = 0; i < workflow_.stage_size(); ++i) {
    if (plan_.make_task[i] < 0) continue;
    const Stage& stage = workflow_.stage(i);
    // A name that no stage may have was reported; it now counts as the first
    // stage's.
    const int named = stages_.emplace(stage.name(), 0).first->second;
    for (const StageOutput& output : OutputsOf(stage, StagePlaces(i))) {
      const std::string problem = OutputNameProblem(output.file);
      if (!problem.empty()) {
        Refuse(output.line, i, absl::StrCat(": ", problem));
      }
      const auto [writer, is_new] =
          writers.emplace(output.file, std::make_pair(named, stage.name()));
      if (is_new) continue;
      const std::string& maker = writer->second.second;
      Refuse(output.line, i,
             absl::StrCat(
                 " writes ", InQuotes(output.file),
                 maker == stage.name()
                     ? " twice"
                     : absl::StrCat(", as stage ", InQuotes(maker), " does")));
    }
  }
  for (const Task& task : plan_.tasks) {
    if (task.kind == Task::Kind::kMake) continue;
    for (const TaskOutput& output : task.outputs) {
      const auto [writer, is_new] =
          writers.emplace(output.file, std::make_pair(task.stage, task.name));
      if (is_new) continue;
      // A baseline's task has no stage of its own, but the other task has.
      const auto& [stage, other] = writer->second;
      const int told = stage >= 0 ? stage : task.stage;
      Refuse(StagePlaces(told).line(), told,
             absl::StrCat(" writes ", InQuotes(output.file), ", as ",
                          InQuotes(stage >= 0 ? task.name : other), " does"));
    }
  }
}

void Planner::FillMakeTask(int task) {
  const int stage = plan_.tasks[task].stage;
  AddStageInputs(task);
  AddStagePaths(task);
  if (const Records* records = RecordsOf(workflow_.stage(stage))) {
    CheckRecords(*records, RecordsPart(stage));
    AddRecords(*records, RecordsPart(stage), task);
  }
}

void Planner::FillVerifyTask(int task) {
  const int stage = plan_.tasks[task].stage;
  if (StageOf(task).has_compare()) return FillMakeTask(task);
  if (StageOf(task).has_evaluate()) {
    AddStageInputs(task);
  } else {
    plan_.tasks[task].inputs.push_back(GraphOf(stage, "graph"));
  }
  const int evaluation = plan_.tasks[task].evaluation;
  if (evaluation < 0) return;
  AddRecords(workflow_.evaluation(evaluation).on(),
             EvaluationPart(evaluation).Nested("on"), task);
  AddBaseline(task);
  WaitForReference(task);
}

// Makes a verification wait for the other one that it is judged by.
void Planner::WaitForReference(int task) {
  const int own = plan_.tasks[task].stage;
  const Verify& verify = *VerifyOf(StageOf(task));
  if (!verify.has_relative_mse()) return;
  const std::string& name = verify.relative_mse().stage();
  const int line = VerifyPlaces(StageOf(task), StagePlaces(own))
                       .Nested("relative_mse")
                       .Line("stage");
  const int stage = FindStage(
      name, line, absl::StrCat(StageTitle(own), " has relative_mse to"));
  if (stage < 0) return;
  const int other = plan_.verify_task[stage];
  if (stage == own || other < 0 ||
      plan_.tasks[other].evaluation != plan_.tasks[task].evaluation) {
    Refuse(line, own,
           absl::StrCat(" has relative_mse to ", InQuotes(name),
                        ", which is not another stage that the same evaluation "
                        "verifies"));
    return;
  }
  Wait(task, stage);
}

void Planner::FillAfter(int index) {
  Task& task = plan_.tasks[index];
  std::set<int> after;
  for (const TaskInput& input : task.inputs) after.insert(input.task);
  if (task.stage >= 0 && !IsLeftOut(task.stage)) {
    const Stage& stage = workflow_.stage(task.stage);
    for (int i = 0; i < stage.after_size(); ++i) {
      const int other =
          FindStage(stage.after(i), StagePlaces(task.stage).Line("after", i),
                    absl::StrCat(StageTitle(task.stage), " is after"));
      if (other >= 0) Wait(index, other);
    }
  }
  for (const int stage : waits_for_[index]) {
    after.insert(plan_.make_task[stage]);
    after.insert(plan_.verify_task[stage]);
  }
  after.erase(-1);
  task.after.assign(after.begin(), after.end());
}

std::vector<int> Planner::PutInOrder() {
  const size_t count = plan_.tasks.size();
  std::vector<std::vector<int>> waiting(count);
  std::vector<size_t> missing(count);
  std::set<std::tuple<int, int, int>> ready;
  for (size_t i = 0; i < count; ++i) {
    missing[i] = plan_.tasks[i].after.size();
    if (missing[i] == 0) ready.insert(positions_[i]);
    for (const int other : plan_.tasks[i].after) {
      waiting[other].push_back(static_cast<int>(i));
    }
  }
  std::vector<int> order;
  std::vector<bool> waits(count, true);
  while (!ready.empty()) {
    const int task = std::get<2>(*ready.begin());
    ready.erase(ready.begin());
    waits[task] = false;
    order.push_back(task);
    for (const int other : waiting[task]) {
      if (--missing[other] == 0) ready.insert(positions_[other]);
    }
  }
  if (order.size() < count) return FindCycle(waits);
  Renumber(order);
  return {};
}

// Returns a cycle among the tasks that `waits` marks, each of which must wait
// for another of them.
std::vector<int> Planner::FindCycle(const std::vector<bool>& waits) const {
  int task = -1;
  for (size_t i = 0; i < waits.size(); ++i) {
    if (waits[i] && (task < 0 || positions_[i] < positions_[task])) {
      task = static_cast<int>(i);
    }
  }
  std::vector<int> path;
  std::vector<int>::iterator start = path.end();
  while (start == path.end()) {
    path.push_back(task);
    const std::vector<int>& after = plan_.tasks[task].after;
    task = *std::find_if(after.begin(), after.end(),
                         [&](int other) { return waits[other]; });
    start = std::find(path.begin(), path.end(), task);
  }
  path.erase(path.begin(), start);
  // It starts at the first task, so that a cycle is always reported alike.
  std::rotate(path.begin(),
              std::min_element(
                  path.begin(), path.end(),
                  [&](int a, int b) { return positions_[a] < positions_[b]; }),
              path.end());
  return path;
}

void Planner::Renumber(const std::vector<int>& order) {
  std::vector<int> renamed(order.size());
  std::vector<Task> tasks;
  int baselines = 0;
  for (const int task : order) {
    renamed[task] = static_cast<int>(tasks.size());
    tasks.push_back(plan_.tasks[task]);
    if (tasks.back().kind == Task::Kind::kBaseline) {
      tasks.back().baseline = baselines++;
    }
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
}

void Planner::ReportCycle(const std::vector<int>& cycle) {
  std::vector<std::string> names;
  int line = 0;
  for (const int task : cycle) {
    const int stage = plan_.tasks[task].stage;
    const std::string name =
        stage < 0 ? plan_.tasks[task].name : workflow_.stage(stage).name();
    if (!names.empty() && names.back() == name) continue;
    names.push_back(name);
    if (line == 0 && stage >= 0) line = StagePlaces(stage).line();
  }
  if (names.size() == 1 || names.front() != names.back()) {
    names.push_back(names.front());
  }
  problems_.Add(line, absl::StrCat("stages wait for each other: ",
                                   absl::StrJoin(names, " -> ")));
}

void Planner::CheckLayerGates(const Task& task) {
  const std::string gate = UselessLayerGate(plan_, task);
  if (gate.empty()) return;
  Refuse(StagePlaces(task.stage).line(), task.stage,
         absl::StrCat(" is held to ", gate,
                      ", and its layers are not compared: set layer_records in "
                      "its evaluation, with a baseline stage that reads the "
                      "same records, or take the gate away (",
                      gate, ": -1)"));
}

absl::StatusOr<Plan> Planner::Make() {
  CheckWorkflow();
  for (int i = 0; i < workflow_.stage_size(); ++i) AddTasks(i);
  // This loop adds tasks of baselines.
  for (int i = 0; i < static_cast<int>(plan_.tasks.size()); ++i) {
    const Task::Kind kind = plan_.tasks[i].kind;
    if (kind == Task::Kind::kMake) FillMakeTask(i);
    if (kind == Task::Kind::kVerify) FillVerifyTask(i);
  }
  CheckOutputNames();
  for (size_t i = 0; i < plan_.tasks.size(); ++i) {
    FillAfter(static_cast<int>(i));
  }
  const std::vector<int> cycle = PutInOrder();
  if (!cycle.empty()) ReportCycle(cycle);
  for (const Task& task : plan_.tasks) CheckLayerGates(task);
  REQUANT_RETURN_IF_ERROR(problems_.status());
  return std::move(plan_);
}

}  // namespace requant
