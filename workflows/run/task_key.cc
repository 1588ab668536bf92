#include "workflows/run/task_key.h"

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
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
#include "base/version.h"
#include "workflows/language/stage_fields.h"

namespace requant {
namespace {

namespace fs = std::filesystem;

// Returns the existing files that a path with globs means; the path itself when
// there are none, so that whoever opens it names it.
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
  // The way up and down again may be longer than that from the root.
  return relative.empty() || relative.string().size() > absolute.string().size()
             ? absolute.string()
             : relative.string();
}

// Splits what may be several paths.
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
    // A checkpoint is several files that begin with one path.
    const bool is_checkpoint = input.role == "checkpoint";
    for (const std::string& file :
         Expand(is_checkpoint ? absl::StrCat(path, ".*") : path)) {
      REQUANT_RETURN_IF_ERROR(AddFile(file, input.role, store, &resolved));
    }
  }
  resolved.shown_path = absl::StrJoin(shown, ",");
  return resolved;
}

absl::StatusOr<ResolvedInput> ResolveOutput(const Plan& plan,
                                            const TaskInput& input,
                                            const FinishedTask& maker,
                                            const StageStore& store) {
  const Task& task = plan.tasks[input.task];
  for (const FileRecord& output : maker.result.work().output()) {
    if (output.role() != input.output) continue;
    ResolvedInput resolved;
    resolved.path = store.PathOf(maker.key, output.path());
    resolved.shown_path = output.path();
    FileRecord file = output;
    file.set_role(input.role);
    file.set_stage(
        task.stage >= 0
            ? std::string(plan.file.workflow.stage(task.stage).name())
            : task.name);
    resolved.files.push_back(std::move(file));
    return resolved;
  }
  return absl::InternalError(
      absl::StrCat("the task \"", task.name, "\" made no ", input.output));
}

// Returns the first file of an input that is no longer what it was; "": none.
std::string ChangedPath(const ResolvedInput& before, const ResolvedInput& now) {
  // A pattern matches others.
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
absl::StatusOr<std::vector<TaskCommand>> NamelessCommands(
    const Plan& plan, const Task& task, const CommandSettings& settings) {
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

// Adds the environment too, because it decides which kernels run.
void AddMachine(const RunMachine& machine, std::vector<KeyPart>* parts) {
  AddPart(KeyPart::MACHINE, "the set of working instructions",
          absl::StrJoin(machine.features, ","), parts);
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

absl::StatusOr<std::vector<ResolvedInput>> ResolveInputs(
    const Plan& plan, const Task& task, const FinishedTasks& finished,
    const std::string& run_folder, StageStore* store) {
  std::vector<ResolvedInput> resolved;
  for (const TaskInput& input : task.inputs) {
    if (input.task < 0) {
      REQUANT_ASSIGN_OR_RETURN(ResolvedInput file,
                               ResolveFile(input, run_folder, store));
      resolved.push_back(std::move(file));
      continue;
    }
    const FinishedTask* const maker = finished(input.task);
    if (maker == nullptr) {
      return absl::InternalError(
          absl::StrCat("\"", plan.tasks[input.task].name, "\" is not done"));
    }
    REQUANT_ASSIGN_OR_RETURN(ResolvedInput output,
                             ResolveOutput(plan, input, *maker, *store));
    resolved.push_back(std::move(output));
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
  REQUANT_ASSIGN_OR_RETURN(const std::vector<TaskCommand> commands,
                           NamelessCommands(plan, task, settings));
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
