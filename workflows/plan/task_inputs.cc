#include "workflows/plan/task_inputs.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/saved_model/saved_model_folder.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/datasets/dataset_spec.h"
#include "runtime/datasets/formats/source_format.h"
#include "workflows/language/stage_parts.h"

namespace requant {
namespace {

namespace fs = std::filesystem;

bool Exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// The output of stage `source` that `input` means; "" after telling that there
// is none.
std::string ChooseOutput(const StageInput& input, int source, int reading_stage,
                         PlanDraft* draft) {
  const Stage& stage = draft->workflow().stage(source);
  std::vector<std::string> roles;
  if (draft->IsGiven(source)) {
    roles = {"graph"};
  } else if (draft->plan()->make_task[source] >= 0) {
    for (const TaskOutput& output :
         draft->task(draft->plan()->make_task[source]).outputs) {
      // A benchmark's figures are for the report alone.
      if (output.role != "result") roles.push_back(output.role);
    }
  }
  const auto has = [&](const std::string& role) {
    return std::find(roles.begin(), roles.end(), role) != roles.end();
  };
  std::vector<std::string> quoted;
  for (const std::string& role : roles) quoted.push_back(InQuotes(role));
  const std::string makes =
      roles.empty() ? " makes nothing that can be read"
                    : absl::StrCat(" makes ", absl::StrJoin(quoted, ", "));
  const std::string& wanted = input.input->output();
  if (!wanted.empty()) {
    if (has(wanted)) return wanted;
    draft->Refuse(input.places.Line("output"), reading_stage,
                  absl::StrCat(" reads ", InQuotes(wanted), " of ",
                               InQuotes(stage.name()), ", which", makes));
    return "";
  }
  for (const std::string& role : input.fitting) {
    if (has(role)) return role;
  }
  // A transform's file that is called like an output is that output.
  if (input.fitting.empty() && has(input.role)) return input.role;
  if (input.fitting.empty() && roles.size() == 1) return roles[0];
  const std::string line_end =
      input.fitting.empty() && roles.size() > 1
          ? absl::StrCat(makes, ": say which by output")
          : absl::StrCat(makes, input.fitting.empty()
                                    ? ""
                                    : absl::StrCat(", but no ", input.role));
  draft->Refuse(
      input.places.Line("stage"), reading_stage,
      absl::StrCat(" reads ", InQuotes(stage.name()), ", which", line_end));
  return "";
}

void ResolveStage(const StageInput& input, int task, PlanDraft* draft) {
  const int reader = draft->task(task).stage;
  const int source =
      draft->FindStage(input.input->stage(), input.places.Line("stage"),
                       absl::StrCat(draft->StageTitle(reader), " reads"));
  if (source < 0) return;
  if (draft->IsLeftOut(source)) {
    draft->Refuse(
        input.places.Line("stage"), reader,
        absl::StrCat(" reads ", InQuotes(input.input->stage()),
                     ", which is left out because variable ",
                     InQuotes(draft->plan()->left_out_by[source]), " is set"));
    return;
  }
  const std::string output = ChooseOutput(input, source, reader, draft);
  if (output.empty()) return;
  TaskInput resolved = draft->GraphOf(source, input.role);
  if (resolved.task >= 0) resolved.output = output;
  draft->task(task).inputs.push_back(resolved);
  draft->Wait(task, source);
}

void ResolveFile(const StageInput& input, int task, PlanDraft* draft) {
  const int reader = draft->task(task).stage;
  const std::string& path = input.input->file();
  const int line = input.places.Line("file");
  TaskInput resolved;
  resolved.role = input.role;
  resolved.path = path;
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
    draft->Refuse(line, reader,
                  absl::StrCat(": its ", input.role, ": ", problem));
  }
  draft->task(task).inputs.push_back(resolved);
}

void Resolve(const StageInput& input, int task, PlanDraft* draft) {
  switch (input.input->from_case()) {
    case Input::kStage:
      return ResolveStage(input, task, draft);
    case Input::kFile:
      return ResolveFile(input, task, draft);
    default:
      draft->Refuse(input.places.line(), draft->task(task).stage,
                    absl::StrCat(" needs ", input.role,
                                 ": { stage: \"...\" } or { file: \"...\" }"));
  }
}

void AddDeclaration(const Records& records, const FieldPlaces& places, int task,
                    PlanDraft* draft) {
  if (records.dataset().empty()) return;
  TaskInput dataset;
  dataset.role = "dataset";
  dataset.path = records.dataset();
  draft->task(task).inputs.push_back(dataset);
  absl::StatusOr<DatasetSpec> spec;
  switch (records.data().from_case()) {
    case Input::kStage:
      spec = ReadDatasetDeclaration(records.dataset());
      break;
    case Input::kFile:
      spec = ReadDatasetSpec(records.dataset(),
                             absl::StrSplit(records.data().file(), ','));
      break;
    default:
      spec = ReadDatasetSpec(records.dataset());
      if (!spec.ok()) break;
      TaskInput declared;
      declared.role = "declared_data";
      declared.path = absl::StrJoin(FilesOf(*spec), ",");
      draft->task(task).inputs.push_back(declared);
  }
  if (!spec.ok()) {
    draft->problems()->Add(places.Line("dataset"), spec.status().message());
  }
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

void AddStageInputs(int task, PlanDraft* draft) {
  const int stage = draft->task(task).stage;
  for (const StageInput& input :
       InputsOf(draft->workflow().stage(stage), draft->StagePlaces(stage))) {
    Resolve(input, task, draft);
  }
}

void AddStagePaths(int task, PlanDraft* draft) {
  const int stage = draft->task(task).stage;
  for (const auto& [role, path] : PathsOf(draft->workflow().stage(stage))) {
    TaskInput input;
    input.role = role;
    input.path = path;
    draft->task(task).inputs.push_back(input);
    const std::string file =
        role == "checkpoint" ? absl::StrCat(path, ".index") : path;
    if (!path.empty() && !Exists(file)) {
      draft->Refuse(draft->StagePlaces(stage).line(), stage,
                    absl::StrCat(": its ", role, ": there is no ", file));
    }
  }
}

void AddRecords(const Records& records, const FieldPlaces& places,
                const std::string& whose, int task, PlanDraft* draft) {
  AddDeclaration(records, places, task, draft);
  if (!records.has_data()) return;
  const StageInput data = {
      "data", &records.data(), places.Nested("data"), {"data"}};
  // Files were looked for with the declaration.
  if (records.data().from_case() == Input::kFile) {
    TaskInput input;
    input.role = "data";
    input.path = records.data().file();
    draft->task(task).inputs.push_back(input);
  } else if (records.data().from_case() == Input::kStage) {
    ResolveStage(data, task, draft);
  } else {
    draft->problems()->Add(
        places.Line("data"),
        absl::StrCat(whose,
                     ": data needs { stage: \"...\" } or { file: "
                     "\"...\" }"));
  }
}

}  // namespace requant
