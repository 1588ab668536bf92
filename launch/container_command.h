#ifndef REQUANT_LAUNCH_CONTAINER_COMMAND_H_
#define REQUANT_LAUNCH_CONTAINER_COMMAND_H_

// The engine's command line for a session.

#include <sys/types.h>

#include <string>
#include <vector>

#include "launch/engine.h"
#include "launch/mount.h"
#include "launch/options.h"

namespace requant::launch {

// Is what `--test` runs in the container.
inline constexpr char kSelfTest[] = "requant-self-test";

struct Session {
  Options options;
  Engine engine;
  Identity user;
  // Has the model directory and the volumes, with resolved sources.
  std::vector<Mount> mounts;
  // Has those of the user's groups that own one of the mounts.
  std::vector<gid_t> groups;
  // Is in the container's label, and is its name when --name gives none.
  std::string id;
  // Say whether the container gets a terminal, and what comes from stdin.
  bool terminal = false;
  bool input = false;
};

// Returns the label that tells a session's container from all others.
std::string SessionLabel(const std::string& session_id);

// Returns the command line, from the client's path on.
std::vector<std::string> ContainerCommand(const Session& session);

// Returns the same for a shell.
std::string CommandText(const std::vector<std::string>& command);

}  // namespace requant::launch

#endif  // REQUANT_LAUNCH_CONTAINER_COMMAND_H_
