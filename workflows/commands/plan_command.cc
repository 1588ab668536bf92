#include "workflows/commands/plan_command.h"

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/program/flags.h"
#include "workflows/commands/format_flag.h"
#include "workflows/commands/workflow_flags.h"
#include "workflows/plan/plan_text.h"

namespace requant {
namespace {

constexpr char kPlanProgram[] = "requant plan";

using Renderer = std::string (*)(const Plan& plan,
                                 const std::vector<TaskOutlook>& states);

// Null for a word that is no format.
Renderer FindRenderer(const std::string& format) {
  if (format == "text") return PlanAsText;
  if (format == "json") return PlanAsJson;
  if (format == "dot") return PlanAsDot;
  if (format == "mermaid") return PlanAsMermaid;
  return nullptr;
}

ProgramHelp PlanHelp() {
  ProgramHelp help;
  help.name = kPlanProgram;
  help.summary =
      "says what a workflow would do, in order: what each task reads and "
      "writes, what is cached and what would run, and why. Everything that can "
      "be checked before running is. FILE is a path or the name of a workflow "
      "that comes with Requant; wide_deep unless given.";
  help.usage =
      "requant plan [FILE] [--set NAME=VALUE ...]\n"
      "requant plan wide_deep_fast --format=dot | dot -Tsvg > plan.svg";
  help.flag_files = {WorkflowFlagsFile(), OutputFormatFlagFile()};
  help.footer = "Exit codes: 0 it can run, 1 it cannot, 2 wrong usage.";
  return help;
}

}  // namespace

int RunPlanCommand(const std::vector<std::string>& args,
                   const TaskStateFinder& find_states) {
  WorkflowFlags flags;
  if (auto code = ParseWorkflowFlags(args, PlanHelp(), &flags)) return *code;
  const Renderer render = FindRenderer(OutputFormatFlag());
  if (render == nullptr) {
    return ReportUsage(
        kPlanProgram,
        absl::StrCat("--format is text, dot, mermaid or json, not \"",
                     OutputFormatFlag(), "\""));
  }
  const absl::StatusOr<Plan> plan = PlanOf(flags);
  if (!plan.ok()) return ReportMistakes(kPlanProgram, plan.status());
  std::vector<TaskOutlook> states;
  if (find_states != nullptr) {
    auto found = find_states(*plan, flags.work_dir);
    if (!found.ok()) return ReportFailure(kPlanProgram, found.status());
    states = *std::move(found);
  }
  std::fputs(render(*plan, states).c_str(), stdout);
  return kExitOk;
}

}  // namespace requant
