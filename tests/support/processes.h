#ifndef REQUANT_TESTS_SUPPORT_PROCESSES_H_
#define REQUANT_TESTS_SUPPORT_PROCESSES_H_

// For tests that look at, interrupt or kill a program while it runs.

#include <sys/types.h>

#include <string>
#include <vector>

namespace requant {

// Becomes the program whose command line this is; for a child after a fork.
[[noreturn]] void Exec(std::vector<std::string> line);

// Starts a program as RunProgram does, in a process group of its own, and
// returns at once. What it prints goes nowhere.
pid_t StartProgram(const std::string& program,
                   const std::vector<std::string>& arguments);

// Returns whether the process runs; one that ended and was not waited for does
// not.
bool IsAlive(pid_t pid);
// Waits until it does not run any more. The test's own time limit ends what
// never comes.
void WaitUntilGone(pid_t pid);

// Waits for a child of the test to end by itself and returns its exit code; -1
// when a signal ended it.
int WaitForExitCode(pid_t pid);

}  // namespace requant

#endif  // REQUANT_TESTS_SUPPORT_PROCESSES_H_
