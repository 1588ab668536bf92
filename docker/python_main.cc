// python: the image's stand-in, which knows the published recipe's scripts.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/flags.h"
#include "base/sibling_program.h"
#include "docker/python_scripts.h"

namespace requant {
namespace {

constexpr char kProgram[] = "python";

int Main(const std::vector<std::string>& args) {
  const absl::StatusOr<ScriptCommand> command = ScriptCommandOf(args);
  if (!command.ok()) {
    ReportFailure(kProgram, command.status());
    return kExitUsage;
  }
  return ReportFailure(kProgram,
                       BecomeSiblingProgram(command->room, command->program,
                                            command->arguments));
}

}  // namespace
}  // namespace requant

int main(int argc, char** argv) {
  return requant::Main({argv + 1, argv + argc});
}
