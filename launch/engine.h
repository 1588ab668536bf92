#ifndef REQUANT_LAUNCH_ENGINE_H_
#define REQUANT_LAUNCH_ENGINE_H_

// Docker: whether it is there, runs, and has the image. Its client is asked
// without a shell.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/mount.h"

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

// Returns the parts of a text between separators, but for empty ones.
std::vector<std::string> Split(std::string_view text, char separator);

// Replaces this process, which has one thread only, by a program, or ends it
// with code 127.
[[noreturn]] void Exec(const std::vector<std::string>& argv);

// Returns the exit code of a process as a shell gives it: 128 + n after signal
// n. `status` comes from waitpid.
int ExitCode(int status);

using Clock = std::chrono::steady_clock;

// Returns the time in `seconds` from now.
Clock::time_point After(double seconds);

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

}  // namespace requant::launch

#endif  // REQUANT_LAUNCH_ENGINE_H_
