#ifndef REQUANT_LAUNCH_SUPERVISOR_H_
#define REQUANT_LAUNCH_SUPERVISOR_H_

// Runs the engine's client for a session and sees to it that the container does
// not outlive the session.

#include <string>
#include <vector>

namespace requant::launch {

struct Supervised {
  // The client's path on PATH and the value of kSessionLabel, by which the
  // session's container is found.
  std::string engine;
  std::string session_id;
  // The command line that runs the container.
  std::vector<std::string> command;
  // How long the container may take to end after SIGTERM or SIGHUP.
  double stop_seconds = 10;
};

struct SessionEnd {
  // The client's, as a shell gives it: 128 + n after signal n.
  int exit_code = 1;
  // The last signal that was passed on, or 0.
  int signal = 0;
  // The container is still there: the engine could not remove it.
  bool left_behind = false;
};

// Runs the session to its end. Signals that other processes send to this one
// are passed on to the client, which passes them to the container; those of the
// terminal reach the client by themselves. After SIGTERM or SIGHUP and
// `stop_seconds`, or a third SIGINT, the container is removed by force. A
// watcher process removes it if this process is killed. On return the signals
// stay blocked: a late one does not change the exit code.
SessionEnd RunSession(const Supervised& supervised);

}  // namespace requant::launch

#endif  // REQUANT_LAUNCH_SUPERVISOR_H_
