#include "workflows/run/task_command.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/files/files.h"
#include "base/files/sha256.h"
#include "base/process/sibling_program.h"
#include "base/status_macros.h"
#include "base/text/printable.h"
#include "base/version.h"
#include "google/protobuf/message.h"
#include "graph/freeze/checkpoint.h"
#include "workflows/language/stage_fields.h"
#include "workflows/workflow.pb.h"

namespace requant {
namespace {

namespace fs = std::filesystem;
using google::protobuf::Message;

const Stage& StageOf(const Plan& plan, const Task& task) {
  return plan.file.workflow.stage(task.stage);
}

// Makes a task's commands from the tables of its stage's fields.
class CommandMaker {
 public:
  CommandMaker(const Plan& plan, const Task& task, const TaskPaths& paths,
               const CommandSettings& settings)
      : plan_(plan), task_(task), paths_(paths), settings_(settings) {}

  std::vector<TaskCommand> Make() const {
    if (task_.kind != Task::Kind::kMake) {
      return {Command("evaluate", Stages().judging(), Judging())};
    }
    const Stage& stage = StageOf(plan_, task_);
    std::vector<TaskCommand> commands;
    for (const StageStep& step : FormOf(stage).step()) {
      commands.push_back(
          Command(step.command(), step.row(), KindMessage(stage)));
    }
    return commands;
  }

 private:
  // Returns what a verification or a baseline's run reads and compares.
  CompareStage Judging() const {
    CompareStage judging;
    if (task_.evaluation < 0) {
      judging = StageOf(plan_, task_).compare();
    } else {
      const Evaluation& evaluation =
          plan_.file.workflow.evaluation(task_.evaluation);
      *judging.mutable_on() = evaluation.on();
      if (!Inputs("baseline").empty()) {
        judging.set_layer_records(evaluation.layer_records());
      }
    }
    if (!task_.baseline_records.empty()) {
      judging.mutable_on()->set_records(task_.baseline_records);
    }
    if (settings_.records.has_value()) {
      judging.mutable_on()->set_records(absl::StrCat(*settings_.records));
    }
    return judging;
  }

  // Returns the paths of all inputs of a role.
  std::vector<std::string> Inputs(std::string_view role) const {
    std::vector<std::string> found;
    for (size_t i = 0; i < task_.inputs.size(); ++i) {
      if (task_.inputs[i].role == role) found.push_back(paths_.inputs[i]);
    }
    return found;
  }
  std::string Output(std::string_view role) const {
    for (size_t i = 0; i < task_.outputs.size(); ++i) {
      if (task_.outputs[i].role == role) return paths_.outputs[i];
    }
    return "";
  }

  TaskCommand Command(const std::string& name, const StageFields& fields,
                      const Message& message) const {
    TaskCommand command;
    command.command = name;
    // Words without a flag come after all flags.
    for (const bool words : {false, true}) {
      for (const StageField& row : fields) {
        if (row.flag().empty() != words) continue;
        const auto found = FindField(message, row.field());
        if (found.has_value()) Add(row, *found, &command);
      }
    }
    return command;
  }

  void Add(const StageField& row, const FoundField& found,
           TaskCommand* command) const {
    switch (row.kind()) {
      case StageField::CONSTANT:
        if (row.field().empty() || found.IsSet()) {
          command->args.push_back({"", row.flag()});
        }
        return;
      case StageField::VALUE:
        return AddFlag(row.flag(), found.Text(), command);
      case StageField::TARGET:
        return AddFlag(
            row.flag(),
            found.Text() == "host" ? settings_.host_target : found.Text(),
            command);
      case StageField::TRANSFORMS:
        return AddTransforms(
            row, static_cast<const TransformStage&>(*found.message), command);
      case StageField::INPUT:
      case StageField::PATH:
        return AddInputs(row, command);
      case StageField::OUTPUT:
        return AddOutput(row, command);
      case StageField::STREAMS:
        if (settings_.streams <= 1) return;
        AddFlag(row.flag(), absl::StrCat(settings_.streams), command);
        return AddFlag("threads", "1", command);
      default:
        return;
    }
  }

  // Leaves the flag out when the value is empty.
  static void AddFlag(const std::string& flag, const std::string& value,
                      TaskCommand* command) {
    if (!value.empty()) command->args.push_back({flag, value});
  }

  void AddTransforms(const StageField& row, const TransformStage& transform,
                     TaskCommand* command) const {
    std::map<std::string, std::string> files;
    for (const NamedInput& file : transform.file()) {
      files.emplace(file.name(), Inputs(file.name()).at(0));
    }
    AddFlag(row.flag(), FillInFiles(transform.transforms(), files), command);
  }

  void AddInputs(const StageField& row, TaskCommand* command) const {
    std::vector<std::string> paths = Inputs(row.role());
    if (row.kind() == StageField::PATH) {
      paths = {absl::StrJoin(paths, ",")};
    }
    for (const std::string& path : paths) {
      if (!row.flag().empty()) {
        AddFlag(row.flag(), path, command);
      } else if (row.role() != "data") {
        command->args.push_back({"", path});
      } else {
        for (const std::string_view file :
             absl::StrSplit(path, ',', absl::SkipEmpty())) {
          command->args.push_back({"", std::string(file)});
        }
      }
    }
  }

  void AddOutput(const StageField& row, TaskCommand* command) const {
    const std::string path = Output(row.role());
    if (row.flag() == ">") {
      command->stdout_file = path;
    } else if (row.flag().empty() || !path.empty() || row.even_empty()) {
      command->args.push_back({row.flag(), path});
    }
  }

  const Plan& plan_;
  const Task& task_;
  const TaskPaths& paths_;
  const CommandSettings& settings_;
};

// --- What the result depends on.

// Returns the existing files that a path with globs matches, or the path itself
// if there are none, so that the error of opening it names it.
std::vector<std::string> Expand(const std::string& path) {
  std::error_code ignored;
  if (fs::exists(path, ignored)) return {path};
  std::vector<std::string> found = MatchingFiles(path);
  if (found.empty()) found.push_back(path);
  return found;
}

std::string ShownFrom(const std::string& run_folder, const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  const fs::path folder = fs::absolute(run_folder, error);
  const fs::path relative =
      absolute.lexically_normal().lexically_relative(folder.lexically_normal());
  // A relative path that goes up and down may be longer than the absolute one.
  return relative.empty() || relative.string().size() > absolute.string().size()
             ? absolute.string()
             : relative.string();
}

// Returns the paths of an input, which may have several.
std::vector<std::string> PathList(const TaskInput& input) {
  if (input.role != "data" && input.role != "declared_data") {
    return {input.path};
  }
  return absl::StrSplit(input.path, ',', absl::SkipEmpty());
}

absl::Status AddFile(const std::string& path, const std::string& role,
                     StageStore* store, ResolvedInput* resolved) {
  REQUANT_ASSIGN_OR_RETURN(const PathDigest hashed, store->Hash(path));
  FileRecord file;
  file.set_role(role);
  file.set_path(path);
  file.set_sha256(hashed.sha256);
  file.set_bytes(hashed.bytes);
  resolved->files.push_back(std::move(file));
  return absl::OkStatus();
}

// Finds an input that no task makes.
absl::StatusOr<ResolvedInput> ResolveFile(const TaskInput& input,
                                          const std::string& run_folder,
                                          StageStore* store) {
  ResolvedInput resolved;
  resolved.path = input.path;
  std::vector<std::string> shown;
  for (const std::string& path : PathList(input)) {
    shown.push_back(ShownFrom(run_folder, path));
    const bool is_checkpoint = input.role == "checkpoint";
    for (const std::string& file :
         is_checkpoint ? CheckpointFiles(path) : Expand(path)) {
      REQUANT_RETURN_IF_ERROR(AddFile(file, input.role, store, &resolved));
    }
  }
  resolved.shown_path = absl::StrJoin(shown, ",");
  return resolved;
}

// Finds an input that `maker` made. Its folder in the cache may hold the result
// of another task.
absl::StatusOr<ResolvedInput> ResolveOutput(const Plan& plan,
                                            const TaskInput& input,
                                            const FinishedTask& maker,
                                            const StageStore& store) {
  const Task& task = plan.tasks[input.task];
  const auto& outputs = maker.result.work().output();
  const auto found = std::find_if(
      outputs.begin(), outputs.end(),
      [&](const FileRecord& each) { return each.role() == input.output; });
  if (found == outputs.end()) {
    return absl::InternalError(
        absl::StrCat("the task \"", task.name, "\" made no ", input.output));
  }
  FileRecord file = *found;
  ResolvedInput resolved = {
      store.PathOf(maker.key, file.path()), file.path(), {}};
  file.set_role(input.role);
  file.set_stage(task.stage >= 0
                     ? std::string(plan.file.workflow.stage(task.stage).name())
                     : task.name);
  resolved.files.push_back(std::move(file));
  return resolved;
}

// Returns the first file of an input that changed, or "" if none did.
std::string ChangedPath(const ResolvedInput& before, const ResolvedInput& now) {
  // A glob now matches other files.
  if (before.files.size() != now.files.size()) return before.path;
  for (size_t i = 0; i < before.files.size(); ++i) {
    if (before.files[i].path() != now.files[i].path()) return before.path;
    if (before.files[i].sha256() != now.files[i].sha256()) {
      return std::string(before.files[i].path());
    }
  }
  return "";
}

void AddPart(KeyPart::Kind kind, const std::string& name,
             const std::string& value, std::vector<KeyPart>* parts) {
  KeyPart& part = parts->emplace_back();
  part.set_kind(kind);
  part.set_name(name);
  part.set_value(value);
}

// Returns the commands with roles of inputs and outputs instead of paths.
std::vector<TaskCommand> NamelessCommands(const Plan& plan, const Task& task,
                                          const CommandSettings& settings) {
  TaskPaths paths;
  for (const TaskInput& input : task.inputs) {
    paths.inputs.push_back(absl::StrCat("<", input.role, ">"));
  }
  for (const TaskOutput& output : task.outputs) {
    paths.outputs.push_back(absl::StrCat("<", output.role, ">"));
  }
  return TaskCommands(plan, task, paths, settings);
}

absl::Status AddPrograms(const std::vector<TaskCommand>& commands,
                         const RunMachine& machine, StageStore* store,
                         std::vector<KeyPart>* parts) {
  std::set<std::pair<std::string, std::string>> programs;
  for (const TaskCommand& command : commands) {
    const Program& program = *FindProgram(command.command);
    programs.emplace(program.folder(), program.name());
  }
  for (const auto& [folder, program] : programs) {
    REQUANT_ASSIGN_OR_RETURN(const std::string path,
                             SiblingProgram(machine.own_path, folder, program));
    REQUANT_ASSIGN_OR_RETURN(const PathDigest hashed, store->Hash(path));
    AddPart(KeyPart::PROGRAM, program, hashed.sha256, parts);
  }
  return absl::OkStatus();
}

// Also adds the environment, because it decides which kernels run.
void AddMachine(const RunMachine& machine, std::vector<KeyPart>* parts) {
  AddPart(KeyPart::MACHINE, "the set of working instructions",
          absl::StrJoin(machine.tool.cpu_feature(), ","), parts);
  for (const char* name :
       {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "TF_ENABLE_ONEDNN_OPTS"}) {
    const char* variable = std::getenv(name);
    std::string value = variable == nullptr ? "" : variable;
    for (const auto& [set_name, set_value] : machine.environment) {
      if (set_name == name) value = set_value;
    }
    AddPart(KeyPart::MACHINE, name, value, parts);
  }
}

}  // namespace

std::string TaskArgument::Text() const {
  return flag.empty() ? value : absl::StrCat("--", flag, "=", value);
}

std::vector<TaskCommand> TaskCommands(const Plan& plan, const Task& task,
                                      const TaskPaths& paths,
                                      const CommandSettings& settings) {
  return CommandMaker(plan, task, paths, settings).Make();
}

bool MeasuresTime(const Plan& plan, const Task& task) {
  return task.kind == Task::Kind::kMake && StageOf(plan, task).has_benchmark();
}

bool UsesAllCores(const Plan& plan, const Task& task) {
  if (task.kind != Task::Kind::kMake) return true;
  const auto& steps = FormOf(StageOf(plan, task)).step();
  return std::any_of(steps.begin(), steps.end(), [](const StageStep& step) {
    return FindProgram(step.command())->runs_graphs();
  });
}

std::string ShellCommand(const TaskCommand& command) {
  std::string line = absl::StrCat("requant ", command.command);
  for (const TaskArgument& arg : command.args) {
    absl::StrAppend(&line, " ", ShellQuoted(arg.Text()));
  }
  if (!command.stdout_file.empty()) {
    absl::StrAppend(&line, " > ", ShellQuoted(command.stdout_file));
  }
  const Program* const program = FindProgram(command.command);
  if (program != nullptr && program->other_success() != 0) {
    absl::StrAppend(&line, " || [ $? = ", program->other_success(), " ]");
  }
  return line;
}

absl::StatusOr<std::vector<ResolvedInput>> ResolveInputs(
    const Plan& plan, const Task& task, const FinishedTasks& finished,
    const std::string& run_folder, StageStore* store) {
  std::vector<ResolvedInput> resolved;
  for (const TaskInput& input : task.inputs) {
    if (input.task < 0) {
      REQUANT_ASSIGN_OR_RETURN(resolved.emplace_back(),
                               ResolveFile(input, run_folder, store));
    } else {
      REQUANT_ASSIGN_OR_RETURN(
          resolved.emplace_back(),
          ResolveOutput(plan, input, *finished(input.task), *store));
    }
  }
  return resolved;
}

absl::Status CheckUnchanged(const Task& task,
                            const std::vector<ResolvedInput>& inputs,
                            StageStore* store) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (task.inputs[i].task >= 0) continue;
    const absl::StatusOr<ResolvedInput> now =
        ResolveFile(task.inputs[i], /*run_folder=*/"", store);
    const std::string changed =
        now.ok() ? ChangedPath(inputs[i], *now) : inputs[i].path;
    if (changed.empty()) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(changed, " changed while it was read; run again"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<KeyPart>> TaskKeyParts(
    const Plan& plan, const Task& task,
    const std::vector<ResolvedInput>& inputs, const RunMachine& machine,
    const CommandSettings& settings, const std::string& tamper,
    StageStore* store) {
  const std::vector<TaskCommand> commands =
      NamelessCommands(plan, task, settings);
  std::vector<KeyPart> parts;
  AddPart(KeyPart::VERSION, "requant", VersionLine(), &parts);
  REQUANT_RETURN_IF_ERROR(AddPrograms(commands, machine, store, &parts));
  AddMachine(machine, &parts);
  for (const TaskCommand& command : commands) {
    for (const TaskArgument& arg : command.args) {
      AddPart(KeyPart::PARAMETER,
              absl::StrCat(
                  arg.flag.empty() ? "argument" : absl::StrCat("--", arg.flag),
                  " of ", command.command),
              arg.value, &parts);
    }
  }
  for (const TaskOutput& output : task.outputs) {
    AddPart(KeyPart::PARAMETER, absl::StrCat("output ", output.role),
            output.file, &parts);
  }
  for (const ResolvedInput& input : inputs) {
    for (const FileRecord& file : input.files) {
      AddPart(KeyPart::INPUT, file.role(), file.sha256(), &parts);
    }
  }
  if (!tamper.empty()) {
    const std::string program = tamper.substr(0, tamper.find(' '));
    REQUANT_ASSIGN_OR_RETURN(const PathDigest hashed, store->Hash(program));
    AddPart(KeyPart::TAMPERING, "program", hashed.sha256, &parts);
    AddPart(KeyPart::TAMPERING, "command", tamper, &parts);
  }
  return parts;
}

}  // namespace requant
