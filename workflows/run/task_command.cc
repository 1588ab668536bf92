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
#include "workflows/language/stage_fields.h"
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
      REQUANT_ASSIGN_OR_RETURN(
          commands.emplace_back(),
          Command("evaluate", Stages().judging(), Judging()));
      return commands;
    }
    const Stage& stage = StageOf(plan_, task_);
    if (StageKind(stage).empty()) return Lacks("work of its own");
    for (const StageStep& step : FormOf(stage).step()) {
      REQUANT_ASSIGN_OR_RETURN(
          commands.emplace_back(),
          Command(step.command(), step.row(), KindMessage(stage)));
    }
    return commands;
  }

 private:
  absl::Status Lacks(std::string_view what) const {
    return absl::InternalError(absl::StrCat(
        "the task \"", task_.name, "\" has no ", what, " in its plan"));
  }

  // Returns what a verification or a baseline runs on, and what it compares.
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

  absl::StatusOr<TaskCommand> Command(const std::string& name,
                                      const StageFields& fields,
                                      const Message& message) const {
    TaskCommand command;
    command.command = name;
    // Words come after all flags.
    for (const bool words : {false, true}) {
      for (const StageField& row : fields) {
        if (row.flag().empty() != words) continue;
        const auto found = FindField(message, row.field());
        if (!found.has_value()) continue;
        REQUANT_RETURN_IF_ERROR(Add(row, *found, &command));
      }
    }
    return command;
  }

  absl::Status Add(const StageField& row, const FoundField& found,
                   TaskCommand* command) const {
    switch (row.kind()) {
      case StageField::CONSTANT:
        if (row.field().empty() || found.IsSet()) {
          command->args.push_back({"", row.flag()});
        }
        break;
      case StageField::VALUE:
        AddFlag(row.flag(), found.Text(), command);
        break;
      case StageField::TARGET:
        AddFlag(row.flag(),
                found.Text() == "host" ? settings_.host_target : found.Text(),
                command);
        break;
      case StageField::TRANSFORMS:
        return AddTransforms(
            row, static_cast<const TransformStage&>(*found.message), command);
      case StageField::INPUT:
      case StageField::PATH:
        return AddInputs(row, command);
      case StageField::OUTPUT:
        return AddOutput(row, command);
      case StageField::STREAMS:
        if (settings_.streams > 1) {
          AddFlag(row.flag(), absl::StrCat(settings_.streams), command);
          AddFlag("threads", "1", command);
        }
        break;
      default:
        break;
    }
    return absl::OkStatus();
  }

  // Leaves the flag out when the value is empty.
  static void AddFlag(const std::string& flag, const std::string& value,
                      TaskCommand* command) {
    if (!value.empty()) command->args.push_back({flag, value});
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
    AddFlag(row.flag(), FillInFiles(transform.transforms(), files), command);
    return absl::OkStatus();
  }

  absl::Status AddInputs(const StageField& row, TaskCommand* command) const {
    std::vector<std::string> paths = Inputs(row.role());
    if (paths.empty() && !row.may_lack()) return LacksFile("input", row.role());
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
    return absl::OkStatus();
  }

  absl::Status AddOutput(const StageField& row, TaskCommand* command) const {
    const std::string path = Output(row.role());
    if (path.empty() && !row.may_lack()) return LacksFile("output", row.role());
    if (row.flag() == ">") {
      command->stdout_file = path;
    } else if (row.flag().empty() || !path.empty() || row.even_empty()) {
      command->args.push_back({row.flag(), path});
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

std::string TaskArgument::Text() const {
  return flag.empty() ? value : absl::StrCat("--", flag, "=", value);
}

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

}  // namespace requant
