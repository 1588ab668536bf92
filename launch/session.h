#ifndef REQUANT_LAUNCH_SESSION_H_
#define REQUANT_LAUNCH_SESSION_H_

// Docker: whether it is there, runs, and has the image; and a session in it:
// the command line, and Docker's client, which is run so that the container
// does not outlive the session. No shell has a part in that.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/mount.h"
#include "launch/options.h"

namespace requant::launch {

struct Answer {
  // As a shell gives it: 128 + 9 after a timeout, 127 when it did not start.
  int exit_code = 127;
  bool timed_out = false;
  std::string out;
  std::string error;
};

// Runs a program (by its path) with nothing to read until it ends, or kills it
// after `timeout_seconds`. With `own_group` it is out of reach of the
// terminal's Ctrl-C.
Answer Ask(const std::vector<std::string>& argv, double timeout_seconds,
           bool own_group = false);

// Returns the path of the executable `name` on PATH, or "".
std::string FindOnPath(const std::string& name);

struct Engine {
  // The client's path.
  std::string path;
  std::string version;
  // Those of the machine that it runs containers on; 0 if they are unknown.
  int64_t cpus = 0;
  int64_t memory_bytes = 0;
};

// Returns the engine, which runs and has the image.
Result<Engine> FindEngine(const std::string& image);

// Fails if there is a container of that name already.
std::optional<Failure> CheckContainerName(const Engine& engine,
                                          const std::string& name);

// Reads what `docker info` printed; returns nullopt if the engine itself did
// not answer.
std::optional<Engine> ParseInfo(const std::string& text);

// Returns why the engine did not answer, and what to do.
Failure ExplainSilence(const Answer& answer);

// Returns why there is no such image, and what to do.
Failure ExplainMissingImage(const std::string& image, const Answer& answer);

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
