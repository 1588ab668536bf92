#ifndef REQUANT_LAUNCH_SUPERVISOR_H_
#define REQUANT_LAUNCH_SUPERVISOR_H_

// Runs the engine's client for a session and sees to it that the container does
// not outlive the session.

#include <string>
#include <vector>

#include "launch/container_command.h"

namespace requant::launch {

struct SessionEnd {
  // Is the client's, as a shell gives it: 128 + n after signal n.
  int exit_code = 1;
  // Is the last signal that was passed on, or 0.
  int signal = 0;
  // Says that the container is still there: the engine could not remove it.
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

#endif  // REQUANT_LAUNCH_SUPERVISOR_H_
