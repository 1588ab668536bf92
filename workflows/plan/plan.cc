#include "workflows/plan/plan.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/message/text_proto.h"
#include "base/status_macros.h"
#include "base/text/nearest_name.h"
#include "workflows/language/stage_parts.h"
#include "workflows/language/workflow_checks.h"
#include "workflows/language/workflow_file.h"
#include "workflows/plan/effective_gates.h"
#include "workflows/plan/plan_draft.h"
#include "workflows/plan/task_baselines.h"
#include "workflows/plan/task_inputs.h"

namespace requant {
namespace {

class Planner {
 public:
  explicit Planner(const WorkflowFile& file)
      : draft_(file), baselines_(&draft_) {}

  absl::StatusOr<Plan> Make();

 private:
  void CheckWorkflow();
  void CheckEvaluation(int index);
  void CheckGivenGraph(int stage);
  void CheckLayerGates(const Task& task);
  void CheckVerify(int stage, const Verify& verify, const FieldPlaces& places);
  void AddTasks(int stage);
  void CheckOutputNames();
  // `makers`: by file, the stage that makes it.
  void CheckNamesOfEvaluations(
      const std::map<std::string, std::string>& makers);
  void FillMakeTask(int task);
  void FillVerifyTask(int task);
  void WaitForReference(int task);
  void FillCompareTask(int task);
  void FillAfter(int task);
  void TellCycle(const std::vector<int>& cycle);

  PlanDraft draft_;
  TaskBaselines baselines_;
};

void Planner::CheckEvaluation(int index) {
  const Evaluation& evaluation = draft_.workflow().evaluation(index);
  const FieldPlaces places = draft_.EvaluationPlaces(index);
  const CheckContext context = {draft_.EvaluationTitle(index),
                                draft_.problems()};
  CheckRecords(evaluation.on(), places.Nested("on"), context);
  CheckGates(evaluation.gates(), places.Nested("gates"), context);
  CheckCount(evaluation.layer_records(), places, "layer_records", context);
  CheckCount(evaluation.baseline().records(), places.Nested("baseline"),
             "records", context);
}

void Planner::CheckVerify(int stage, const Verify& verify,
                          const FieldPlaces& places) {
  const CheckContext context = draft_.StageContext(stage);
  CheckGates(verify.gates(), places.Nested("gates"), context);
  CheckCount(verify.baseline().records(), places.Nested("baseline"), "records",
             context);
  if (verify.has_expect()) {
    CheckExpect(verify.expect(), places.Nested("expect"), context);
  }
  if (verify.has_relative_mse()) {
    CheckRelativeMse(verify.relative_mse(), places.Nested("relative_mse"),
                     context);
  }
  std::vector<std::string> names;
  for (const std::string& name : draft_.EvaluationNames()) {
    names.push_back(InQuotes(name));
  }
  const std::string all =
      names.empty() ? "; the workflow has none"
                    : absl::StrCat("; there are ", absl::StrJoin(names, ", "));
  if (verify.evaluation().empty()) {
    draft_.Refuse(places.line(), stage,
                  absl::StrCat(": verify names no evaluation", all));
    return;
  }
  const int evaluation = draft_.FindEvaluation(verify.evaluation());
  if (evaluation < 0) {
    const std::string suggestion =
        SuggestName(verify.evaluation(), draft_.EvaluationNames());
    draft_.Refuse(
        places.Line("evaluation"), stage,
        absl::StrCat(" is verified by ", InQuotes(verify.evaluation()),
                     ": no such evaluation",
                     suggestion.empty() ? all : suggestion));
  }
}

void Planner::CheckGivenGraph(int stage) {
  const std::string problem =
      GraphPathProblem(draft_.plan()->given_graph[stage]);
  if (problem.empty()) return;
  draft_.Refuse(draft_.StagePlaces(stage).Line("use_file"), stage,
                absl::StrCat(": use_file: ", problem));
}

// Evaluations that nothing uses may lack their variables' values.
void Planner::CheckWorkflow() {
  const std::string problem = WorkflowNameProblem(draft_.workflow().name());
  if (!problem.empty()) {
    draft_.problems()->Add(draft_.places().Line("name"), problem);
  }
  CheckGates(draft_.workflow().gates(), draft_.places().Nested("gates"),
             {"the workflow", draft_.problems()});
  std::set<int> used;
  for (int i = 0; i < draft_.workflow().stage_size(); ++i) {
    if (draft_.IsLeftOut(i)) continue;
    const Stage& stage = draft_.workflow().stage(i);
    CheckStage(stage, draft_.StagePlaces(i), draft_.StageContext(i));
    if (draft_.IsGiven(i)) CheckGivenGraph(i);
    const Verify* const verify = VerifyOf(stage);
    if (verify == nullptr) continue;
    CheckVerify(i, *verify, VerifyPlaces(stage, draft_.StagePlaces(i)));
    const int evaluation = draft_.FindEvaluation(verify->evaluation());
    if (evaluation >= 0) used.insert(evaluation);
  }
  for (const int evaluation : used) CheckEvaluation(evaluation);
}

void Planner::AddTasks(int index) {
  draft_.plan()->make_task.push_back(-1);
  draft_.plan()->verify_task.push_back(-1);
  const Stage& stage = draft_.workflow().stage(index);
  if (draft_.IsLeftOut(index) || StageKind(stage).empty()) return;
  const std::vector<StageOutput> outputs =
      OutputsOf(stage, draft_.StagePlaces(index));
  if (!outputs.empty() && !draft_.IsGiven(index)) {
    draft_.plan()->make_task[index] =
        draft_.AddTask(Task::Kind::kMake, index, stage.name());
    for (const StageOutput& output : outputs) {
      draft_.plan()->tasks.back().outputs.push_back({output.role, output.file});
    }
  }
  if (VerifyOf(stage) == nullptr && !stage.has_compare()) return;
  draft_.plan()->verify_task[index] = draft_.AddTask(
      Task::Kind::kVerify, index, absl::StrCat(stage.name(), "/verify"));
  draft_.plan()->tasks.back().outputs = {
      {"predictions", absl::StrCat(stage.name(), ".predictions")},
      {"result", absl::StrCat(stage.name(), ".evaluation.pb")}};
  if (const Verify* verify = VerifyOf(stage)) {
    draft_.plan()->tasks.back().evaluation =
        draft_.FindEvaluation(verify->evaluation());
  }
}

void Planner::CheckOutputNames() {
  std::map<std::string, std::string> makers;
  for (int i = 0; i < draft_.workflow().stage_size(); ++i) {
    if (draft_.plan()->make_task[i] < 0) continue;
    const Stage& stage = draft_.workflow().stage(i);
    for (const StageOutput& output : OutputsOf(stage, draft_.StagePlaces(i))) {
      const std::string problem = OutputNameProblem(output.file);
      if (!problem.empty()) {
        draft_.Refuse(output.line, i, absl::StrCat(": ", problem));
      }
      const auto [maker, is_new] = makers.emplace(output.file, stage.name());
      if (is_new) continue;
      draft_.Refuse(
          output.line, i,
          maker->second == stage.name()
              ? absl::StrCat(" writes ", InQuotes(output.file), " twice")
              : absl::StrCat(" writes ", InQuotes(output.file), ", as stage ",
                             InQuotes(maker->second), " does"));
    }
  }
  CheckNamesOfEvaluations(makers);
}

void Planner::CheckNamesOfEvaluations(
    const std::map<std::string, std::string>& makers) {
  // By file: the stage that writes it, and the task.
  std::map<std::string, std::pair<int, std::string>> writers;
  for (const auto& [file, stage] : makers) {
    writers[file] = {draft_.StageNamed(stage), stage};
  }
  for (const Task& task : draft_.plan()->tasks) {
    if (task.kind == Task::Kind::kMake) continue;
    for (const TaskOutput& output : task.outputs) {
      const auto [writer, is_new] =
          writers.emplace(output.file, std::make_pair(task.stage, task.name));
      if (is_new) continue;
      // A baseline's task has no stage of its own; what it meets has one.
      const auto& [stage, other] = writer->second;
      const int told = stage >= 0 ? stage : task.stage;
      draft_.Refuse(
          draft_.StagePlaces(told).line(), told,
          absl::StrCat(" writes ", InQuotes(output.file), ", as ",
                       InQuotes(stage >= 0 ? task.name : other), " does"));
    }
  }
}

void Planner::FillMakeTask(int task) {
  const int index = draft_.task(task).stage;
  const Stage& stage = draft_.workflow().stage(index);
  AddStageInputs(task, &draft_);
  AddStagePaths(task, &draft_);
  if (const Records* records = RecordsOf(stage)) {
    const FieldPlaces places = RecordsPlaces(stage, draft_.StagePlaces(index));
    CheckRecords(*records, places, draft_.StageContext(index));
    AddRecords(*records, places, draft_.StageTitle(index), task, &draft_);
  }
}

void Planner::FillCompareTask(int task) {
  const int index = draft_.task(task).stage;
  const Stage& stage = draft_.workflow().stage(index);
  AddStageInputs(task, &draft_);
  const FieldPlaces places = RecordsPlaces(stage, draft_.StagePlaces(index));
  CheckRecords(stage.compare().on(), places, draft_.StageContext(index));
  AddRecords(stage.compare().on(), places, draft_.StageTitle(index), task,
             &draft_);
}

void Planner::FillVerifyTask(int task) {
  const int index = draft_.task(task).stage;
  const Stage& stage = draft_.workflow().stage(index);
  if (stage.has_compare()) return FillCompareTask(task);
  if (stage.has_evaluate()) {
    AddStageInputs(task, &draft_);
  } else {
    draft_.task(task).inputs.push_back(draft_.GraphOf(index, "graph"));
  }
  const int evaluation = draft_.task(task).evaluation;
  if (evaluation < 0) return;
  const FieldPlaces places = draft_.EvaluationPlaces(evaluation);
  AddRecords(draft_.workflow().evaluation(evaluation).on(), places.Nested("on"),
             draft_.EvaluationTitle(evaluation), task, &draft_);
  baselines_.Add(task);
  WaitForReference(task);
}

// A verification that is judged by another stage's needs its result.
void Planner::WaitForReference(int task) {
  const int own = draft_.task(task).stage;
  const Verify& verify = *VerifyOf(draft_.workflow().stage(own));
  if (!verify.has_relative_mse()) return;
  const FieldPlaces places =
      VerifyPlaces(draft_.workflow().stage(own), draft_.StagePlaces(own))
          .Nested("relative_mse");
  const std::string& name = verify.relative_mse().stage();
  const int line = places.Line("stage");
  const int stage = draft_.FindStage(
      name, line, absl::StrCat(draft_.StageTitle(own), " has relative_mse to"));
  if (stage < 0) return;
  const int other = draft_.plan()->verify_task[stage];
  if (stage == own || other < 0 ||
      draft_.task(other).evaluation != draft_.task(task).evaluation) {
    draft_.Refuse(
        line, own,
        absl::StrCat(" has relative_mse to ", InQuotes(name),
                     ", which is not another stage that the same evaluation "
                     "verifies"));
    return;
  }
  draft_.Wait(task, stage);
}

void Planner::FillAfter(int index) {
  Task& task = draft_.task(index);
  std::set<int> after;
  for (const TaskInput& input : task.inputs) {
    if (input.task >= 0) after.insert(input.task);
  }
  if (task.stage >= 0 && !draft_.IsLeftOut(task.stage)) {
    const Stage& stage = draft_.workflow().stage(task.stage);
    const FieldPlaces places = draft_.StagePlaces(task.stage);
    for (int i = 0; i < stage.after_size(); ++i) {
      const int other = draft_.FindStage(
          stage.after(i), places.Line("after", i),
          absl::StrCat(draft_.StageTitle(task.stage), " is after"));
      if (other >= 0) draft_.Wait(index, other);
    }
  }
  for (const int stage : draft_.waits_for(index)) {
    after.insert(draft_.plan()->make_task[stage]);
    after.insert(draft_.plan()->verify_task[stage]);
  }
  after.erase(-1);
  task.after.assign(after.begin(), after.end());
}

void Planner::TellCycle(const std::vector<int>& cycle) {
  std::vector<std::string> names;
  int line = 0;
  for (const int task : cycle) {
    const int stage = draft_.task(task).stage;
    const std::string name = stage < 0 ? draft_.task(task).name
                                       : draft_.workflow().stage(stage).name();
    if (!names.empty() && names.back() == name) continue;
    names.push_back(name);
    if (line == 0 && stage >= 0) line = draft_.StagePlaces(stage).line();
  }
  if (names.size() == 1 || names.front() != names.back()) {
    names.push_back(names.front());
  }
  draft_.problems()->Add(line, absl::StrCat("stages wait for each other: ",
                                            absl::StrJoin(names, " -> ")));
}

void Planner::CheckLayerGates(const Task& task) {
  const std::string gate = UselessLayerGate(*draft_.plan(), task);
  if (gate.empty()) return;
  draft_.Refuse(
      draft_.StagePlaces(task.stage).line(), task.stage,
      absl::StrCat(" is held to ", gate,
                   ", and its layers are not compared: set layer_records in "
                   "its evaluation, with a baseline stage that reads the "
                   "same records, or take the gate away (",
                   gate, ": -1)"));
}

absl::StatusOr<Plan> Planner::Make() {
  CheckWorkflow();
  for (int i = 0; i < draft_.workflow().stage_size(); ++i) AddTasks(i);
  // Tasks of baselines are added on the way.
  for (size_t i = 0; i < draft_.plan()->tasks.size(); ++i) {
    const Task::Kind kind = draft_.task(static_cast<int>(i)).kind;
    if (kind == Task::Kind::kMake) FillMakeTask(static_cast<int>(i));
    if (kind == Task::Kind::kVerify) FillVerifyTask(static_cast<int>(i));
  }
  CheckOutputNames();
  for (size_t i = 0; i < draft_.plan()->tasks.size(); ++i) {
    FillAfter(static_cast<int>(i));
  }
  const std::vector<int> cycle = draft_.PutInOrder();
  if (!cycle.empty()) TellCycle(cycle);
  for (const Task& task : draft_.plan()->tasks) CheckLayerGates(task);
  REQUANT_RETURN_IF_ERROR(draft_.problems()->status());
  return std::move(*draft_.plan());
}

}  // namespace

absl::StatusOr<Plan> MakePlan(const WorkflowFile& file) {
  return Planner(file).Make();
}

}  // namespace requant
