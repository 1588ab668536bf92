#include "tests/support/processes.h"

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "graph/testing/program.h"

namespace requant {
namespace {

std::vector<pid_t> ChildrenOf(pid_t parent) {
  std::vector<pid_t> children;
  std::ifstream file(
      absl::StrCat("/proc/", parent, "/task/", parent, "/children"));
  for (pid_t child; file >> child;) children.push_back(child);
  return children;
}

}  // namespace

Running StartUntilItHasAWorker(const std::string& program,
                               const std::vector<std::string>& arguments) {
  // With a cap in the environment no instruction set is tried in a child.
  std::vector<std::string> line =
      CommandLine(program, arguments, {"ONEDNN_MAX_CPU_ISA=AVX2"});
  std::vector<char*> argv;
  for (std::string& word : line) argv.push_back(word.data());
  argv.push_back(nullptr);
  Running running;
  running.program = fork();
  if (running.program == 0) {
    execv(argv[0], argv.data());
    _exit(127);
  }
  running.worker = WaitForChildOf(running.program);
  return running;
}

pid_t WaitForChildOf(pid_t parent) {
  pid_t found = 0;
  while (found == 0 && IsAlive(parent)) {
    for (pid_t child : ChildrenOf(parent)) found = child;
    std::this_thread::yield();
  }
  return found;
}

bool IsAlive(pid_t pid) {
  // Unreadable once the process is gone, even in the middle of reading.
  const auto stat = ReadFile(absl::StrCat("/proc/", pid, "/stat"));
  return stat.ok() && !stat->empty() && !absl::StrContains(*stat, ") Z ");
}

int WaitForExitCode(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace requant
