#include <cstdio>
#include <string>
#include <vector>

#include "base/program/flags.h"
#include "workflows/commands/commands.h"
#include "workflows/commands/completion_script.h"

namespace requant {

int RunCompletionCommand(const std::vector<std::string>& args) {
  const ProgramHelp help = {
      "requant completion",
      "prints the script by which bash or zsh completes commands, flags and "
      "the names of workflows. A line in ~/.bashrc is enough: eval \"$(requant "
      "completion bash)\", and in ~/.zshrc the same with zsh.",
      "requant completion bash\n"
      "requant completion zsh",
      {},
      "./requant in a clone is completed too."};
  std::vector<std::string> shells;
  if (auto code = ParseFlags(args, help, &shells)) return *code;
  if (shells.size() != 1 || (shells[0] != "bash" && shells[0] != "zsh")) {
    return ReportUsage(help.name, "name the shell: bash or zsh");
  }
  // One script serves both.
  std::fwrite(kCompletionScript.data(), 1, kCompletionScript.size(), stdout);
  return kExitOk;
}

}  // namespace requant
