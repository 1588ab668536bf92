#ifndef REQUANT_LAUNCH_CHILD_H_
#define REQUANT_LAUNCH_CHILD_H_

// Engine clients that answer a question. Nothing goes through a shell.

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace requant::launch {

struct Answer {
  // Is as a shell gives it: 128 + 9 after a timeout, 127 when it did not start.
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

}  // namespace requant::launch

#endif  // REQUANT_LAUNCH_CHILD_H_
