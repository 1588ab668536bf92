#include <gflags/gflags.h>

#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/program/flags.h"
#include "base/status_macros.h"
#include "workflows/commands/commands.h"
#include "workflows/language/shipped_workflows.h"
#include "workflows/language/workflow_file.h"
#include "workflows/plan/plan.h"

DEFINE_string(
    set, "",
    "NAME=VALUE: the value of one of the workflow's variables; may be "
    "given several times. Paths start at the current folder.");
DEFINE_string(work_dir, "",
              "The folder that keeps what stages made, so that nothing is done "
              "twice; empty: out/WORKFLOW/work.");

namespace requant {

absl::StatusOr<std::map<std::string, std::string>> TakePairs(
    const std::string& flag, std::string_view form,
    std::vector<std::string>* args) {
  const std::string one_dash = absl::StrCat("-", flag);
  const std::string two_dashes = absl::StrCat("--", flag);
  std::map<std::string, std::string> pairs;
  std::vector<std::string> rest;
  for (size_t i = 0; i < args->size(); ++i) {
    const std::string& arg = (*args)[i];
    if (arg == "--") {
      rest.insert(rest.end(), args->begin() + i, args->end());
      break;
    }
    std::string pair;
    if (arg == one_dash || arg == two_dashes) {
      if (i + 1 == args->size()) {
        return absl::InvalidArgumentError(
            absl::StrCat("flag ", two_dashes, " needs ", form));
      }
      pair = (*args)[++i];
    } else if (absl::StartsWith(arg, one_dash + "=") ||
               absl::StartsWith(arg, two_dashes + "=")) {
      pair = arg.substr(arg.find('=') + 1);
    } else {
      rest.push_back(arg);
      continue;
    }
    const size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(two_dashes, " takes ", form, ", not \"", pair, "\""));
    }
    const std::string name = pair.substr(0, equals);
    if (!pairs.emplace(name, pair.substr(equals + 1)).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(two_dashes, " gives \"", name, "\" twice"));
    }
  }
  *args = std::move(rest);
  return pairs;
}

std::optional<int> ParseWorkflowFlags(const std::vector<std::string>& args,
                                      const ProgramHelp& help,
                                      WorkflowFlags* flags) {
  std::vector<std::string> rest = args;
  auto settings = TakePairs("set", "NAME=VALUE", &rest);
  if (!settings.ok()) {
    return ReportUsage(help.name, settings.status().message());
  }
  flags->settings = *std::move(settings);
  ProgramHelp whole = help;
  absl::StrAppend(&whole.footer, "\n\nWorkflows that come with Requant:\n",
                  ShippedWorkflowsText());
  std::vector<std::string> positional;
  if (auto code = ParseFlags(rest, whole, &positional)) return code;
  if (positional.size() > 1) {
    return ReportUsage(help.name,
                       absl::StrCat("takes one workflow; \"", positional[1],
                                    "\" is one too many"));
  }
  if (!positional.empty()) flags->name = positional[0];
  flags->work_dir = FLAGS_work_dir;
  return std::nullopt;
}

std::string WorkflowFlagsFile() { return __FILE__; }

absl::StatusOr<Plan> PlanOf(const WorkflowFlags& flags) {
  REQUANT_ASSIGN_OR_RETURN(const std::string path, FindWorkflow(flags.name));
  REQUANT_ASSIGN_OR_RETURN(const WorkflowFile file,
                           ReadWorkflowFile(path, flags.settings));
  return MakePlan(file);
}

int ReportMistakes(const std::string& program, const absl::Status& status) {
  // One mistake is reported like any other failure; several mistakes in a file
  // that was read get a line each.
  if (!absl::IsInvalidArgument(status) ||
      !absl::StrContains(status.message(), '\n')) {
    return ReportFailure(program, status);
  }
  std::fprintf(stderr, "%s: the workflow cannot run:\n%s\n", program.c_str(),
               std::string(status.message()).c_str());
  return kExitFailed;
}

}  // namespace requant
