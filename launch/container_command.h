#ifndef REQUANT_LAUNCH_CONTAINER_COMMAND_H_
#define REQUANT_LAUNCH_CONTAINER_COMMAND_H_

// The engine's command line for a session.

#include <sys/types.h>

#include <string>
#include <vector>

#include "launch/engine.h"
#include "launch/identity.h"
#include "launch/mount.h"
#include "launch/options.h"

namespace requant::launch {

// The label whose value tells a session's container from all others.
inline constexpr char kSessionLabel[] = "requant.session";

// What `--test` runs in the container.
inline constexpr char kSelfTest[] = "requant-self-test";

struct Session {
  Options options;
  Engine engine;
  Identity user;
  // The model directory and the volumes, with resolved sources.
  std::vector<Mount> mounts;
  // Groups of the user's that own one of these.
  std::vector<gid_t> groups;
  // The value of kSessionLabel, and the container's name when none is asked
  // for.
  std::string id;
  // Whether the container gets a terminal, and what comes from stdin.
  bool terminal = false;
  bool input = false;
};

// The command line, from the client's path on.
std::vector<std::string> ContainerCommand(const Session& session);

// The same for a shell.
std::string CommandText(const std::vector<std::string>& command);

// Limits that are asked for or usual, and that this engine cannot keep.
std::vector<std::string> MissingLimits(const Session& session);

}  // namespace requant::launch

#endif  // REQUANT_LAUNCH_CONTAINER_COMMAND_H_
