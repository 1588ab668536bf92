#include <gflags/gflags.h>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/program/flags.h"
#include "workflows/commands/commands.h"
#include "workflows/plan/plan.h"

// This is the file's only flag, so that other commands can share the file.
DEFINE_string(format, "text",
              "How to print the result: text or json; a plan also as dot or "
              "mermaid.");

namespace requant {
namespace {

constexpr char kPlanProgram[] = "requant plan";

using Renderer = std::string (*)(const Plan& plan,
                                 const std::vector<TaskOutlook>& states);

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

const std::string& OutputFormatFlag() { return FLAGS_format; }

std::string OutputFormatFlagFile() { return __FILE__; }

int RunPlanCommand(const std::vector<std::string>& args) {
  WorkflowFlags flags;
  if (auto code = ParseWorkflowFlags(args, PlanHelp(), &flags)) return *code;
  static const auto* const renderers =
      new std::map<std::string, Renderer>{{"text", PlanAsText},
                                          {"json", PlanAsJson},
                                          {"dot", PlanAsDot},
                                          {"mermaid", PlanAsMermaid}};
  const auto render = renderers->find(FLAGS_format);
  if (render == renderers->end()) {
    return ReportUsage(
        kPlanProgram,
        absl::StrCat("--format is text, dot, mermaid or json, not \"",
                     FLAGS_format, "\""));
  }
  const absl::StatusOr<Plan> plan = PlanOf(flags);
  if (!plan.ok()) return ReportMistakes(kPlanProgram, plan.status());
  const absl::StatusOr<std::vector<TaskOutlook>> states =
      FindTaskStates(*plan, flags.work_dir);
  if (!states.ok()) return ReportFailure(kPlanProgram, states.status());
  std::fputs(render->second(*plan, *states).c_str(), stdout);
  return kExitOk;
}

}  // namespace requant
