#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/process/sibling_program.h"
#include "base/process/subprocess.h"
#include "base/program/flags.h"
#include "base/status_macros.h"
#include "workflows/commands/commands.h"
#include "workflows/language/shipped_workflows.h"

namespace requant {
namespace {

constexpr char kShellProgram[] = "requant shell";

ProgramHelp ShellHelp() {
  ProgramHelp help;
  help.name = kShellProgram;
  help.summary =
      "opens a bash in the current folder, or runs one command, in which the "
      "command lines of the published documents are found as they are "
      "written: python convert.py, python tensorflow/python/tools/"
      "freeze_graph.py, bazel-bin/tensorflow/tools/graph_transforms/"
      "transform_graph and so on, in whatever folder. Any other script goes to "
      "the real Python, if there is one.";
  help.usage =
      "requant shell\n"
      "requant shell -- python convert.py --insert_qdq\n"
      "requant shell < commands.sh";
  help.footer =
      "docs/saved_models.md and docker/README.md list the commands. A file of "
      "yours that is called convert.py, or like another script of the GPT-J "
      "example, goes to the real Python.\n"
      "Exit code: the shell's or the command's; 1 it cannot start, 2 usage.";
  return help;
}

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string FolderOf(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

// Sets the session's variables and returns the file that its shells read.
absl::StatusOr<std::string> PrepareEnvironment() {
  REQUANT_ASSIGN_OR_RETURN(const std::string own_path, OwnPath());
  REQUANT_ASSIGN_OR_RETURN(const std::string python,
                           SiblingProgram(own_path, "shell", "python"));
  REQUANT_ASSIGN_OR_RETURN(const std::string workflows,
                           ShippedWorkflowsFolder());
  const std::string settings =
      absl::StrCat(FolderOf(ResolvedPath(workflows)), "/shell/session.bash");
  if (access(settings.c_str(), R_OK) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", settings));
  }
  const std::string folders =
      absl::StrCat(FolderOf(python), ":", FolderOf(own_path));
  setenv("REQUANT_SHELL_PATH", folders.c_str(), 1);
  const std::string path = Variable("PATH");
  setenv("PATH", absl::StrCat(folders, path.empty() ? "" : ":", path).c_str(),
         1);
  if (Variable("BASH_ENV") != settings) {
    setenv("REQUANT_USER_BASH_ENV", Variable("BASH_ENV").c_str(), 1);
  }
  setenv("BASH_ENV", settings.c_str(), 1);
  return settings;
}

}  // namespace

int RunShellCommand(const std::vector<std::string>& args) {
  // The arguments after "--" are the command.
  const auto dashes = std::find(args.begin(), args.end(), "--");
  const std::vector<std::string> command(
      dashes == args.end() ? dashes : dashes + 1, args.end());
  std::vector<std::string> positional;
  if (auto code =
          ParseFlags({args.begin(), dashes}, ShellHelp(), &positional)) {
    return *code;
  }
  if (!positional.empty() || (dashes != args.end() && command.empty())) {
    return ReportUsage(kShellProgram, "put the command after --");
  }
  const absl::StatusOr<std::string> settings = PrepareEnvironment();
  if (!settings.ok()) return ReportFailure(kShellProgram, settings.status());
  std::vector<std::string> words = {"--rcfile", *settings};
  if (!command.empty()) {
    words = {"-c", "\"$@\"", "bash"};
    words.insert(words.end(), command.begin(), command.end());
  }
  return ReportFailure(kShellProgram, BecomeProgram("bash", words));
}

}  // namespace requant
