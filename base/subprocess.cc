#include "base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

extern char** environ;

namespace requant {
namespace {

using Clock = std::chrono::steady_clock;
using LineCallback = std::function<void(std::string_view)>;

// Lines longer than this are handed on in pieces, so that a child cannot make
// its parent hold any amount of text.
constexpr size_t kLongestLine = 1 << 20;

constexpr int kForwardedSignals[] = {SIGINT, SIGTERM, SIGHUP};

// Read by the signal handler.
std::atomic<pid_t> forward_to{0};
std::atomic<int> forwarded_signal{0};

void ForwardSignal(int signal_number) {
  forwarded_signal = signal_number;
  const pid_t pid = forward_to;
  if (pid > 0) kill(pid, signal_number);
}

// Passes signals on to the child while it lives.
class SignalForwarding {
 public:
  SignalForwarding() {
    forwarded_signal = 0;
    struct sigaction action = {};
    action.sa_handler = ForwardSignal;
    for (size_t i = 0; i < std::size(kForwardedSignals); ++i) {
      sigaction(kForwardedSignals[i], &action, &previous_[i]);
    }
  }
  ~SignalForwarding() {
    forward_to = 0;
    for (size_t i = 0; i < std::size(kForwardedSignals); ++i) {
      sigaction(kForwardedSignals[i], &previous_[i], nullptr);
    }
  }

 private:
  struct sigaction previous_[std::size(kForwardedSignals)];
};

// The read end of a pipe whose lines go to a callback.
class LinePipe {
 public:
  explicit LinePipe(const LineCallback& on_line) : on_line_(on_line) {}
  ~LinePipe() {
    CloseWriteEnd();
    CloseReadEnd();
  }
  LinePipe(const LinePipe&) = delete;
  LinePipe& operator=(const LinePipe&) = delete;

  bool Open() {
    if (!on_line_) return true;
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) return false;
    read_fd_ = fds[0];
    write_fd_ = fds[1];
    return true;
  }
  int read_fd() const { return read_fd_; }
  int write_fd() const { return write_fd_; }
  void CloseWriteEnd() {
    if (write_fd_ >= 0) close(write_fd_);
    write_fd_ = -1;
  }

  // Reads what is there; closes the read end at the end of the stream.
  void Drain() {
    char buffer[1 << 16];
    const ssize_t n = read(read_fd_, buffer, sizeof(buffer));
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (n <= 0) {
      if (!partial_.empty()) on_line_(partial_);
      partial_.clear();
      CloseReadEnd();
      return;
    }
    std::string_view data(buffer, n);
    size_t end;
    while ((end = data.find('\n')) != std::string_view::npos) {
      partial_.append(data.substr(0, end));
      on_line_(partial_);
      partial_.clear();
      data.remove_prefix(end + 1);
    }
    partial_.append(data);
    if (partial_.size() > kLongestLine) {
      on_line_(partial_);
      partial_.clear();
    }
  }

 private:
  void CloseReadEnd() {
    if (read_fd_ >= 0) close(read_fd_);
    read_fd_ = -1;
  }

  const LineCallback& on_line_;
  int read_fd_ = -1;
  int write_fd_ = -1;
  std::string partial_;
};

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& s : strings) {
    pointers.push_back(const_cast<char*>(s.c_str()));
  }
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> MergedEnvironment(const ChildOptions& options) {
  std::vector<std::string> merged;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    bool replaced = false;
    for (const auto& [name, value] : options.environment) {
      replaced |= absl::StartsWith(*variable, absl::StrCat(name, "="));
    }
    if (!replaced) merged.emplace_back(*variable);
  }
  for (const auto& [name, value] : options.environment) {
    merged.push_back(absl::StrCat(name, "=", value));
  }
  return merged;
}

// Runs in the child between fork and exec: async-signal-safe calls only. The
// pipes' descriptors are above kReportFd, so no dup2 overwrites another's
// source.
[[noreturn]] void ExecChild(char** argv, char** env, pid_t parent,
                            int stdout_fd, int stderr_fd, int report_fd) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  if (stdout_fd >= 0) dup2(stdout_fd, STDOUT_FILENO);
  if (stderr_fd >= 0) dup2(stderr_fd, STDERR_FILENO);
  if (report_fd >= 0) dup2(report_fd, kReportFd);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(argv[0], argv, env);
  _exit(127);
}

// Moves `fd` above kReportFd.
int Raise(int fd) {
  if (fd < 0) return fd;
  return fcntl(fd, F_DUPFD_CLOEXEC, kReportFd + 1);
}

int PollTimeout(double timeout_seconds, Clock::time_point start) {
  // Woken now and then even without a limit: a grandchild may hold the pipes
  // open after the child has ended.
  constexpr int kWakeMs = 200;
  if (timeout_seconds <= 0) return kWakeMs;
  const double left =
      timeout_seconds -
      std::chrono::duration<double>(Clock::now() - start).count();
  return left <= 0 ? 0
                   : std::min<int>(kWakeMs, static_cast<int>(left * 1000) + 1);
}

// Serves the pipes until they close or the child has ended; kills it at the
// time limit.
void Serve(const std::vector<LinePipe*>& pipes, double timeout_seconds,
           Clock::time_point start, ChildResult* result, int* wait_status) {
  bool ended = false;
  while (true) {
    std::vector<pollfd> fds;
    std::vector<LinePipe*> open;
    for (LinePipe* pipe : pipes) {
      if (pipe->read_fd() < 0) continue;
      fds.push_back({pipe->read_fd(), POLLIN, 0});
      open.push_back(pipe);
    }
    if (ended && fds.empty()) return;
    const int timeout = ended ? 0 : PollTimeout(timeout_seconds, start);
    const int ready = fds.empty() && !ended
                          ? poll(nullptr, 0, std::min(timeout, 5))
                          : poll(fds.data(), fds.size(), timeout);
    for (size_t i = 0; ready > 0 && i < fds.size(); ++i) {
      if (fds[i].revents != 0) open[i]->Drain();
    }
    if (ended && ready <= 0) return;
    if (!ended && waitpid(result->pid, wait_status, WNOHANG) == result->pid) {
      ended = true;
      forward_to = 0;
    }
    if (!ended && !result->timed_out && timeout_seconds > 0 &&
        Clock::now() - start >=
            std::chrono::duration<double>(timeout_seconds)) {
      result->timed_out = true;
      kill(result->pid, SIGKILL);
    }
  }
}

std::string SignalMeaning(int signal_number) {
  switch (signal_number) {
    case SIGSEGV:
      return "SIGSEGV (invalid memory access)";
    case SIGABRT:
      return "SIGABRT (it gave up on an internal check)";
    case SIGILL:
      return "SIGILL (an instruction this CPU does not run)";
    case SIGFPE:
      return "SIGFPE (a division by zero)";
    case SIGBUS:
      return "SIGBUS (invalid memory access, or a file that shrank)";
    case SIGKILL:
      return "SIGKILL (often: out of memory)";
    default:
      return absl::StrFormat("signal %d (%s)", signal_number,
                             strsignal(signal_number));
  }
}

}  // namespace

absl::StatusOr<ChildResult> RunChild(const ChildOptions& options) {
  LinePipe out(options.on_stdout), err(options.on_stderr),
      report(options.on_report);
  if (!out.Open() || !err.Open() || !report.Open()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot open a pipe: ", std::strerror(errno)));
  }
  std::vector<std::string> environment = MergedEnvironment(options);
  std::vector<char*> argv = Pointers(options.argv);
  std::vector<char*> env = Pointers(environment);
  const int child_fds[] = {Raise(out.write_fd()), Raise(err.write_fd()),
                           Raise(report.write_fd())};
  SignalForwarding forwarding;
  const Clock::time_point start = Clock::now();
  ChildResult result;
  const pid_t parent = getpid();
  result.pid = fork();
  if (result.pid == 0) {
    ExecChild(argv.data(), env.data(), parent, child_fds[0], child_fds[1],
              child_fds[2]);
  }
  for (int fd : child_fds) {
    if (fd >= 0) close(fd);
  }
  if (result.pid < 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start a process: ", std::strerror(errno)));
  }
  forward_to = result.pid;
  // One that came before the handler knew whom to pass it to.
  if (forwarded_signal != 0) kill(result.pid, forwarded_signal);
  for (LinePipe* pipe : {&out, &err, &report}) pipe->CloseWriteEnd();
  int wait_status = 0;
  Serve({&out, &err, &report}, options.timeout_seconds, start, &result,
        &wait_status);
  if (WIFEXITED(wait_status)) result.exit_code = WEXITSTATUS(wait_status);
  if (WIFSIGNALED(wait_status)) result.signal = WTERMSIG(wait_status);
  result.interrupted_by = forwarded_signal;
  return result;
}

std::string DescribeEnd(const ChildResult& result, double timeout_seconds) {
  if (result.timed_out) {
    return absl::StrFormat("was stopped after %g s", timeout_seconds);
  }
  if (result.signal != 0) {
    return absl::StrCat("was ended by ", SignalMeaning(result.signal));
  }
  return absl::StrCat("ended with exit code ", result.exit_code);
}

void ReportToParent(std::string_view line) {
  if (fcntl(kReportFd, F_GETFD) < 0) return;
  const std::string with_break = absl::StrCat(line, "\n");
  // A parent that is gone has taken this process along (PR_SET_PDEATHSIG), and
  // what is short enough for a pipe is written at once.
  [[maybe_unused]] const ssize_t n =
      write(kReportFd, with_break.data(), with_break.size());
}

absl::StatusOr<std::string> OwnPath() {
  char path[PATH_MAX];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof(path));
  if (n <= 0 || n == sizeof(path)) {
    return absl::NotFoundError("cannot find the running program's own path");
  }
  return std::string(path, n);
}

}  // namespace requant
