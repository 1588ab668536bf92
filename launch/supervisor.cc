#include "launch/supervisor.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "launch/child.h"
#include "launch/container_command.h"

namespace requant::launch {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kForwardedSignals[] = {SIGINT,  SIGTERM, SIGHUP,
                                     SIGQUIT, SIGUSR1, SIGUSR2};

// How long an engine may take to list or remove a container.
constexpr double kEngineSeconds = 30;

// How long removal is tried: a client that was killed may have asked the engine
// for a container that comes only now.
constexpr double kRemovalSeconds = 10;

// How long the client may take to end after its container did.
constexpr double kClientSeconds = 5;

// So many times Ctrl-C is a request; the next one is an order.
constexpr int kPatientInterrupts = 2;

constexpr timespec kBetweenTries = {0, 100'000'000};

Clock::time_point After(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(seconds));
}

// The ids of the session's containers, at most one.
std::vector<std::string> Containers(const Supervised& supervised) {
  const Answer answer = Ask(
      {supervised.engine, "ps", "--all", "--quiet", "--no-trunc", "--filter",
       std::string("label=") + kSessionLabel + "=" + supervised.session_id},
      kEngineSeconds, /*own_group=*/true);
  std::vector<std::string> ids;
  std::string id;
  for (char c : answer.out) {
    if (c != '\n') {
      id += c;
    } else if (!id.empty()) {
      ids.push_back(id);
      id.clear();
    }
  }
  return ids;
}

// Whether there is no container of the session any more, which is removed by
// force when there is one.
bool Remove(const Supervised& supervised) {
  const std::vector<std::string> ids = Containers(supervised);
  for (const std::string& id : ids) {
    Ask({supervised.engine, "rm", "--force", id}, kEngineSeconds,
        /*own_group=*/true);
  }
  return ids.empty();
}

// Removes the container until it is gone; false: it would not go.
bool RemoveForSure(const Supervised& supervised) {
  const Clock::time_point end = After(kRemovalSeconds);
  while (!Remove(supervised)) {
    if (Clock::now() > end) return false;
    nanosleep(&kBetweenTries, nullptr);
  }
  return true;
}

// The signals to be passed on. One that is ignored, as by nohup, stays ignored.
sigset_t ForwardedSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : kForwardedSignals) {
    struct sigaction action;
    if (sigaction(number, nullptr, &action) == 0 &&
        action.sa_handler != SIG_IGN) {
      sigaddset(&set, number);
    }
  }
  return set;
}

// In the watcher: leaves everything that belongs to the session.
void Detach(int keep) {
  setsid();
  prctl(PR_SET_NAME, "launch_watcher");
  const int nothing = open("/dev/null", O_RDWR);
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (nothing >= 0) dup2(nothing, fd);
  }
  const int most =
      static_cast<int>(std::clamp<long>(sysconf(_SC_OPEN_MAX), 256, 1 << 16));
  for (int fd = STDERR_FILENO + 1; fd < most; ++fd) {
    if (fd != keep) close(fd);
  }
}

// What the session tells its watcher: the client's process, and 0 at the end.
std::optional<pid_t> Hear(int fd) {
  pid_t pid;
  ssize_t n;
  do {
    n = read(fd, &pid, sizeof(pid));
  } while (n < 0 && errno == EINTR);
  if (n != sizeof(pid)) return std::nullopt;
  return pid;
}

void Tell(int fd, pid_t pid) {
  while (write(fd, &pid, sizeof(pid)) < 0 && errno == EINTR) {
  }
}

// The watcher: waits until the session ends. If it was killed, removes its
// container, until the client, which could still ask for one, is gone too.
[[noreturn]] void Watch(int fd, const Supervised& supervised) {
  Detach(fd);
  const pid_t client = Hear(fd).value_or(0);
  if (Hear(fd).has_value()) _exit(0);
  const Clock::time_point end = After(kRemovalSeconds);
  bool is_gone = false;
  while (Clock::now() < end) {
    const bool client_is_gone = client > 0 && kill(client, 0) != 0;
    is_gone = Remove(supervised);
    if (is_gone && client_is_gone) _exit(0);
    nanosleep(&kBetweenTries, nullptr);
  }
  _exit(is_gone ? 0 : 1);
}

// The client of the session. Its parent's end ends it too, in a way that lets
// it give the terminal back.
[[noreturn]] void ExecClient(char** argv, pid_t parent, const sigset_t& mask) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(127);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  execv(argv[0], argv);
  _exit(127);
}

// Waits for the client and passes signals on to it. All of `signals` and
// SIGCHLD are blocked.
class Supervision {
 public:
  Supervision(const Supervised& supervised, pid_t client,
              const sigset_t& signals)
      : supervised_(supervised), client_(client), signals_(signals) {
    sigaddset(&signals_, SIGCHLD);
  }

  SessionEnd Run() {
    int status = 0;
    while (waitpid(client_, &status, WNOHANG) == 0) {
      siginfo_t info;
      const timespec wait = UntilDeadline();
      const int number = sigtimedwait(&signals_, &info, &wait);
      if (number > 0 && number != SIGCHLD) Pass(number, info);
      if (deadline_.has_value() && Clock::now() >= *deadline_) Force();
    }
    end_.exit_code =
        WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return end_;
  }

 private:
  timespec UntilDeadline() const {
    // Woken now and then in any case.
    auto left = std::chrono::nanoseconds(std::chrono::seconds(60));
    if (deadline_.has_value()) {
      left = std::clamp<std::chrono::nanoseconds>(
          *deadline_ - Clock::now(), std::chrono::nanoseconds(0), left);
    }
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    return {static_cast<time_t>(seconds.count()),
            static_cast<long>((left - seconds).count())};
  }

  void Pass(int number, const siginfo_t& info) {
    end_.signal = number;
    // The terminal's signals went to the client too.
    if (info.si_code != SI_KERNEL) kill(client_, number);
    if (number == SIGTERM || number == SIGHUP) {
      SetDeadline(supervised_.stop_seconds);
    }
    if (number == SIGINT && ++interrupts_ > kPatientInterrupts) SetDeadline(0);
  }

  void SetDeadline(double seconds) {
    const Clock::time_point time = After(seconds);
    if (!deadline_.has_value() || time < *deadline_) deadline_ = time;
  }

  // First the container, whose end ends the client; then the client.
  void Force() {
    if (forced_) kill(client_, SIGKILL);
    if (!forced_) Remove(supervised_);
    forced_ = true;
    deadline_ = After(kClientSeconds);
  }

  const Supervised& supervised_;
  const pid_t client_;
  sigset_t signals_;
  SessionEnd end_;
  std::optional<Clock::time_point> deadline_;
  bool forced_ = false;
  int interrupts_ = 0;
};

}  // namespace

SessionEnd RunSession(const Supervised& supervised) {
  const sigset_t forwarded = ForwardedSignals();
  // Ignored, the client's end would be lost.
  signal(SIGCHLD, SIG_DFL);
  sigset_t blocked = forwarded, before;
  sigaddset(&blocked, SIGCHLD);
  sigprocmask(SIG_BLOCK, &blocked, &before);
  SessionEnd end;
  int pipe[2];
  if (pipe2(pipe, O_CLOEXEC) != 0) return end;
  const pid_t watcher = fork();
  if (watcher == 0) {
    close(pipe[1]);
    Watch(pipe[0], supervised);
  }
  close(pipe[0]);
  const std::vector<char*> argv = Pointers(supervised.command);
  const pid_t self = getpid();
  const pid_t client = watcher < 0 ? -1 : fork();
  if (client == 0) {
    ExecClient(const_cast<char**>(argv.data()), self, before);
  }
  if (client > 0) {
    Tell(pipe[1], client);
    end = Supervision(supervised, client, forwarded).Run();
    end.left_behind = !RemoveForSure(supervised);
    Tell(pipe[1], 0);
  }
  close(pipe[1]);
  if (watcher > 0) waitpid(watcher, nullptr, 0);
  return end;
}

}  // namespace requant::launch
