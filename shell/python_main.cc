// python: knows the scripts of the published documents, and gives any other to
// the real Python, if there is one.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/process/sibling_program.h"
#include "base/process/subprocess.h"
#include "base/program/flags.h"
#include "base/terminal_guard.h"
#include "shell/prepare_model.h"
#include "shell/scripts.h"
#include "workflows/language/shipped_workflows.h"

namespace requant {
namespace {

constexpr char kProgram[] = "python";
constexpr char kPrepareModel[] = "prepare_model.py";
constexpr char kModelFolder[] = "./gpt-j-6B";

int RunPrepareModel(const ScriptCommand& command) {
  if (!command.arguments.empty()) {
    return ReportUsage(kPrepareModel, absl::StrCat("unexpected argument \"",
                                                   command.arguments[0], "\""));
  }
  const auto workflows = ShippedWorkflowsFolder();
  const auto said = PrepareModel(
      kModelFolder, workflows.ok()
                        ? absl::StrCat(*workflows, "/gptj_tiny/saved_model/1")
                        : "");
  // The error has several lines, to be read and copied.
  std::fprintf(
      said.ok() ? stdout : stderr, "%s: %s\n", kPrepareModel,
      said.ok() ? said->c_str() : std::string(said.status().message()).c_str());
  return said.ok() ? kExitOk : kExitFailed;
}

int Main(const std::string& typed, const std::vector<std::string>& args) {
  GuardTerminal();
  const absl::StatusOr<std::string> own_path = OwnPath();
  if (!own_path.ok()) return ReportFailure(kProgram, own_path.status());
  const char* const search_path = std::getenv("PATH");
  const std::string real =
      RealPython(typed.substr(typed.rfind('/') + 1),
                 search_path == nullptr ? "" : search_path,
                 own_path->substr(0, own_path->rfind('/')));
  const std::optional<ScriptCommand> command = ScriptCommandOf(args);
  const bool is_users_file = command.has_value() && command->is_common_name &&
                             access(command->path.c_str(), R_OK) == 0;
  if (command.has_value() && (!is_users_file || real.empty())) {
    if (command->program.empty()) return RunPrepareModel(*command);
    return ReportFailure(
        kProgram, BecomeSiblingProgram(command->room, command->program,
                                       command->arguments, command->path));
  }
  if (is_users_file) {
    Say(kProgram,
        absl::StrCat("note: ", command->path, " is a file here and is run by ",
                     real, "; Requant's own is run where there is none"));
  }
  if (!real.empty()) {
    return ReportFailure(kProgram, BecomeProgram(real, args));
  }
  ReportFailure(kProgram, NoPythonError(args));
  return kExitUsage;
}

}  // namespace
}  // namespace requant

int main(int argc, char** argv) {
  return requant::FinishOutput("python",
                               requant::Main(argv[0], {argv + 1, argv + argc}));
}
