// python: knows the scripts of the published documents, and gives any other to
// the real Python, if there is one.

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/flags.h"
#include "base/sibling_program.h"
#include "base/subprocess.h"
#include "shell/prepare_model.h"
#include "shell/scripts.h"
#include "workflows/shipped_workflows.h"

namespace requant {
namespace {

constexpr char kProgram[] = "python";
constexpr char kModelFolder[] = "./gpt-j-6B";

int RunPrepareModel(const ScriptCommand& command) {
  const std::string program = "prepare_model.py";
  if (!command.arguments.empty()) {
    std::fprintf(stderr,
                 "%s: unexpected argument \"%s\": it takes none, and looks for "
                 "the model in %s\n",
                 program.c_str(), command.arguments[0].c_str(), kModelFolder);
    return kExitUsage;
  }
  const auto workflows = ShippedWorkflowsFolder();
  const auto said = PrepareModel(
      kModelFolder, workflows.ok()
                        ? absl::StrCat(*workflows, "/gptj_tiny/saved_model/1")
                        : "");
  if (!said.ok()) {
    // Several lines, to be read and copied.
    std::fprintf(stderr, "%s: %s\n", program.c_str(),
                 std::string(said.status().message()).c_str());
    return kExitFailed;
  }
  std::printf("%s: %s\n", program.c_str(), said->c_str());
  return kExitOk;
}

int BecomeRealPython(const std::string& path,
                     const std::vector<std::string>& args) {
  std::vector<char*> argv = {const_cast<char*>(path.c_str())};
  for (const std::string& arg : args) {
    argv.push_back(const_cast<char*>(arg.c_str()));
  }
  argv.push_back(nullptr);
  execv(path.c_str(), argv.data());
  return ReportFailure(kProgram,
                       absl::FailedPreconditionError(absl::StrCat(
                           "cannot start ", path, ": ", std::strerror(errno))));
}

int Main(const std::string& typed, const std::vector<std::string>& args) {
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
    return ReportFailure(kProgram,
                         BecomeSiblingProgram(command->room, command->program,
                                              command->arguments));
  }
  if (is_users_file) {
    std::fprintf(stderr,
                 "%s: note: %s is a file here and is run by %s; Requant's own "
                 "is run where there is none\n",
                 kProgram, command->path.c_str(), real.c_str());
  }
  if (!real.empty()) return BecomeRealPython(real, args);
  ReportFailure(kProgram, NoPythonError(args));
  return kExitUsage;
}

}  // namespace
}  // namespace requant

int main(int argc, char** argv) {
  return requant::FinishOutput("python",
                               requant::Main(argv[0], {argv + 1, argv + argc}));
}
