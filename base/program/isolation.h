#ifndef REQUANT_BASE_PROGRAM_ISOLATION_H_
#define REQUANT_BASE_PROGRAM_ISOLATION_H_

// Stock transforms and plugins can abort on a user's graph. A program that runs
// them does so in a child of itself and explains the child's death in a
// sentence.

#include <functional>
#include <string>
#include <vector>

namespace requant {

struct IsolationOptions {
  // For messages, as typed.
  std::string program;
  // The program's own arguments, handed to the child.
  std::vector<std::string> arguments;
  // Files and whole folders the child writes, and folders it writes into; what
  // it leaves half-written is removed.
  std::vector<std::string> outputs;
  std::vector<std::string> output_folders;
  // What was being worked on, for messages: the input graph.
  std::string subject;
  double timeout_seconds = 0;
};

// In `work` of RunIsolated: what is done from now on, to be named if the
// process dies of it, such as "the transform \"fold_constants\" (2 of 3)".
void SetActivity(const std::string& activity);

// Does `work` in a child process: this program started again with the same
// arguments, which comes to this same call. Passes the child's output on and
// returns the exit code for main: the one `work` returned, or kExitFailed after
// one sentence about the child's death, or 128 + signal when interrupted. A
// child that ends in any other way than by returning from `work`, even with
// exit(0), has died. It leaves no core file. One that dies of an instruction
// that the CPU does not run gets a second try
// (base/process/tensorflow_child.h), for which nothing comes twice: stdout is
// held back until `work` returns.
int RunIsolated(const IsolationOptions& options,
                const std::function<int()>& work);

}  // namespace requant

#endif  // REQUANT_BASE_PROGRAM_ISOLATION_H_
