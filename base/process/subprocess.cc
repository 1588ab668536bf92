#include "base/process/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/base/attributes.h"
#include "absl/base/const_init.h"
#include "absl/base/thread_annotations.h"
#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "base/files/file.h"
#include "base/sanitized.h"
#include "base/seconds_since.h"
#include "base/status_macros.h"

extern char** environ;

namespace requant {
namespace {

using Clock = std::chrono::steady_clock;
using LineCallback = std::function<void(std::string_view)>;

// Longer lines are passed on in pieces, so that a child cannot make its parent
// hold unlimited text. A message may hold names of any length.
constexpr size_t kLongestLine = 64 << 20;

// A child's allocations fail when they would take its address space this far
// beyond its memory limit: stacks and libraries' tables count there but are
// hardly ever touched.
constexpr int64_t kAddressSlack = int64_t{1} << 30;

constexpr rlim_t kLargestStack = 64 << 20;

// How often the parent wakes even when nothing happens, to check limits, and
// because a grandchild may hold the pipes open after the child has ended.
constexpr int kWakeMs = 100;

// A process that did not wake for this long had been stopped.
constexpr std::chrono::seconds kPause(2);

constexpr int kForwardedSignals[] = {SIGINT, SIGTERM, SIGHUP};

// How long a child may take to end after SIGTERM.
constexpr double kStopSeconds = 5;

// The running children, for the signal handler; 0 marks a free entry.
constexpr size_t kMostChildren = 1024;
std::atomic<pid_t> running_children[kMostChildren];
std::atomic<int> forwarded_signal{0};

void ForwardSignal(int signal_number) {
  const int error = errno;
  forwarded_signal = signal_number;
  for (const std::atomic<pid_t>& child : running_children) {
    const pid_t pid = child;
    if (pid > 0) kill(pid, signal_number);
  }
  errno = error;
}

// Holds an entry in running_children.
class RunningChild {
 public:
  RunningChild() = default;
  ~RunningChild() { Remove(); }
  RunningChild(const RunningChild&) = delete;
  RunningChild& operator=(const RunningChild&) = delete;

  void Add(pid_t pid) {
    for (std::atomic<pid_t>& child : running_children) {
      pid_t none = 0;
      if (!child.compare_exchange_strong(none, pid)) continue;
      place_ = &child;
      return;
    }
  }
  void Remove() {
    if (place_ != nullptr) *place_ = 0;
    place_ = nullptr;
  }

 private:
  std::atomic<pid_t>* place_ = nullptr;
};

// The handlers from before the first SignalForwarding.
ABSL_CONST_INIT absl::Mutex handlers_mutex(absl::kConstInit);
int handler_users ABSL_GUARDED_BY(handlers_mutex) = 0;
struct sigaction previous_handlers[std::size(
    kForwardedSignals)] ABSL_GUARDED_BY(handlers_mutex);

// Blocks signals in this thread, for example between a fork and the setup that
// both sides of it need.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_;
};

// The read end of a pipe whose lines are passed to a callback.
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

  // Reads what is available; closes the read end at the end of the stream.
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
    // It names the descriptor that this child's own reports now use.
    bool replaced =
        options.on_report != nullptr &&
        absl::StartsWith(*variable, absl::StrCat(kProgressVariable, "="));
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

// Descriptors that replace the parent's in the child; -1 means shared.
struct ChildDescriptors {
  int in = -1;
  int out = -1;
  int err = -1;
  int report = -1;
};

// Lowers a limit to `most` if it is higher; `hard` makes that permanent. This
// is async-signal-safe.
void LowerLimit(__rlimit_resource_t resource, rlim_t most, bool hard) {
  rlimit limit;
  if (getrlimit(resource, &limit) != 0) return;
  limit.rlim_cur = std::min(limit.rlim_cur, most);
  if (hard) limit.rlim_max = std::min(limit.rlim_max, most);
  setrlimit(resource, &limit);
}

// Runs in the child between fork and exec: makes async-signal-safe calls only.
// The descriptors are above kReportFd, so no dup2 overwrites another's source.
[[noreturn]] void ExecChild(char** argv, char** env, pid_t parent,
                            const ChildDescriptors& fds,
                            const ChildOptions& options) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  if (fds.in >= 0) dup2(fds.in, STDIN_FILENO);
  if (fds.out >= 0) dup2(fds.out, STDOUT_FILENO);
  if (fds.err >= 0) dup2(fds.err, STDERR_FILENO);
  if (fds.report >= 0) dup2(fds.report, kReportFd);
  if (options.memory_bytes > 0) {
    // A sanitizer's tables would count toward the limit.
    if (!kSanitized) {
      LowerLimit(RLIMIT_DATA, options.memory_bytes + kAddressSlack, true);
    }
    // With an unlimited stack a runaway recursion would take all of the memory.
    LowerLimit(RLIMIT_STACK, kLargestStack, false);
  }
  if (!options.core_file) LowerLimit(RLIMIT_CORE, 0, true);
  // The parent's handler would swallow a signal that arrives before exec.
  for (int forwarded : kForwardedSignals) {
    struct sigaction action;
    if (sigaction(forwarded, nullptr, &action) == 0 &&
        action.sa_handler != SIG_IGN) {
      signal(forwarded, SIG_DFL);
    }
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(options.argv[0].c_str(), argv, env);
  _exit(127);
}

// Duplicates `fd`, if there is one, to a descriptor `raised` above kReportFd.
// Returns false when no descriptor is left.
bool Raise(int fd, int* raised) {
  if (fd < 0) return true;
  *raised = fcntl(fd, F_DUPFD_CLOEXEC, kReportFd + 1);
  return *raised >= 0;
}

// Includes the remedy, because a run shows only this message of a failed task.
absl::Status CannotStart(int error) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "cannot start a process: ", std::strerror(error),
      error == EMFILE
          ? "; raise the limit on open files, as with ulimit -n 1024"
          : ""));
}

// Returns the memory that process `pid` holds, in bytes, or 0 if unknown.
int64_t ResidentMemory(pid_t pid) {
  std::FILE* file =
      std::fopen(absl::StrCat("/proc/", pid, "/statm").c_str(), "re");
  if (file == nullptr) return 0;
  long long pages = 0, resident = 0, shared = 0;
  const int fields =
      std::fscanf(file, "%lld %lld %lld", &pages, &resident, &shared);
  std::fclose(file);
  return fields == 3 ? (resident - shared) * sysconf(_SC_PAGESIZE) : 0;
}

// Enforces a child's limits.
class Limits {
 public:
  explicit Limits(const ChildOptions& options) : options_(options) {}

  void Reported() { last_report_ = Clock::now(); }

  // Returns how long to wait for something to happen, in milliseconds.
  int PollTimeout() const {
    double left = kWakeMs / 1000.0;
    if (options_.timeout_seconds > 0) {
      left = std::min(left, options_.timeout_seconds - SecondsSince(start_));
    }
    if (options_.stall_seconds > 0) {
      left =
          std::min(left, options_.stall_seconds - SecondsSince(last_report_));
    }
    return left <= 0 ? 0 : static_cast<int>(left * 1000) + 1;
  }

  // Kills the child when it exceeds a limit or must stop.
  void Enforce(ChildResult* result) {
    if (killed_) return;
    const Clock::time_point now = Clock::now();
    LeaveOutPause(now);
    if (options_.stop != nullptr && *options_.stop) Stop(now, result);
    result->timed_out = options_.timeout_seconds > 0 &&
                        Seconds(now - start_) >= options_.timeout_seconds;
    result->stalled = !result->timed_out && options_.stall_seconds > 0 &&
                      Seconds(now - last_report_) >= options_.stall_seconds;
    if (options_.memory_bytes > 0) {
      result->over_memory = ResidentMemory(result->pid) > options_.memory_bytes;
    }
    killed_ = result->timed_out || result->stalled || result->over_memory;
    if (killed_) kill(result->pid, SIGKILL);
  }

 private:
  static double Seconds(Clock::duration duration) {
    return std::chrono::duration<double>(duration).count();
  }

  void Stop(Clock::time_point now, ChildResult* result) {
    if (!result->stopped) {
      stop_time_ = now;
      kill(result->pid, SIGTERM);
    } else if (Seconds(now - stop_time_) >= kStopSeconds) {
      kill(result->pid, SIGKILL);
    }
    result->stopped = true;
  }

  // This is called every kWakeMs. A longer gap means that this process was
  // stopped (Ctrl-Z stops parent and child alike, so that the child's time
  // stood still too) or that a callback waited for the terminal.
  void LeaveOutPause(Clock::time_point now) {
    const Clock::duration since = now - looked_;
    looked_ = now;
    if (since < kPause) return;
    start_ += since;
    stop_time_ += since;
    last_report_ = std::min(last_report_ + since, now);
  }

  const ChildOptions& options_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_report_ = start_;
  Clock::time_point looked_ = start_;
  Clock::time_point stop_time_;
  bool killed_ = false;
};

// Returns whether the child has ended, without reaping it.
bool HasEnded(pid_t pid) {
  siginfo_t info = {};
  return waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid;
}

// Serves the pipes until they close or the child has ended; kills it when it
// exceeds a limit.
void Serve(const std::vector<LinePipe*>& pipes, const LinePipe* report,
           Limits* limits, RunningChild* running, ChildResult* result,
           int* wait_status) {
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
    const int timeout = ended ? 0 : limits->PollTimeout();
    const int ready = fds.empty() && !ended
                          ? poll(nullptr, 0, std::min(timeout, 5))
                          : poll(fds.data(), fds.size(), timeout);
    for (size_t i = 0; ready > 0 && i < fds.size(); ++i) {
      if (fds[i].revents == 0) continue;
      open[i]->Drain();
      if (open[i] == report) limits->Reported();
    }
    if (ended && ready <= 0) return;
    if (!ended && HasEnded(result->pid)) {
      ended = true;
      // This precedes the wait, after which another process may get the pid.
      running->Remove();
      rusage usage = {};
      wait4(result->pid, wait_status, 0, &usage);
      result->peak_memory_bytes = int64_t{usage.ru_maxrss} * 1024;
    }
    if (!ended) limits->Enforce(result);
  }
}

// Returns a descriptor from which `text` can be read.
absl::StatusOr<int> ReadableCopy(const std::string& text) {
  constexpr char kError[] = "cannot hold the input of a process: ";
  const int fd = memfd_create("input", MFD_CLOEXEC);
  if (fd < 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat(kError, std::strerror(errno)));
  }
  const absl::Status written = WriteAll(fd, text);
  if (!written.ok()) {
    close(fd);
    return absl::ResourceExhaustedError(
        absl::StrCat(kError, written.message()));
  }
  lseek(fd, 0, SEEK_SET);
  return fd;
}

std::string SignalMeaning(int signal_number) {
  constexpr std::pair<int, const char*> kMeanings[] = {
      {SIGSEGV, "SIGSEGV (invalid memory access)"},
      {SIGABRT, "SIGABRT (it gave up on an internal check)"},
      {SIGILL, "SIGILL (an instruction this CPU does not run)"},
      {SIGFPE, "SIGFPE (a division by zero)"},
      {SIGBUS, "SIGBUS (invalid memory access, or a file that shrank)"},
      {SIGKILL, "SIGKILL (often: out of memory)"}};
  for (const auto& [number, meaning] : kMeanings) {
    if (number == signal_number) return meaning;
  }
  return absl::StrFormat("signal %d (%s)", signal_number,
                         strsignal(signal_number));
}

}  // namespace

SignalForwarding::SignalForwarding() {
  const absl::MutexLock lock(&handlers_mutex);
  if (handler_users++ > 0) return;
  forwarded_signal = 0;
  struct sigaction action = {};
  action.sa_handler = ForwardSignal;
  // File I/O goes on meanwhile and must not be interrupted.
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < std::size(kForwardedSignals); ++i) {
    sigaction(kForwardedSignals[i], nullptr, &previous_handlers[i]);
    if (previous_handlers[i].sa_handler == SIG_IGN) continue;
    sigaction(kForwardedSignals[i], &action, nullptr);
  }
}

SignalForwarding::~SignalForwarding() {
  const absl::MutexLock lock(&handlers_mutex);
  if (--handler_users > 0) return;
  for (size_t i = 0; i < std::size(kForwardedSignals); ++i) {
    sigaction(kForwardedSignals[i], &previous_handlers[i], nullptr);
  }
}

int SignalForwarding::Received() { return forwarded_signal; }

absl::StatusOr<ChildResult> RunChild(const ChildOptions& options) {
  LinePipe out(options.on_stdout), err(options.on_stderr),
      report(options.on_report);
  int input = -1;
  absl::Cleanup close_input = [&] {
    if (input >= 0) close(input);
  };
  if (options.input.has_value()) {
    REQUANT_ASSIGN_OR_RETURN(input, ReadableCopy(*options.input));
  }
  if (!out.Open() || !err.Open() || !report.Open()) return CannotStart(errno);
  std::vector<std::string> environment = MergedEnvironment(options);
  std::vector<char*> argv = Pointers(options.argv);
  if (!options.name.empty()) argv[0] = const_cast<char*>(options.name.c_str());
  std::vector<char*> env = Pointers(environment);
  ChildDescriptors fds;
  absl::Cleanup close_raised = [&fds] {
    for (int fd : {fds.in, fds.out, fds.err, fds.report}) {
      if (fd >= 0) close(fd);
    }
  };
  if (!Raise(input, &fds.in) ||
      !Raise(options.stdout_fd >= 0 ? options.stdout_fd : out.write_fd(),
             &fds.out) ||
      !Raise(options.stderr_fd >= 0 ? options.stderr_fd : err.write_fd(),
             &fds.err) ||
      !Raise(report.write_fd(), &fds.report)) {
    return CannotStart(errno);
  }
  const SignalForwarding forwarding;
  Limits limits(options);
  RunningChild running;
  ChildResult result;
  const pid_t parent = getpid();
  {
    SignalsHeld held;
    result.pid = fork();
    if (result.pid == 0) {
      ExecChild(argv.data(), env.data(), parent, fds, options);
    }
    if (result.pid > 0) running.Add(result.pid);
  }
  if (result.pid < 0) return CannotStart(errno);
  std::move(close_raised).Invoke();
  // The signal arrived before there was a child to pass it to.
  if (forwarded_signal != 0) kill(result.pid, forwarded_signal);
  for (LinePipe* pipe : {&out, &err, &report}) pipe->CloseWriteEnd();
  int wait_status = 0;
  Serve({&out, &err, &report}, &report, &limits, &running, &result,
        &wait_status);
  if (WIFEXITED(wait_status)) result.exit_code = WEXITSTATUS(wait_status);
  if (WIFSIGNALED(wait_status)) result.signal = WTERMSIG(wait_status);
  result.interrupted_by = forwarded_signal;
  return result;
}

std::string DescribeEnd(const ChildResult& result,
                        const ChildOptions& options) {
  if (result.timed_out) {
    return absl::StrFormat("was stopped after %g s", options.timeout_seconds);
  }
  if (result.stalled) {
    return absl::StrFormat("was stopped after %g s without progress",
                           options.stall_seconds);
  }
  if (result.over_memory) {
    return absl::StrFormat(
        "was stopped because it used more than %.1f GB of "
        "memory",
        options.memory_bytes / 1e9);
  }
  if (result.stopped) return "was stopped";
  if (result.signal != 0) {
    return absl::StrCat("was ended by ", SignalMeaning(result.signal));
  }
  return absl::StrCat("ended with exit code ", result.exit_code);
}

void ReportToParent(std::string_view line) {
  ABSL_CONST_INIT static absl::Mutex mutex(absl::kConstInit);
  if (fcntl(kReportFd, F_GETFD) < 0) return;
  const absl::MutexLock lock(&mutex);
  // If the parent is gone, this process is killed anyway (PR_SET_PDEATHSIG).
  (void)WriteAll(kReportFd, absl::StrCat(line, "\n"));
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
