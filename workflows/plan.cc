#include "workflows/plan.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "graph/saved_model_folder.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/datasets/dataset_spec.h"
#include "workflows/field_places.h"
#include "workflows/stage_parts.h"
#include "workflows/task_order.h"
#include "workflows/workflow_checks.h"
#include "workflows/workflow_file.h"

namespace requant {
namespace {

namespace fs = std::filesystem;
using google::protobuf::FieldDescriptor;
using google::protobuf::Reflection;

// Of accuracy, in percentage points, as the published recipe has it.
constexpr double kDefaultMaxAccuracyDrop = 0.5;

std::string Quoted(std::string_view text) {
  return absl::StrCat("\"", text, "\"");
}

bool Exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// What is wrong with a graph that no stage makes; "" for nothing.
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

// The files that a declaration names, from the current folder.
std::string DeclaredFiles(const DatasetSpec& spec) {
  std::vector<std::string> files;
  const auto add = [&](const auto& names) {
    files.insert(files.end(), names.begin(), names.end());
  };
  add(spec.tfrecord().files());
  add(spec.csv().files());
  add(spec.numpy().files());
  add(spec.in_graph().files());
  // A map has no order of its own.
  std::set<std::string> arrays;
  for (const auto& [feature, file] : spec.numpy().arrays()) arrays.insert(file);
  add(arrays);
  return absl::StrJoin(files, ",");
}

const TaskInput* FindInput(const Task& task, std::string_view role) {
  for (const TaskInput& input : task.inputs) {
    if (input.role == role) return &input;
  }
  return nullptr;
}

// The first gate on layers that is set; "": none is.
std::string LayerGate(const Gates& gates) {
  const Reflection* const reflection = gates.GetReflection();
  for (int i = 0; i < Gates::descriptor()->field_count(); ++i) {
    const FieldDescriptor* const field = Gates::descriptor()->field(i);
    if (absl::StrContains(field->name(), "_layer_") &&
        reflection->HasField(gates, field) &&
        reflection->GetDouble(gates, field) >= 0) {
      return std::string(field->name());
    }
  }
  return "";
}

// What a verification is compared with, and where the file says so.
struct ChosenBaseline {
  const Baseline* baseline = nullptr;
  FieldPlaces places;
  bool is_evaluations = false;
};

class Planner {
 public:
  explicit Planner(const WorkflowFile& file)
      : workflow_(file.workflow), places_(file.places()), problems_(file.path) {
    plan_.file = file;
  }

  absl::StatusOr<Plan> Make();

 private:
  CheckContext Context(const Stage& stage) {
    return {absl::StrCat("stage ", Quoted(stage.name())), &problems_};
  }
  FieldPlaces StagePlaces(int stage) const {
    return places_.Nested("stage", stage);
  }
  bool IsLeftOut(int stage) const { return !plan_.left_out_by[stage].empty(); }
  bool IsGiven(int stage) const { return !plan_.given_graph[stage].empty(); }
  void Refuse(int line, int stage, std::string_view sentence) {
    problems_.Add(line,
                  absl::StrCat("stage ", Quoted(workflow_.stage(stage).name()),
                               sentence));
  }

  void NameEvaluations();
  void NameStages();
  void CheckWorkflow();
  void CheckEvaluation(int index);
  void CheckGivenGraph(int stage);
  void CheckLayerGates(const Task& task);
  void CheckVerify(int stage, const Verify& verify, const FieldPlaces& places);
  void AddTasks(int stage);
  int AddTask(Task::Kind kind, int stage, const std::string& name);
  void CheckOutputNames();
  // `makers`: by file, the stage that makes it.
  void CheckNamesOfEvaluations(
      const std::map<std::string, std::string>& makers);
  void FillMakeTask(int task);
  void FillVerifyTask(int task);
  void WaitForReference(int task);
  void FillCompareTask(int task);
  void FillAfter(int task);

  // -1 after telling that there is no such stage; `reader` starts the sentence.
  int FindStage(const std::string& name, int line, const std::string& reader);
  int FindEvaluation(const std::string& name) const;
  // Adds what `input` means to the task.
  void Resolve(const StageInput& input, int task);
  void ResolveStage(const StageInput& input, int task);
  void ResolveFile(const StageInput& input, int task);
  std::string ChooseOutput(const StageInput& input, int source,
                           int reading_stage);
  void AddPaths(int stage, int task);
  void AddRecords(const Records& records, const FieldPlaces& places,
                  const CheckContext& context, int task);
  void AddDeclaration(const Records& records, const FieldPlaces& places,
                      int task);
  // The stage's graph, for a task that reads it.
  TaskInput GraphOf(int stage, const std::string& role);

  ChosenBaseline ChooseBaseline(int task);
  void AddBaseline(int task);
  void AddBaselineStage(const ChosenBaseline& chosen, int task);
  void AddBaselineFile(const ChosenBaseline& chosen, int task);
  int BaselineTask(int evaluation, const Baseline& baseline, int first_reader);
  bool SameRecords(int stage, int task) const;

  void Wait(int task, int stage);
  void TellCycle(const std::vector<int>& cycle);
  void PutInOrder();

  const Workflow& workflow_;
  const FieldPlaces places_;
  FileProblems problems_;
  Plan plan_;
  std::map<std::string, int> stages_;
  std::map<std::string, int> evaluations_;
  // By task: where it stands in the file, before the order is known.
  std::vector<std::tuple<int, int>> positions_;
  // By task: stages whose tasks it waits for.
  std::vector<std::set<int>> waits_for_;
  // By evaluation, file and records.
  std::map<std::tuple<int, std::string, std::string>, int> baseline_tasks_;
};

void Planner::NameEvaluations() {
  for (int i = 0; i < workflow_.evaluation_size(); ++i) {
    const std::string& name = workflow_.evaluation(i).name();
    const int line = places_.Nested("evaluation", i).Line("name");
    if (!IsPlainName(name)) {
      problems_.Add(line, absl::StrCat(Quoted(name),
                                       " is no name of an evaluation: letters, "
                                       "digits, \"_\", \"-\" and \".\""));
    } else if (!evaluations_.emplace(name, i).second) {
      problems_.Add(line,
                    absl::StrCat("two evaluations are named ", Quoted(name)));
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
      problems_.Add(line, absl::StrCat(Quoted(stage.name()),
                                       " is no name of a stage: letters, "
                                       "digits, \"_\", \"-\" and \".\""));
    } else if (!stages_.emplace(stage.name(), i).second) {
      problems_.Add(
          line, absl::StrCat("two stages are named ", Quoted(stage.name())));
    }
    const auto variable = plan_.file.variables.find(stage.skip_if());
    const bool left_out = variable != plan_.file.variables.end() &&
                          !variable->second.value.empty();
    plan_.left_out_by.push_back(left_out ? stage.skip_if() : "");
    plan_.given_graph.push_back(left_out ? "" : stage.use_file());
  }
  if (workflow_.stage_size() == 0) problems_.Add(0, "it has no stage");
}

void Planner::CheckEvaluation(int index) {
  const Evaluation& evaluation = workflow_.evaluation(index);
  const FieldPlaces places = places_.Nested("evaluation", index);
  const CheckContext context = {
      absl::StrCat("evaluation ", Quoted(evaluation.name())), &problems_};
  CheckRecords(evaluation.on(), places.Nested("on"), context);
  CheckGates(evaluation.gates(), places.Nested("gates"), context);
  CheckCount(evaluation.layer_records(), places, "layer_records", context);
  CheckCount(evaluation.baseline().records(), places.Nested("baseline"),
             "records", context);
}

void Planner::CheckVerify(int stage, const Verify& verify,
                          const FieldPlaces& places) {
  const CheckContext context = Context(workflow_.stage(stage));
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
  for (const auto& [name, unused] : evaluations_) names.push_back(Quoted(name));
  const std::string all =
      names.empty() ? "; the workflow has none"
                    : absl::StrCat("; there are ", absl::StrJoin(names, ", "));
  if (verify.evaluation().empty()) {
    Refuse(places.line(), stage,
           absl::StrCat(": verify names no evaluation", all));
    return;
  }
  const int evaluation = FindEvaluation(verify.evaluation());
  if (evaluation < 0) {
    std::vector<std::string> candidates;
    for (const auto& [name, unused] : evaluations_) candidates.push_back(name);
    const std::string suggestion = SuggestName(verify.evaluation(), candidates);
    Refuse(places.Line("evaluation"), stage,
           absl::StrCat(" is verified by ", Quoted(verify.evaluation()),
                        ": no such evaluation",
                        suggestion.empty() ? all : suggestion));
  }
}

void Planner::CheckGivenGraph(int stage) {
  const std::string problem = GraphPathProblem(plan_.given_graph[stage]);
  if (problem.empty()) return;
  Refuse(StagePlaces(stage).Line("use_file"), stage,
         absl::StrCat(": use_file: ", problem));
}

// Evaluations that nothing uses may lack their variables' values.
void Planner::CheckWorkflow() {
  const std::string problem = WorkflowNameProblem(workflow_.name());
  if (!problem.empty()) problems_.Add(places_.Line("name"), problem);
  CheckGates(workflow_.gates(), places_.Nested("gates"),
             {"the workflow", &problems_});
  std::set<int> used;
  for (int i = 0; i < workflow_.stage_size(); ++i) {
    if (IsLeftOut(i)) continue;
    const Stage& stage = workflow_.stage(i);
    CheckStage(stage, StagePlaces(i), Context(stage));
    if (IsGiven(i)) CheckGivenGraph(i);
    const Verify* const verify = VerifyOf(stage);
    if (verify == nullptr) continue;
    CheckVerify(i, *verify, VerifyPlaces(stage, StagePlaces(i)));
    const int evaluation = FindEvaluation(verify->evaluation());
    if (evaluation >= 0) used.insert(evaluation);
  }
  for (const int evaluation : used) CheckEvaluation(evaluation);
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
  problems_.Add(line, absl::StrCat(reader, " ", Quoted(name), ": no such stage",
                                   SuggestName(name, names)));
  return -1;
}

int Planner::AddTask(Task::Kind kind, int stage, const std::string& name) {
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
  if (VerifyOf(stage) == nullptr && !stage.has_compare()) return;
  plan_.verify_task[index] = AddTask(Task::Kind::kVerify, index,
                                     absl::StrCat(stage.name(), "/verify"));
  plan_.tasks.back().outputs = {
      {"predictions", absl::StrCat(stage.name(), ".predictions")},
      {"result", absl::StrCat(stage.name(), ".evaluation.pb")}};
  if (const Verify* verify = VerifyOf(stage)) {
    plan_.tasks.back().evaluation = FindEvaluation(verify->evaluation());
  }
}

void Planner::CheckOutputNames() {
  std::map<std::string, std::string> makers;
  for (int i = 0; i < workflow_.stage_size(); ++i) {
    if (plan_.make_task[i] < 0) continue;
    const Stage& stage = workflow_.stage(i);
    for (const StageOutput& output : OutputsOf(stage, StagePlaces(i))) {
      const std::string problem = OutputNameProblem(output.file);
      if (!problem.empty()) {
        Refuse(output.line, i, absl::StrCat(": ", problem));
      }
      const auto [maker, is_new] = makers.emplace(output.file, stage.name());
      if (is_new) continue;
      Refuse(output.line, i,
             maker->second == stage.name()
                 ? absl::StrCat(" writes ", Quoted(output.file), " twice")
                 : absl::StrCat(" writes ", Quoted(output.file), ", as stage ",
                                Quoted(maker->second), " does"));
    }
  }
  CheckNamesOfEvaluations(makers);
}

void Planner::CheckNamesOfEvaluations(
    const std::map<std::string, std::string>& makers) {
  // By file: the stage that writes it, and the task.
  std::map<std::string, std::pair<int, std::string>> writers;
  for (const auto& [file, stage] : makers) {
    writers[file] = {stages_[stage], stage};
  }
  for (const Task& task : plan_.tasks) {
    if (task.kind == Task::Kind::kMake) continue;
    for (const TaskOutput& output : task.outputs) {
      const auto [writer, is_new] =
          writers.emplace(output.file, std::make_pair(task.stage, task.name));
      if (is_new) continue;
      // A baseline's task has no stage of its own; what it meets has one.
      const auto& [stage, other] = writer->second;
      const int told = stage >= 0 ? stage : task.stage;
      Refuse(StagePlaces(told).line(), told,
             absl::StrCat(" writes ", Quoted(output.file), ", as ",
                          Quoted(stage >= 0 ? task.name : other), " does"));
    }
  }
}

void Planner::Wait(int task, int stage) { waits_for_[task].insert(stage); }

TaskInput Planner::GraphOf(int stage, const std::string& role) {
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

std::string Planner::ChooseOutput(const StageInput& input, int source,
                                  int reading_stage) {
  const Stage& stage = workflow_.stage(source);
  std::vector<std::string> roles;
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
  std::vector<std::string> quoted;
  for (const std::string& role : roles) quoted.push_back(Quoted(role));
  const std::string makes =
      roles.empty() ? " makes nothing that can be read"
                    : absl::StrCat(" makes ", absl::StrJoin(quoted, ", "));
  const std::string& wanted = input.input->output();
  if (!wanted.empty()) {
    if (has(wanted)) return wanted;
    Refuse(input.places.Line("output"), reading_stage,
           absl::StrCat(" reads ", Quoted(wanted), " of ", Quoted(stage.name()),
                        ", which", makes));
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
  Refuse(input.places.Line("stage"), reading_stage,
         absl::StrCat(" reads ", Quoted(stage.name()), ", which", line_end));
  return "";
}

void Planner::ResolveStage(const StageInput& input, int task) {
  const int reader = plan_.tasks[task].stage;
  const int source = FindStage(
      input.input->stage(), input.places.Line("stage"),
      absl::StrCat("stage ", Quoted(workflow_.stage(reader).name()), " reads"));
  if (source < 0) return;
  if (IsLeftOut(source)) {
    Refuse(input.places.Line("stage"), reader,
           absl::StrCat(" reads ", Quoted(input.input->stage()),
                        ", which is left out because variable ",
                        Quoted(plan_.left_out_by[source]), " is set"));
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
  const int reader = plan_.tasks[task].stage;
  const std::string& path = input.input->file();
  const int line = input.places.Line("file");
  TaskInput resolved;
  resolved.role = input.role;
  resolved.path = path;
  std::string problem;
  const bool is_graph = input.role == "graph" || input.role == "baseline" ||
                        input.role == "saved_model";
  if (is_graph) {
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
    Refuse(line, reader, absl::StrCat(": its ", input.role, ": ", problem));
  }
  plan_.tasks[task].inputs.push_back(resolved);
}

void Planner::Resolve(const StageInput& input, int task) {
  switch (input.input->from_case()) {
    case Input::kStage:
      return ResolveStage(input, task);
    case Input::kFile:
      return ResolveFile(input, task);
    default:
      Refuse(input.places.line(), plan_.tasks[task].stage,
             absl::StrCat(" needs ", input.role,
                          ": { stage: \"...\" } or { file: \"...\" }"));
  }
}

void Planner::AddPaths(int stage, int task) {
  for (const auto& [role, path] : PathsOf(workflow_.stage(stage))) {
    TaskInput input;
    input.role = role;
    input.path = path;
    plan_.tasks[task].inputs.push_back(input);
    const std::string file =
        role == "checkpoint" ? absl::StrCat(path, ".index") : path;
    if (!path.empty() && !Exists(file)) {
      Refuse(StagePlaces(stage).line(), stage,
             absl::StrCat(": its ", role, ": there is no ", file));
    }
  }
}

void Planner::AddDeclaration(const Records& records, const FieldPlaces& places,
                             int task) {
  if (records.dataset().empty()) return;
  TaskInput dataset;
  dataset.role = "dataset";
  dataset.path = records.dataset();
  plan_.tasks[task].inputs.push_back(dataset);
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
      declared.path = DeclaredFiles(*spec);
      plan_.tasks[task].inputs.push_back(declared);
  }
  if (!spec.ok()) {
    problems_.Add(places.Line("dataset"), spec.status().message());
  }
}

void Planner::AddRecords(const Records& records, const FieldPlaces& places,
                         const CheckContext& context, int task) {
  AddDeclaration(records, places, task);
  if (!records.has_data()) return;
  const StageInput data = {
      "data", &records.data(), places.Nested("data"), {"data"}};
  // Files were looked for with the declaration.
  if (records.data().from_case() == Input::kFile) {
    TaskInput input;
    input.role = "data";
    input.path = records.data().file();
    plan_.tasks[task].inputs.push_back(input);
  } else if (records.data().from_case() == Input::kStage) {
    ResolveStage(data, task);
  } else {
    problems_.Add(places.Line("data"),
                  absl::StrCat(context.whose,
                               ": data needs { stage: \"...\" } or { file: "
                               "\"...\" }"));
  }
}

void Planner::FillMakeTask(int task) {
  const int index = plan_.tasks[task].stage;
  const Stage& stage = workflow_.stage(index);
  for (const StageInput& input : InputsOf(stage, StagePlaces(index))) {
    Resolve(input, task);
  }
  AddPaths(index, task);
  if (const Records* records = RecordsOf(stage)) {
    CheckRecords(*records, RecordsPlaces(stage, StagePlaces(index)),
                 Context(stage));
    AddRecords(*records, RecordsPlaces(stage, StagePlaces(index)),
               Context(stage), task);
  }
}

void Planner::FillCompareTask(int task) {
  const int index = plan_.tasks[task].stage;
  const Stage& stage = workflow_.stage(index);
  for (const StageInput& input : InputsOf(stage, StagePlaces(index))) {
    Resolve(input, task);
  }
  const FieldPlaces places = RecordsPlaces(stage, StagePlaces(index));
  CheckRecords(stage.compare().on(), places, Context(stage));
  AddRecords(stage.compare().on(), places, Context(stage), task);
}

void Planner::FillVerifyTask(int task) {
  const int index = plan_.tasks[task].stage;
  const Stage& stage = workflow_.stage(index);
  if (stage.has_compare()) return FillCompareTask(task);
  if (stage.has_evaluate()) {
    for (const StageInput& input : InputsOf(stage, StagePlaces(index))) {
      Resolve(input, task);
    }
  } else {
    plan_.tasks[task].inputs.push_back(GraphOf(index, "graph"));
  }
  const int evaluation = plan_.tasks[task].evaluation;
  if (evaluation < 0) return;
  const FieldPlaces places = places_.Nested("evaluation", evaluation);
  AddRecords(workflow_.evaluation(evaluation).on(), places.Nested("on"),
             {absl::StrCat("evaluation ",
                           Quoted(workflow_.evaluation(evaluation).name())),
              &problems_},
             task);
  AddBaseline(task);
  WaitForReference(task);
}

// A verification that is judged by another stage's needs its result.
void Planner::WaitForReference(int task) {
  const int own = plan_.tasks[task].stage;
  const Verify& verify = *VerifyOf(workflow_.stage(own));
  if (!verify.has_relative_mse()) return;
  const FieldPlaces places =
      VerifyPlaces(workflow_.stage(own), StagePlaces(own))
          .Nested("relative_mse");
  const std::string& name = verify.relative_mse().stage();
  const int line = places.Line("stage");
  const int stage =
      FindStage(name, line,
                absl::StrCat("stage ", Quoted(workflow_.stage(own).name()),
                             " has relative_mse to"));
  if (stage < 0) return;
  const int other = plan_.verify_task[stage];
  if (stage == own || other < 0 ||
      plan_.tasks[other].evaluation != plan_.tasks[task].evaluation) {
    Refuse(line, own,
           absl::StrCat(" has relative_mse to ", Quoted(name),
                        ", which is not another stage that the same evaluation "
                        "verifies"));
    return;
  }
  Wait(task, stage);
}

ChosenBaseline Planner::ChooseBaseline(int task) {
  const int stage = plan_.tasks[task].stage;
  const Verify& verify = *VerifyOf(workflow_.stage(stage));
  const FieldPlaces places =
      VerifyPlaces(workflow_.stage(stage), StagePlaces(stage));
  if (verify.has_baseline()) {
    return {&verify.baseline(), places.Nested("baseline"), false};
  }
  const int evaluation = plan_.tasks[task].evaluation;
  return {&workflow_.evaluation(evaluation).baseline(),
          places_.Nested("evaluation", evaluation).Nested("baseline"), true};
}

void Planner::AddBaseline(int task) {
  const ChosenBaseline chosen = ChooseBaseline(task);
  switch (chosen.baseline->from_case()) {
    case Baseline::kStage:
      return AddBaselineStage(chosen, task);
    case Baseline::kFile:
      return AddBaselineFile(chosen, task);
    default:
      return;
  }
}

// Whether the stage's verification feeds its graph as this task's does.
bool Planner::SameRecords(int stage, int task) const {
  const int other = plan_.tasks[plan_.verify_task[stage]].evaluation;
  const int own = plan_.tasks[task].evaluation;
  return other >= 0 && workflow_.evaluation(other).on().dataset() ==
                           workflow_.evaluation(own).on().dataset();
}

void Planner::AddBaselineStage(const ChosenBaseline& chosen, int task) {
  const int own = plan_.tasks[task].stage;
  const std::string& name = chosen.baseline->stage();
  const int line = chosen.places.Line("stage");
  const int stage = FindStage(
      name, line,
      chosen.is_evaluations
          ? absl::StrCat(
                "evaluation ",
                Quoted(
                    workflow_.evaluation(plan_.tasks[task].evaluation).name()),
                " has the baseline")
          : absl::StrCat("stage ", Quoted(workflow_.stage(own).name()),
                         " has the baseline"));
  if (stage < 0) return;
  if (stage == own) {
    // The baseline of all others has none.
    if (!chosen.is_evaluations) Refuse(line, own, " is its own baseline");
    return;
  }
  if (IsLeftOut(stage)) {
    plan_.tasks[task].notes.push_back(
        absl::StrCat("no baseline: stage ", Quoted(name), " is left out"));
    return;
  }
  const int verify = plan_.verify_task[stage];
  if (verify < 0 || workflow_.stage(stage).has_compare()) {
    Refuse(line, own,
           absl::StrCat(" has the baseline ", Quoted(name),
                        ", which is not verified: add verify to "
                        "it"));
    return;
  }
  TaskInput predictions;
  predictions.role = "baseline_predictions";
  predictions.task = verify;
  predictions.output = "predictions";
  plan_.tasks[task].inputs.push_back(predictions);
  Wait(task, stage);
  const Evaluation& evaluation =
      workflow_.evaluation(plan_.tasks[task].evaluation);
  if (evaluation.layer_records().empty()) return;
  const bool only_evaluates = workflow_.stage(stage).has_evaluate();
  if (only_evaluates || !SameRecords(stage, task)) {
    plan_.tasks[task].notes.push_back(absl::StrCat(
        "layers are not compared: stage ", Quoted(name),
        only_evaluates ? " makes no graph"
                       : " makes a graph that takes other inputs"));
    return;
  }
  plan_.tasks[task].inputs.push_back(GraphOf(stage, "baseline"));
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
  const Evaluation& message = workflow_.evaluation(evaluation);
  const std::string word =
      count == 1 ? "baseline" : absl::StrCat("baseline_", count);
  const int task = AddTask(Task::Kind::kBaseline, first_reader,
                           absl::StrCat(message.name(), "/", word));
  baseline_tasks_[key] = task;
  Task& added = plan_.tasks[task];
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

void Planner::AddBaselineFile(const ChosenBaseline& chosen, int task) {
  const int own = plan_.tasks[task].stage;
  const int evaluation = plan_.tasks[task].evaluation;
  const std::string problem = GraphPathProblem(chosen.baseline->file());
  if (!problem.empty()) {
    problems_.Add(chosen.places.Line("file"),
                  absl::StrCat("the baseline: ", problem));
    return;
  }
  const int baseline = BaselineTask(evaluation, *chosen.baseline, own);
  if (plan_.tasks[baseline].inputs.size() == 1) {
    // Of the same records as the first task that is compared with it.
    for (const TaskInput& input : plan_.tasks[task].inputs) {
      if (input.role != "dataset" && input.role != "data" &&
          input.role != "declared_data") {
        continue;
      }
      plan_.tasks[baseline].inputs.push_back(input);
      if (input.task >= 0) Wait(baseline, plan_.tasks[input.task].stage);
    }
  }
  TaskInput predictions;
  predictions.role = "baseline_predictions";
  predictions.task = baseline;
  predictions.output = "predictions";
  plan_.tasks[task].inputs.push_back(predictions);
  if (workflow_.evaluation(evaluation).layer_records().empty()) return;
  TaskInput graph;
  graph.role = "baseline";
  graph.path = chosen.baseline->file();
  plan_.tasks[task].inputs.push_back(graph);
}

void Planner::FillAfter(int index) {
  Task& task = plan_.tasks[index];
  std::set<int> after;
  for (const TaskInput& input : task.inputs) {
    if (input.task >= 0) after.insert(input.task);
  }
  if (task.stage >= 0 && !IsLeftOut(task.stage)) {
    const Stage& stage = workflow_.stage(task.stage);
    const FieldPlaces places = StagePlaces(task.stage);
    for (int i = 0; i < stage.after_size(); ++i) {
      const int other =
          FindStage(stage.after(i), places.Line("after", i),
                    absl::StrCat("stage ", Quoted(stage.name()), " is after"));
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

void Planner::TellCycle(const std::vector<int>& cycle) {
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

void Planner::PutInOrder() {
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
    return TellCycle(cycle);
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
}

// Gates on layers are for naught where no layer is compared.
void Planner::CheckLayerGates(const Task& task) {
  if (task.kind != Task::Kind::kVerify) return;
  const std::string gate = LayerGate(EffectiveGates(plan_, task));
  if (gate.empty()) return;
  const Stage& stage = workflow_.stage(task.stage);
  const bool compared = stage.has_compare()
                            ? !stage.compare().layer_records().empty()
                            : FindInput(task, "baseline") != nullptr;
  if (compared) return;
  Refuse(StagePlaces(task.stage).line(), task.stage,
         absl::StrCat(" is held to ", gate,
                      ", and its layers are not compared: set layer_records in "
                      "its evaluation, with a baseline stage that reads the "
                      "same records, or take the gate away (",
                      gate, ": -1)"));
}

absl::StatusOr<Plan> Planner::Make() {
  NameEvaluations();
  NameStages();
  CheckWorkflow();
  for (int i = 0; i < workflow_.stage_size(); ++i) AddTasks(i);
  // Tasks of baselines are added on the way.
  for (size_t i = 0; i < plan_.tasks.size(); ++i) {
    const Task::Kind kind = plan_.tasks[i].kind;
    if (kind == Task::Kind::kMake) FillMakeTask(static_cast<int>(i));
    if (kind == Task::Kind::kVerify) FillVerifyTask(static_cast<int>(i));
  }
  CheckOutputNames();
  for (size_t i = 0; i < plan_.tasks.size(); ++i) {
    FillAfter(static_cast<int>(i));
  }
  PutInOrder();
  for (const Task& task : plan_.tasks) CheckLayerGates(task);
  REQUANT_RETURN_IF_ERROR(problems_.status());
  return std::move(plan_);
}

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

}  // namespace

absl::StatusOr<Plan> MakePlan(const WorkflowFile& file) {
  return Planner(file).Make();
}

Gates EffectiveGates(const Plan& plan, const Task& task) {
  Gates effective;
  if (task.kind != Task::Kind::kVerify ||
      (FindInput(task, "baseline_predictions") == nullptr &&
       FindInput(task, "baseline") == nullptr)) {
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

}  // namespace requant
