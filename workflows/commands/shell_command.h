#ifndef REQUANT_WORKFLOWS_COMMANDS_SHELL_COMMAND_H_
#define REQUANT_WORKFLOWS_COMMANDS_SHELL_COMMAND_H_

#include <string>
#include <vector>

namespace requant {

// `requant shell [-- COMMAND ...]`: becomes a bash, or the command, in which
// the commands of the published documents are found. Returns only with an exit
// code.
int RunShellCommand(const std::vector<std::string>& args);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_COMMANDS_SHELL_COMMAND_H_
