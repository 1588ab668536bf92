#ifndef REQUANT_TESTS_SUPPORT_PROCESSES_H_
#define REQUANT_TESTS_SUPPORT_PROCESSES_H_

// For tests that interrupt a program while its worker runs.

#include <sys/types.h>

#include <string>
#include <vector>

namespace requant {

struct Running {
  pid_t program = 0;
  // 0 when the program ended without one.
  pid_t worker = 0;
};

// Starts a program as RunProgram does and returns once it has a child.
Running StartUntilItHasAWorker(const std::string& program,
                               const std::vector<std::string>& arguments);

// Waits until a process has a child and returns that; 0 when it ends without
// one.
pid_t WaitForChildOf(pid_t parent);

// Whether the process runs; one that ended and was not waited for does not.
bool IsAlive(pid_t pid);

// Waits for a child of the test to end by itself and returns its exit code; -1
// when a signal ended it.
int WaitForExitCode(pid_t pid);

}  // namespace requant

#endif  // REQUANT_TESTS_SUPPORT_PROCESSES_H_
