#ifndef REQUANT_LAUNCH_SESSION_H_
#define REQUANT_LAUNCH_SESSION_H_

// Docker: checks that it is installed, runs, and has the image. Sessions:
// builds the command line and runs Docker's client so that the container does
// not outlive the session. No shell is involved.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/mount.h"
#include "launch/options.h"

namespace requant::launch {

struct Answer {
  // As a shell gives it: 128 + 9 after a timeout, 127 if it did not start.
  int exit_code = 127;
  bool timed_out = false;
  std::string out;
  std::string error;
};

// Runs a program (given by its path) with empty stdin until it ends, or kills
// it after `timeout_seconds`. With `own_group` the terminal's Ctrl-C does not
// reach it.
Answer Ask(const std::vector<std::string>& argv, double timeout_seconds,
           bool own_group = false);

// Returns the path of the executable `name` on PATH, or "".
std::string FindOnPath(const std::string& name);

struct Engine {
  // The path of Docker's client.
  std::string path;
  std::string version;
  // The machine on which containers run; 0 if unknown.
  int64_t cpus = 0;
  int64_t memory_bytes = 0;
};

// Returns the engine if it is running and has the image.
Result<Engine> FindEngine(const std::string& image);

// Fails if a container with that name exists.
std::optional<Failure> CheckContainerName(const Engine& engine,
                                          const std::string& name);

// Parses the output of `docker info`; returns nullopt if the engine itself did
// not answer.
std::optional<Engine> ParseInfo(const std::string& text);

// Returns why the engine did not answer and what to do.
Failure ExplainSilence(const Answer& answer);

// Returns why the image is missing and what to do.
Failure ExplainMissingImage(const std::string& image, const Answer& answer);

// What `--test` runs in the container.
inline constexpr char kSelfTest[] = "requant-self-test";

struct Session {
  Options options;
  Engine engine;
  Identity user;
  // The mounts of the model directory and volumes, with resolved sources.
  std::vector<Mount> mounts;
  // The user's groups that own one of the mounts.
  std::vector<gid_t> groups;
  // Part of the container's label, and its name unless --name gives one.
  std::string id;
  // Whether the container gets a terminal, and whether it gets stdin.
  bool terminal = false;
  bool input = false;
};

// Returns the label that only this session's container has.
std::string SessionLabel(const std::string& session_id);

// Returns the command line, starting with the client's path.
std::vector<std::string> ContainerCommand(const Session& session);

// Returns the command line as shell text.
std::string CommandText(const std::vector<std::string>& command);

struct SessionEnd {
  // The client's code as a shell gives it: 128 + n after signal n.
  int exit_code = 1;
  // The last signal that was passed on, or 0.
  int signal = 0;
  // Whether the container still exists because the engine could not remove it.
  bool left_behind = false;
};

// Runs `command`, the session's own, to its end. Signals that other processes
// send to this one are passed on to the client, which passes them to the
// container; the terminal's signals reach the client directly. After SIGTERM or
// SIGHUP and --stop-timeout, or a third SIGINT, the container is removed by
// force. A watcher process removes it if this process is killed. On return the
// signals stay blocked, so that a late one does not change the exit code.
SessionEnd RunSession(const Session& session,
                      const std::vector<std::string>& command);

// Explains an exit code to which engines assign a meaning, and what to do;
// returns "" for others. A shell that the user exited returns the code of its
// last command, which needs no explanation.
std::string ExplainEnd(const Session& session, const SessionEnd& end);

}  // namespace requant::launch

#endif  // REQUANT_LAUNCH_SESSION_H_
