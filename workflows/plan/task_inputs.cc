// Finds what the tasks of a plan read: the task that makes it, or its path.

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/files/files.h"
#include "graph/saved_model/saved_model_file.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/datasets/dataset_spec.h"
#include "runtime/datasets/formats/source_format.h"
#include "workflows/plan/planner.h"

namespace requant {
namespace {

namespace fs = std::filesystem;

bool Exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// Returns whether the path names or matches files.
bool MatchesFiles(const std::string& path) {
  const std::vector<std::string> files = MatchingFiles(path);
  return std::any_of(files.begin(), files.end(), [](const std::string& file) {
    std::error_code error;
    return fs::is_regular_file(file, error);
  });
}

}  // namespace

std::string GraphPathProblem(const std::string& path) {
  std::error_code error;
  if (path.empty()) return "its path is empty";
  if (!Exists(path)) return absl::StrCat("there is no ", path);
  if (fs::is_directory(path, error) && !Exists(path + "/saved_model.pb") &&
      !Exists(path + "/saved_model.pbtxt")) {
    const absl::StatusOr<std::string> below = FindSavedModel(path);
    return absl::StrCat(
        path, " is a folder without saved_model.pb, so no SavedModel",
        below.ok() ? absl::StrCat("; ", *below, " is one") : "");
  }
  return "";
}

TaskInput Planner::GraphOf(int stage, const std::string& role) const {
  if (IsGiven(stage)) return {role, -1, "", plan_.given_graph[stage]};
  return {role, plan_.make_task[stage], "graph", ""};
}

std::string Planner::ChooseOutput(const StageInput& input, int source,
                                  int reader) {
  const std::string& name = workflow_.stage(source).name();
  std::vector<std::string> roles, quoted;
  if (IsGiven(source)) {
    roles = {"graph"};
  } else if (plan_.make_task[source] >= 0) {
    for (const TaskOutput& output :
         plan_.tasks[plan_.make_task[source]].outputs) {
      // A benchmark's figures are for the report alone.
      if (output.role != "result") roles.push_back(output.role);
    }
  }
  const auto has = [&](const std::string& role) {
    return std::find(roles.begin(), roles.end(), role) != roles.end();
  };
  for (const std::string& role : roles) quoted.push_back(InQuotes(role));
  const std::string makes =
      roles.empty() ? " makes nothing that can be read"
                    : absl::StrCat(" makes ", absl::StrJoin(quoted, ", "));
  const std::string& wanted = input.input->output();
  if (!wanted.empty()) {
    if (has(wanted)) return wanted;
    Refuse(input.places.Line("output"), reader,
           absl::StrCat(" reads ", InQuotes(wanted), " of ", InQuotes(name),
                        ", which", makes));
    return "";
  }
  for (const std::string& role : input.fitting) {
    if (has(role)) return role;
  }
  // A transform's file whose name is that of an output is that output.
  const bool any_fits = input.fitting.empty();
  if (any_fits && has(input.role)) return input.role;
  if (any_fits && roles.size() == 1) return roles[0];
  Refuse(input.places.Line("stage"), reader,
         absl::StrCat(" reads ", InQuotes(name), ", which", makes,
                      !any_fits       ? absl::StrCat(", but no ", input.role)
                      : roles.empty() ? ""
                                      : ": say which by output"));
  return "";
}

void Planner::ResolveStage(const StageInput& input, int task) {
  const int reader = plan_.tasks[task].stage;
  const std::string& name = input.input->stage();
  const int line = input.places.Line("stage");
  const int source =
      FindStage(name, line, absl::StrCat(StageTitle(reader), " reads"));
  if (source < 0) return;
  if (IsLeftOut(source)) {
    Refuse(line, reader,
           absl::StrCat(" reads ", InQuotes(name),
                        ", which is left out because variable ",
                        InQuotes(plan_.left_out_by[source]), " is set"));
    return;
  }
  const std::string output = ChooseOutput(input, source, reader);
  if (output.empty()) return;
  TaskInput resolved = GraphOf(source, input.role);
  if (resolved.task >= 0) resolved.output = output;
  plan_.tasks[task].inputs.push_back(resolved);
  Wait(task, source);
}

void Planner::ResolveFile(const StageInput& input, int task) {
  const std::string& path = input.input->file();
  std::string problem;
  if (!input.fitting.empty() && input.fitting[0] == "graph") {
    problem = GraphPathProblem(path);
  } else if (path.empty()) {
    problem = "its path is empty";
  } else {
    for (const std::string_view part : absl::StrSplit(path, ',')) {
      const bool is_pattern =
          input.role == "data" && absl::StrContains(part, '*');
      if (!is_pattern && !Exists(std::string(part))) {
        problem = absl::StrCat("there is no ", part);
      }
    }
  }
  if (!problem.empty()) {
    Refuse(input.places.Line("file"), plan_.tasks[task].stage,
           absl::StrCat(": its ", input.role, ": ", problem));
  }
  plan_.tasks[task].inputs.push_back({input.role, -1, "", path});
}

void Planner::AddStageInputs(int task) {
  const int stage = plan_.tasks[task].stage;
  for (const StageInput& input : InputsOf(StageOf(task), StagePlaces(stage))) {
    if (input.input->has_stage()) {
      ResolveStage(input, task);
    } else if (input.input->has_file()) {
      ResolveFile(input, task);
    } else {
      Refuse(input.places.line(), stage,
             absl::StrCat(" needs ", input.role,
                          ": { stage: \"...\" } or { file: \"...\" }"));
    }
  }
}

void Planner::AddStagePaths(int task) {
  const int stage = plan_.tasks[task].stage;
  for (const auto& [role, path] : PathsOf(StageOf(task))) {
    plan_.tasks[task].inputs.push_back({role, -1, "", path});
    const bool is_checkpoint = role == "checkpoint";
    // A checkpoint in TensorFlow's first format has no index.
    if (is_checkpoint && MatchesFiles(path)) continue;
    const std::string file =
        is_checkpoint ? absl::StrCat(path, ".index") : path;
    if (!path.empty() && !Exists(file)) {
      Refuse(StagePlaces(stage).line(), stage,
             absl::StrCat(": its ", role, ": there is no ", file));
    }
  }
}

void Planner::AddDeclaration(const Records& records, const FieldPlaces& places,
                             int task) {
  if (records.dataset().empty()) return;
  std::vector<TaskInput>& inputs = plan_.tasks[task].inputs;
  inputs.push_back({"dataset", -1, "", records.dataset()});
  absl::StatusOr<DatasetSpec> spec;
  if (records.data().has_stage()) {
    spec = ReadDatasetDeclaration(records.dataset());
  } else if (records.data().has_file()) {
    spec = ReadDatasetSpec(records.dataset(),
                           absl::StrSplit(records.data().file(), ','));
  } else {
    spec = ReadDatasetSpec(records.dataset());
    if (spec.ok()) {
      inputs.push_back(
          {"declared_data", -1, "", absl::StrJoin(FilesOf(*spec), ",")});
    }
  }
  if (!spec.ok()) {
    const std::string problem(spec.status().message());
    if (declaration_problems_.insert(problem).second) {
      problems_.Add(places.Line("dataset"), problem);
    }
    return;
  }
  plan_.tasks[task].lacks_labels = !spec->has_label();
  if (!spec->label().vocabulary_file().empty()) {
    inputs.push_back({"vocabulary", -1, "", spec->label().vocabulary_file()});
  }
}

void Planner::AddRecords(const Records& records, const CheckedPart& part,
                         int task) {
  AddDeclaration(records, part.places, task);
  if (!records.has_data()) return;
  if (records.data().has_file()) {
    // AddDeclaration has checked that the files exist.
    plan_.tasks[task].inputs.push_back({"data", -1, "", records.data().file()});
  } else if (records.data().has_stage()) {
    ResolveStage(
        {"data", &records.data(), part.places.Nested("data"), {"data"}}, task);
  } else {
    part.Refuse("data", "data needs { stage: \"...\" } or { file: \"...\" }");
  }
}

void Planner::AddBaseline(int task) {
  const int stage = plan_.tasks[task].stage;
  const int evaluation = plan_.tasks[task].evaluation;
  const Verify& verify = *VerifyOf(StageOf(task));
  const bool own = verify.has_baseline();
  const FieldPlaces places =
      own ? VerifyPlaces(StageOf(task), StagePlaces(stage))
          : EvaluationPlaces(evaluation);
  const ChosenBaseline chosen = {
      own ? &verify.baseline() : &workflow_.evaluation(evaluation).baseline(),
      places.Nested("baseline"), !own};
  if (chosen.baseline->has_stage()) {
    AddBaselineStage(chosen, task);
  } else if (chosen.baseline->has_file()) {
    AddBaselineFile(chosen, task);
  }
}

void Planner::AddBaselineStage(const ChosenBaseline& chosen, int task) {
  Task& reader = plan_.tasks[task];
  const std::string& name = chosen.baseline->stage();
  const int line = chosen.places.Line("stage");
  const int stage = FindStage(
      name, line,
      absl::StrCat(chosen.is_evaluations ? EvaluationTitle(reader.evaluation)
                                         : StageTitle(reader.stage),
                   " has the baseline"));
  if (stage < 0) return;
  if (stage == reader.stage) {
    // The evaluation's own baseline stage is compared with nothing.
    if (!chosen.is_evaluations) Refuse(line, stage, " is its own baseline");
    return;
  }
  if (IsLeftOut(stage)) {
    reader.notes.push_back(
        absl::StrCat("no baseline: stage ", InQuotes(name), " is left out"));
    return;
  }
  const int verify = plan_.verify_task[stage];
  if (verify < 0 || workflow_.stage(stage).has_compare()) {
    Refuse(line, reader.stage,
           absl::StrCat(" has the baseline ", InQuotes(name),
                        ", which is not verified: add verify to it"));
    return;
  }
  reader.inputs.push_back({"baseline_predictions", verify, "predictions", ""});
  Wait(task, stage);
  const Evaluation& evaluation = workflow_.evaluation(reader.evaluation);
  if (evaluation.layer_records().empty()) return;
  const bool only_evaluates = workflow_.stage(stage).has_evaluate();
  // Layers are compared if the stage's verification feeds its graph likewise.
  const int other = plan_.tasks[verify].evaluation;
  if (only_evaluates || other < 0 ||
      workflow_.evaluation(other).on().dataset() != evaluation.on().dataset()) {
    reader.notes.push_back(absl::StrCat(
        "layers are not compared: stage ", InQuotes(name),
        only_evaluates ? " makes no graph"
                       : " makes a graph that takes other inputs"));
    return;
  }
  reader.inputs.push_back(GraphOf(stage, "baseline"));
}

int Planner::BaselineTask(int evaluation, const Baseline& baseline,
                          int first_reader) {
  const auto key =
      std::make_tuple(evaluation, baseline.file(), baseline.records());
  const auto found = baseline_tasks_.find(key);
  if (found != baseline_tasks_.end()) return found->second;
  int count = 1;
  for (const auto& [other, unused] : baseline_tasks_) {
    if (std::get<0>(other) == evaluation) ++count;
  }
  const std::string& name = workflow_.evaluation(evaluation).name();
  const std::string word =
      count == 1 ? "baseline" : absl::StrCat("baseline_", count);
  const int task =
      AddTask(Task::Kind::kBaseline, plan_.tasks[first_reader].stage,
              absl::StrCat(name, "/", word));
  baseline_tasks_[key] = task;
  Task& added = plan_.tasks[task];
  added.evaluation = evaluation;
  added.baseline_records = baseline.records();
  const std::string file = absl::StrCat(name, ".", word);
  added.outputs = {{"predictions", absl::StrCat(file, ".predictions")},
                   {"result", absl::StrCat(file, ".evaluation.pb")}};
  added.inputs = {{"graph", -1, "", baseline.file()}};
  // It takes the same records as the first task that is compared with it.
  for (const TaskInput& input : plan_.tasks[first_reader].inputs) {
    if (input.role != "dataset" && input.role != "data" &&
        input.role != "declared_data" && input.role != "vocabulary") {
      continue;
    }
    added.inputs.push_back(input);
    if (input.task >= 0) Wait(task, plan_.tasks[input.task].stage);
  }
  return task;
}

void Planner::AddBaselineFile(const ChosenBaseline& chosen, int task) {
  const std::string problem = GraphPathProblem(chosen.baseline->file());
  if (!problem.empty()) {
    problems_.Add(chosen.places.Line("file"),
                  absl::StrCat("the baseline: ", problem));
    return;
  }
  const int evaluation = plan_.tasks[task].evaluation;
  const int baseline = BaselineTask(evaluation, *chosen.baseline, task);
  std::vector<TaskInput>& inputs = plan_.tasks[task].inputs;
  inputs.push_back({"baseline_predictions", baseline, "predictions", ""});
  if (workflow_.evaluation(evaluation).layer_records().empty()) return;
  inputs.push_back({"baseline", -1, "", chosen.baseline->file()});
}

}  // namespace requant
