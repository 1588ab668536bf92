#ifndef REQUANT_WORKFLOWS_COMMANDS_CACHE_COMMAND_H_
#define REQUANT_WORKFLOWS_COMMANDS_CACHE_COMMAND_H_

#include <string>
#include <vector>

namespace requant {

// `requant cache [size|list|prune] [FOLDER ...]`: what work folders keep, and
// removing some of it. Returns the exit code.
int RunCacheCommand(const std::vector<std::string>& args);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_COMMANDS_CACHE_COMMAND_H_
