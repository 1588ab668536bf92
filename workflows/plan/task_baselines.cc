#include "workflows/plan/task_baselines.h"

#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "workflows/language/stage_parts.h"
#include "workflows/plan/task_inputs.h"

namespace requant {

TaskBaselines::Chosen TaskBaselines::Choose(int task) const {
  const int stage = draft_->task(task).stage;
  const Verify& verify = *VerifyOf(draft_->workflow().stage(stage));
  const FieldPlaces places =
      VerifyPlaces(draft_->workflow().stage(stage), draft_->StagePlaces(stage));
  if (verify.has_baseline()) {
    return {&verify.baseline(), places.Nested("baseline"), false};
  }
  const int evaluation = draft_->task(task).evaluation;
  return {&draft_->workflow().evaluation(evaluation).baseline(),
          draft_->EvaluationPlaces(evaluation).Nested("baseline"), true};
}

void TaskBaselines::Add(int task) {
  const Chosen chosen = Choose(task);
  switch (chosen.baseline->from_case()) {
    case Baseline::kStage:
      return AddStage(chosen, task);
    case Baseline::kFile:
      return AddFile(chosen, task);
    default:
      return;
  }
}

// Whether the stage's verification feeds its graph as this task's does.
bool TaskBaselines::SameRecords(int stage, int task) const {
  const int other = draft_->task(draft_->plan()->verify_task[stage]).evaluation;
  const int own = draft_->task(task).evaluation;
  return other >= 0 && draft_->workflow().evaluation(other).on().dataset() ==
                           draft_->workflow().evaluation(own).on().dataset();
}

void TaskBaselines::AddStage(const Chosen& chosen, int task) {
  const int own = draft_->task(task).stage;
  const std::string& name = chosen.baseline->stage();
  const int line = chosen.places.Line("stage");
  const int stage = draft_->FindStage(
      name, line,
      chosen.is_evaluations
          ? absl::StrCat(draft_->EvaluationTitle(draft_->task(task).evaluation),
                         " has the baseline")
          : absl::StrCat(draft_->StageTitle(own), " has the baseline"));
  if (stage < 0) return;
  if (stage == own) {
    // The baseline of all others has none.
    if (!chosen.is_evaluations) {
      draft_->Refuse(line, own, " is its own baseline");
    }
    return;
  }
  if (draft_->IsLeftOut(stage)) {
    draft_->task(task).notes.push_back(
        absl::StrCat("no baseline: stage ", InQuotes(name), " is left out"));
    return;
  }
  const int verify = draft_->plan()->verify_task[stage];
  if (verify < 0 || draft_->workflow().stage(stage).has_compare()) {
    draft_->Refuse(line, own,
                   absl::StrCat(" has the baseline ", InQuotes(name),
                                ", which is not verified: add verify to "
                                "it"));
    return;
  }
  TaskInput predictions;
  predictions.role = "baseline_predictions";
  predictions.task = verify;
  predictions.output = "predictions";
  draft_->task(task).inputs.push_back(predictions);
  draft_->Wait(task, stage);
  const Evaluation& evaluation =
      draft_->workflow().evaluation(draft_->task(task).evaluation);
  if (evaluation.layer_records().empty()) return;
  const bool only_evaluates = draft_->workflow().stage(stage).has_evaluate();
  if (only_evaluates || !SameRecords(stage, task)) {
    draft_->task(task).notes.push_back(absl::StrCat(
        "layers are not compared: stage ", InQuotes(name),
        only_evaluates ? " makes no graph"
                       : " makes a graph that takes other inputs"));
    return;
  }
  draft_->task(task).inputs.push_back(draft_->GraphOf(stage, "baseline"));
}

int TaskBaselines::TaskOf(int evaluation, const Baseline& baseline,
                          int first_reader) {
  const auto key =
      std::make_tuple(evaluation, baseline.file(), baseline.records());
  const auto found = tasks_.find(key);
  if (found != tasks_.end()) return found->second;
  int count = 1;
  for (const auto& [other, unused] : tasks_) {
    if (std::get<0>(other) == evaluation) ++count;
  }
  const Evaluation& message = draft_->workflow().evaluation(evaluation);
  const std::string word =
      count == 1 ? "baseline" : absl::StrCat("baseline_", count);
  const int task = draft_->AddTask(Task::Kind::kBaseline, first_reader,
                                   absl::StrCat(message.name(), "/", word));
  tasks_[key] = task;
  Task& added = draft_->task(task);
  added.evaluation = evaluation;
  added.baseline_records = baseline.records();
  const std::string file = absl::StrCat(message.name(), ".", word);
  added.outputs = {{"predictions", absl::StrCat(file, ".predictions")},
                   {"result", absl::StrCat(file, ".evaluation.pb")}};
  TaskInput graph;
  graph.role = "graph";
  graph.path = baseline.file();
  added.inputs = {graph};
  return task;
}

void TaskBaselines::AddFile(const Chosen& chosen, int task) {
  const int own = draft_->task(task).stage;
  const int evaluation = draft_->task(task).evaluation;
  const std::string problem = GraphPathProblem(chosen.baseline->file());
  if (!problem.empty()) {
    draft_->problems()->Add(chosen.places.Line("file"),
                            absl::StrCat("the baseline: ", problem));
    return;
  }
  const int baseline = TaskOf(evaluation, *chosen.baseline, own);
  if (draft_->task(baseline).inputs.size() == 1) {
    // Of the same records as the first task that is compared with it.
    for (const TaskInput& input : draft_->task(task).inputs) {
      if (input.role != "dataset" && input.role != "data" &&
          input.role != "declared_data") {
        continue;
      }
      draft_->task(baseline).inputs.push_back(input);
      if (input.task >= 0) {
        draft_->Wait(baseline, draft_->task(input.task).stage);
      }
    }
  }
  TaskInput predictions;
  predictions.role = "baseline_predictions";
  predictions.task = baseline;
  predictions.output = "predictions";
  draft_->task(task).inputs.push_back(predictions);
  if (draft_->workflow().evaluation(evaluation).layer_records().empty()) return;
  TaskInput graph;
  graph.role = "baseline";
  graph.path = chosen.baseline->file();
  draft_->task(task).inputs.push_back(graph);
}

}  // namespace requant
