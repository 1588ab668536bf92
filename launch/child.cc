#include "launch/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace requant::launch {
namespace {

// More than this of an answer is dropped.
constexpr size_t kLongestAnswer = 1 << 20;

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

// Reads both pipes until they end. Returns false if the time was over before.
bool ReadBoth(int out, int error, double timeout_seconds, Answer* answer) {
  const Clock::time_point end = After(timeout_seconds);
  while (out >= 0 || error >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - Clock::now());
    if (left.count() <= 0) break;
    // poll ignores negative descriptors.
    pollfd fds[] = {{out, POLLIN, 0}, {error, POLLIN, 0}};
    if (poll(fds, 2, static_cast<int>(left.count())) <= 0) continue;
    if (fds[0].revents != 0) Drain(&out, &answer->out);
    if (fds[1].revents != 0) Drain(&error, &answer->error);
  }
  for (int fd : {out, error}) {
    if (fd >= 0) close(fd);
  }
  return out < 0 && error < 0;
}

}  // namespace

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
  const pid_t pid = fork();
  if (pid == 0) {
    if (own_group) setpgid(0, 0);
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    dup2(error[1], STDERR_FILENO);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    Exec(argv);
  }
  close(out[1]);
  close(error[1]);
  answer.timed_out = !ReadBoth(out[0], error[0], timeout_seconds, &answer);
  if (pid < 0) return answer;
  if (answer.timed_out) kill(pid, SIGKILL);
  int status = 0;
  (void)TEMP_FAILURE_RETRY(waitpid(pid, &status, 0));
  answer.exit_code = ExitCode(status);
  return answer;
}

std::string FindOnPath(const std::string& name) {
  const char* path = std::getenv("PATH");
  if (path == nullptr) path = "/usr/local/bin:/usr/bin:/bin";
  for (const std::string& folder : Split(path, ':')) {
    const std::string file = folder + "/" + name;
    struct stat info;
    if (stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
        access(file.c_str(), X_OK) == 0) {
      return file;
    }
  }
  return "";
}

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

void Exec(const std::vector<std::string>& argv) {
  std::vector<char*> pointers;
  for (const std::string& word : argv) {
    pointers.push_back(const_cast<char*>(word.c_str()));
  }
  pointers.push_back(nullptr);
  execv(pointers[0], pointers.data());
  _exit(127);
}

int ExitCode(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Clock::time_point After(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(seconds));
}

}  // namespace requant::launch
