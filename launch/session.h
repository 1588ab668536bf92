#ifndef REQUANT_LAUNCH_SESSION_H_
#define REQUANT_LAUNCH_SESSION_H_

// A session: the engine's command line for it, and its client, which is run so
// that the container does not outlive the session.

#include <sys/types.h>

#include <string>
#include <vector>

#include "launch/engine.h"
#include "launch/mount.h"
#include "launch/options.h"

namespace requant::launch {

// What `--test` runs in the container.
inline constexpr char kSelfTest[] = "requant-self-test";

struct Session {
  Options options;
  Engine engine;
  Identity user;
  // The model directory and the volumes, with resolved sources.
  std::vector<Mount> mounts;
  // Those of the user's groups that own one of the mounts.
  std::vector<gid_t> groups;
  // Part of the container's label, and its name when --name gives none.
  std::string id;
  // Whether the container gets a terminal, and what comes from stdin.
  bool terminal = false;
  bool input = false;
};

// Returns the label that only this session's container has.
std::string SessionLabel(const std::string& session_id);

// Returns the command line, from the client's path on.
std::vector<std::string> ContainerCommand(const Session& session);

// Returns the command line for a shell.
std::string CommandText(const std::vector<std::string>& command);

struct SessionEnd {
  // The client's code as a shell gives it: 128 + n after signal n.
  int exit_code = 1;
  // The last signal that was passed on, or 0.
  int signal = 0;
  // Whether the container is still there: the engine could not remove it.
  bool left_behind = false;
};

// Runs `command`, which is the session's, to its end. Signals that other
// processes send to this one are passed on to the client, which passes them to
// the container; those of the terminal reach the client by themselves. After
// SIGTERM or SIGHUP and --stop-timeout, or a third SIGINT, the container is
// removed by force. A watcher process removes it if this process is killed. On
// return the signals stay blocked: a late one does not change the exit code.
SessionEnd RunSession(const Session& session,
                      const std::vector<std::string>& command);

// Returns what an exit code that engines give a meaning to says, and what to
// do; "" for others. A shell that a person ended passes on the code of the last
// command in it, which needs no explanation.
std::string ExplainEnd(const Session& session, const SessionEnd& end);

}  // namespace requant::launch

#endif  // REQUANT_LAUNCH_SESSION_H_
