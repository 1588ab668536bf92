#include "workflows/run/task_command.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/text/shell_quote.h"
#include "google/protobuf/message.h"
#include "workflows/language/programs.h"
#include "workflows/language/stage_fields.h"
#include "workflows/language/stage_parts.h"
#include "workflows/language/workflow_variables.h"
#include "workflows/workflow.pb.h"

namespace requant {
namespace {

using google::protobuf::Message;

const Stage& StageOf(const Plan& plan, const Task& task) {
  return plan.file.workflow.stage(task.stage);
}

// A task's commands, from the tables of its stage's fields.
class CommandMaker {
 public:
  CommandMaker(const Plan& plan, const Task& task, const TaskPaths& paths,
               const CommandSettings& settings)
      : plan_(plan), task_(task), paths_(paths), settings_(settings) {}

  absl::StatusOr<std::vector<TaskCommand>> Make() const {
    std::vector<TaskCommand> commands;
    if (task_.kind != Task::Kind::kMake) {
      REQUANT_ASSIGN_OR_RETURN(commands.emplace_back(),
                               Command("evaluate", JudgingFields(), Judging()));
      return commands;
    }
    const Stage& stage = StageOf(plan_, task_);
    if (StageKind(stage).empty()) return Lacks("work of its own");
    for (const StageStep& step : FormOf(stage).steps) {
      REQUANT_ASSIGN_OR_RETURN(
          commands.emplace_back(),
          Command(step.command, step.fields, KindMessage(stage)));
    }
    return commands;
  }

 private:
  absl::Status Lacks(std::string_view what) const {
    return absl::InternalError(absl::StrCat(
        "the task \"", task_.name, "\" has no ", what, " in its plan"));
  }

  // What a verification or a baseline runs on, and what it compares.
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

  // The paths of all inputs of a role.
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

  absl::StatusOr<TaskCommand> Command(const std::string& name,
                                      const std::vector<StageField>& fields,
                                      const Message& message) const {
    TaskCommand command;
    command.command = name;
    // Words come behind all flags.
    for (const bool words : {false, true}) {
      for (const StageField& row : fields) {
        if (row.flag.empty() != words) continue;
        const auto found = FindField(message, row.field);
        if (!found.has_value()) continue;
        REQUANT_RETURN_IF_ERROR(Add(row, *found, &command));
      }
    }
    return command;
  }

  absl::Status Add(const StageField& row, const FoundField& found,
                   TaskCommand* command) const {
    switch (row.kind) {
      case StageField::Kind::kConstant:
        if (row.field.empty() || found.IsSet()) {
          command->args.push_back(row.flag);
        }
        return absl::OkStatus();
      case StageField::Kind::kValue:
        return AddFlag(row.flag, found.Text(), command);
      case StageField::Kind::kTarget:
        return AddFlag(
            row.flag,
            found.Text() == "host" ? settings_.host_target : found.Text(),
            command);
      case StageField::Kind::kTransforms:
        return AddTransforms(
            row, static_cast<const TransformStage&>(*found.message), command);
      case StageField::Kind::kInput:
      case StageField::Kind::kPath:
        return AddInputs(row, command);
      case StageField::Kind::kOutput:
        return AddOutput(row, command);
      case StageField::Kind::kStreams:
        if (settings_.streams > 1) {
          command->args.push_back(
              absl::StrCat("--streams=", settings_.streams));
          command->args.push_back("--threads=1");
        }
        return absl::OkStatus();
      case StageField::Kind::kFiles:
      case StageField::Kind::kNeed:
        break;
    }
    return absl::OkStatus();
  }

  // Leaves the flag out when the value is empty.
  static absl::Status AddFlag(const std::string& flag, const std::string& value,
                              TaskCommand* command) {
    if (!value.empty()) {
      command->args.push_back(absl::StrCat("--", flag, "=", value));
    }
    return absl::OkStatus();
  }

  absl::Status AddTransforms(const StageField& row,
                             const TransformStage& transform,
                             TaskCommand* command) const {
    std::map<std::string, std::string> files;
    for (const NamedInput& file : transform.file()) {
      const std::vector<std::string> paths = Inputs(file.name());
      if (paths.empty()) return LacksFile("input", file.name());
      files.emplace(file.name(), paths[0]);
    }
    return AddFlag(row.flag, FillInFiles(transform.transforms(), files),
                   command);
  }

  absl::Status AddInputs(const StageField& row, TaskCommand* command) const {
    const std::vector<std::string> paths = Inputs(row.role);
    if (paths.empty() && !row.optional) return LacksFile("input", row.role);
    if (row.kind == StageField::Kind::kPath) {
      return AddFlag(row.flag, absl::StrJoin(paths, ","), command);
    }
    for (const std::string& path : paths) {
      if (!row.flag.empty()) {
        REQUANT_RETURN_IF_ERROR(AddFlag(row.flag, path, command));
      } else if (row.role != "data") {
        command->args.push_back(path);
      } else {
        for (std::string_view file :
             absl::StrSplit(path, ',', absl::SkipEmpty())) {
          command->args.emplace_back(file);
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddOutput(const StageField& row, TaskCommand* command) const {
    const std::string path = Output(row.role);
    if (path.empty() && !row.optional) return LacksFile("output", row.role);
    if (row.flag == ">") {
      command->stdout_file = path;
    } else if (row.flag.empty()) {
      command->args.push_back(path);
    } else if (!path.empty() || row.even_empty) {
      command->args.push_back(absl::StrCat("--", row.flag, "=", path));
    }
    return absl::OkStatus();
  }

  absl::Status LacksFile(std::string_view what, std::string_view role) const {
    return Lacks(absl::StrCat(what, " \"", role, "\""));
  }

  const Plan& plan_;
  const Task& task_;
  const TaskPaths& paths_;
  const CommandSettings& settings_;
};

}  // namespace

absl::StatusOr<std::vector<TaskCommand>> TaskCommands(
    const Plan& plan, const Task& task, const TaskPaths& paths,
    const CommandSettings& settings) {
  return CommandMaker(plan, task, paths, settings).Make();
}

bool MeasuresTime(const Plan& plan, const Task& task) {
  return task.kind == Task::Kind::kMake && StageOf(plan, task).has_benchmark();
}

bool UsesAllCores(const Plan& plan, const Task& task) {
  if (task.kind != Task::Kind::kMake) return true;
  const std::vector<StageStep>& steps = FormOf(StageOf(plan, task)).steps;
  return std::any_of(steps.begin(), steps.end(), [](const StageStep& step) {
    return FindProgram(step.command)->runs_graphs;
  });
}

std::string ShellCommand(const TaskCommand& command) {
  std::string line = absl::StrCat("requant ", command.command);
  for (const std::string& arg : command.args) {
    absl::StrAppend(&line, " ", ShellQuoted(arg));
  }
  if (!command.stdout_file.empty()) {
    absl::StrAppend(&line, " > ", ShellQuoted(command.stdout_file));
  }
  const Program* const program = FindProgram(command.command);
  if (program != nullptr && program->other_success != 0) {
    absl::StrAppend(&line, " || [ $? = ", program->other_success, " ]");
  }
  return line;
}

}  // namespace requant
