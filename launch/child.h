#ifndef REQUANT_LAUNCH_CHILD_H_
#define REQUANT_LAUNCH_CHILD_H_

// Engine clients that answer a question. Never through a shell.

#include <string>
#include <vector>

namespace requant::launch {

struct Answer {
  // As a shell gives it; 128 + 9 after a timeout, 127 when it did not start.
  int exit_code = 127;
  bool timed_out = false;
  std::string out;
  std::string error;
};

// Runs a program (by its path) with nothing to read until it ends, or kills it
// after `timeout_seconds`. `own_group`: it is out of reach of the terminal's
// Ctrl-C.
Answer Ask(const std::vector<std::string>& argv, double timeout_seconds,
           bool own_group = false);

// The path of the executable `name` on PATH, or "".
std::string FindOnPath(const std::string& name);

// argv as execv takes it; points into `words`.
std::vector<char*> Pointers(const std::vector<std::string>& words);

}  // namespace requant::launch

#endif  // REQUANT_LAUNCH_CHILD_H_
