#ifndef REQUANT_WORKFLOWS_COMMANDS_VERIFY_COMMAND_H_
#define REQUANT_WORKFLOWS_COMMANDS_VERIFY_COMMAND_H_

#include <string>
#include <vector>

namespace requant {

// `requant verify MANIFEST`: whether a run's files are still what the run read
// and made. Returns the exit code: 0 if they are.
int RunVerifyCommand(const std::vector<std::string>& args);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_COMMANDS_VERIFY_COMMAND_H_
