#include "launch/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace requant::launch {
namespace {

using Clock = std::chrono::steady_clock;

// More than this of an answer is dropped.
constexpr size_t kLongestAnswer = 1 << 20;

[[noreturn]] void ExecAnswering(char** argv, int out, int error,
                                bool own_group) {
  if (own_group) setpgid(0, 0);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(error, STDERR_FILENO);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execv(argv[0], argv);
  _exit(127);
}

// Appends what can be read; closes the descriptor at the end.
void Drain(int* fd, std::string* text) {
  char buffer[4096];
  const ssize_t n = read(*fd, buffer, sizeof(buffer));
  if (n < 0 && errno == EINTR) return;
  if (n <= 0) {
    close(*fd);
    *fd = -1;
  } else if (text->size() < kLongestAnswer) {
    text->append(buffer, n);
  }
}

// Reads both pipes until they end. False: the time was over before.
bool ReadBoth(int out, int error, double timeout_seconds, Answer* answer) {
  const Clock::time_point end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(timeout_seconds));
  while (out >= 0 || error >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - Clock::now());
    // poll ignores negative descriptors.
    pollfd fds[] = {{out, POLLIN, 0}, {error, POLLIN, 0}};
    if (left.count() <= 0) break;
    if (poll(fds, 2, static_cast<int>(left.count())) <= 0) continue;
    if (fds[0].revents != 0) Drain(&out, &answer->out);
    if (fds[1].revents != 0) Drain(&error, &answer->error);
  }
  const bool complete = out < 0 && error < 0;
  if (out >= 0) close(out);
  if (error >= 0) close(error);
  return complete;
}

}  // namespace

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) {
    pointers.push_back(const_cast<char*>(word.c_str()));
  }
  pointers.push_back(nullptr);
  return pointers;
}

Answer Ask(const std::vector<std::string>& argv, double timeout_seconds,
           bool own_group) {
  Answer answer;
  int out[2], error[2];
  if (pipe2(out, O_CLOEXEC) != 0) return answer;
  if (pipe2(error, O_CLOEXEC) != 0) {
    close(out[0]);
    close(out[1]);
    return answer;
  }
  const std::vector<char*> pointers = Pointers(argv);
  const pid_t pid = fork();
  if (pid == 0) {
    ExecAnswering(const_cast<char**>(pointers.data()), out[1], error[1],
                  own_group);
  }
  close(out[1]);
  close(error[1]);
  answer.timed_out = !ReadBoth(out[0], error[0], timeout_seconds, &answer);
  if (pid < 0) return answer;
  if (answer.timed_out) kill(pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  answer.exit_code =
      WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return answer;
}

std::string FindOnPath(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string_view rest =
      path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
    if (folder.empty()) continue;
    const std::string file = std::string(folder) + "/" + name;
    struct stat info;
    if (stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
        access(file.c_str(), X_OK) == 0) {
      return file;
    }
  }
  return "";
}

}  // namespace requant::launch
