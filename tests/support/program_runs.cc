#include "tests/support/program_runs.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "absl/strings/match.h"
#include "base/files/file.h"
#include "re2/re2.h"

namespace requant {

ProgramRun MustRun(const std::string& program, const Words& arguments) {
  ProgramRun run = RunProgram(program, arguments);
  EXPECT_THAT(run, Exits(0)) << program;
  return run;
}

ProgramRun RunIn(const TestFolder& folder, const std::string& program,
                 const Words& arguments, const Words& variables) {
  return RunProgram("/usr/bin/env",
                    Joined({"--chdir=" + folder.Path(""),
                            std::filesystem::absolute(program).string()},
                           arguments),
                    variables);
}

void Exec(Words line) {
  std::vector<char*> argv;
  for (std::string& word : line) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  _exit(127);
}

pid_t StartProgram(const std::string& program, const Words& arguments) {
  const Words line = CommandLine(program, arguments);
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
  // The file becomes unreadable when the process ends, even during the read.
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

double NumberIn(const std::string& text, const std::string& pattern) {
  double number = -1;
  EXPECT_TRUE(RE2::PartialMatch(text, pattern, &number)) << pattern << "\n"
                                                         << text;
  return number;
}

std::string CsvDeclaration(int width, bool label,
                           const std::string& placeholder) {
  return absl::StrCat(
      "csv { files: 'data.csv' }\ninput { feature: 'x' placeholder: '",
      placeholder, "' dtype: 'float' shape: ", width, " }\n",
      label ? "label { feature: 'label' dtype: 'int64' }\n" : "",
      "prediction { tensor: 'predict' }\n");
}

SmallDisk::SmallDisk(const std::string& path, const std::string& size)
    : path_(path) {
  std::filesystem::create_directories(path);
  mounted_ = mount("tmpfs", path.c_str(), "tmpfs", 0, size.c_str()) == 0;
}

SmallDisk::~SmallDisk() {
  if (mounted_) umount2(path_.c_str(), MNT_DETACH);
}

}  // namespace requant
