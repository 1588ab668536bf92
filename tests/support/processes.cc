#include "tests/support/processes.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "absl/strings/match.h"
#include "base/files/file.h"
#include "graph/testing/program.h"

namespace requant {

void Exec(std::vector<std::string> line) {
  std::vector<char*> argv;
  for (std::string& word : line) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  _exit(127);
}

pid_t StartProgram(const std::string& program,
                   const std::vector<std::string>& arguments) {
  const std::vector<std::string> line = CommandLine(program, arguments);
  const pid_t pid = fork();
  if (pid == 0) {
    setpgid(0, 0);
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    for (int fd : {STDOUT_FILENO, STDERR_FILENO}) dup2(null, fd);
    Exec(line);
  }
  setpgid(pid, pid);
  return pid;
}

bool IsAlive(pid_t pid) {
  // Unreadable once the process is gone, even in the middle of reading.
  const auto stat = ReadFile(absl::StrCat("/proc/", pid, "/stat"));
  return stat.ok() && !stat->empty() && !absl::StrContains(*stat, ") Z ");
}

void WaitUntilGone(pid_t pid) {
  while (IsAlive(pid)) std::this_thread::yield();
}

int WaitForExitCode(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace requant
