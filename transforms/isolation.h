#ifndef REQUANT_TRANSFORMS_ISOLATION_H_
#define REQUANT_TRANSFORMS_ISOLATION_H_

// Stock transforms and plugins can abort on a user's graph. A program that runs
// them does so in a child of itself and explains the child's death in a
// sentence.

#include <string>
#include <vector>

namespace requant {

struct IsolationOptions {
  // For messages, as typed.
  std::string program;
  // The program's own arguments, handed to the child.
  std::vector<std::string> arguments;
  // Files the child writes; what it leaves half-written is removed.
  std::vector<std::string> outputs;
  // What was being worked on, for messages: the input graph.
  std::string subject;
  double timeout_seconds = 0;
};

// Whether this process is such a child.
bool IsIsolatedChild();

// In a child: what it does from now on, to be named if it dies of it, such as
// "transform \"fold_constants\" (2 of 3)".
void SetActivity(const std::string& activity);

// Runs this program again as a child with the same arguments and passes its
// output on. Returns the exit code for main: the child's, or kExitFailed after
// one sentence about its death, or 128 + signal when interrupted.
int RunIsolated(const IsolationOptions& options);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_ISOLATION_H_
