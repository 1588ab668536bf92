#include "launch/session.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/printable.h"

namespace requant::launch {
namespace {

using Clock = std::chrono::steady_clock;

// Returns the time `seconds` from now.
Clock::time_point After(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(seconds));
}

// Returns the nonempty parts of a text between separators.
std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// Replaces this process, which must have only one thread, by a program, or
// exits with code 127.
[[noreturn]] void Exec(const std::vector<std::string>& argv) {
  std::vector<char*> pointers;
  for (const std::string& word : argv) {
    pointers.push_back(const_cast<char*>(word.c_str()));
  }
  pointers.push_back(nullptr);
  execv(pointers[0], pointers.data());
  _exit(127);
}

// Returns a process's exit code as a shell gives it: 128 + n after signal n.
// `status` comes from waitpid.
int ExitCode(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// At most this many bytes of an answer are read.
constexpr size_t kLongestAnswer = 1 << 20;
// An engine that prints more than this is stopped.
constexpr off_t kMostPrinted = 64 << 20;

off_t SizeOf(int fd) {
  struct stat info;
  return fstat(fd, &info) == 0 ? info.st_size : 0;
}

// Returns what was written to a descriptor and closes it.
std::string TakeText(int fd) {
  if (fd < 0) return "";
  const off_t size = SizeOf(fd);
  std::string text(std::min<size_t>(size, kLongestAnswer), ' ');
  text.resize(std::max<ssize_t>(0, pread(fd, text.data(), text.size(), 0)));
  close(fd);
  return text;
}

// A running engine answers within a second or two, a busy one later.
constexpr double kAnswerSeconds = 60;

// Returns whether a message contains these words, ignoring case.
bool Says(const std::string& message, const char* words) {
  return strcasestr(message.c_str(), words) != nullptr;
}

// Returns the last nonblank line of a message.
std::string LastLine(const std::string& text) {
  const size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return "no message";
  const size_t begin = text.rfind('\n', end) + 1;
  return text.substr(begin, text.find('\n', end) - begin);
}

// Detaching would leave a container running, and Docker's default keys for it
// take Ctrl-P away from the shell. It cannot be disabled, only made unlikely.
constexpr char kDetachKeys[] = "--detach-keys=ctrl-^,ctrl-^,ctrl-^";

using Words = std::vector<std::string>;

// Adds the limits. The default one leaves a fifth of the memory to others.
void AddLimits(const Session& session, Words* words) {
  const Options& options = session.options;
  const int64_t memory =
      options.memory_bytes.value_or(session.engine.memory_bytes / 5 * 4);
  if (memory > 0) words->push_back("--memory=" + std::to_string(memory));
  const double cpus = options.cpus.value_or(session.engine.cpus);
  if (cpus > 0) {
    char text[32];
    std::snprintf(text, sizeof(text), "--cpus=%.10g", cpus);
    words->push_back(text);
  }
  const int64_t pids = options.pids_limit == 0 ? -1 : options.pids_limit;
  words->push_back("--pids-limit=" + std::to_string(pids));
}

// Adds the calling user, who then owns the files that the container creates.
void AddUser(const Session& session, Words* words) {
  if (!session.options.user.empty()) {
    words->push_back("--user=" + session.options.user);
    return;
  }
  words->push_back("--user=" + std::to_string(session.user.uid) + ":" +
                   std::to_string(session.user.gid));
  for (gid_t group : session.groups) {
    words->push_back("--group-add=" + std::to_string(group));
  }
}

void AddPrivileges(const Options& options, Words* words) {
  if (!options.writable_root) words->push_back("--read-only");
  if (options.privileged) {
    words->push_back("--privileged");
    return;
  }
  words->push_back("--cap-drop=ALL");
  for (const std::string& capability : options.added_capabilities) {
    words->push_back("--cap-add=" + capability);
  }
  if (!options.allow_new_privileges) {
    words->push_back("--security-opt=no-new-privileges");
  }
}

void AddFolders(const Session& session, Words* words) {
  for (const Mount& mount : session.mounts) {
    words->insert(words->end(), {"--mount", MountArgument(mount)});
  }
  for (const std::string target : {kWorkTarget, kTemporaryTarget}) {
    words->insert(
        words->end(),
        {"--tmpfs", target + ":rw,exec,nosuid,nodev,mode=1777,size=" +
                        std::to_string(session.options.scratch_bytes)});
  }
  words->push_back(std::string("--workdir=") + kWorkTarget);
}

void AddEnvironment(const Words& variables, Words* words) {
  const bool has_home = std::any_of(
      variables.begin(), variables.end(), [](const std::string& variable) {
        return variable.substr(0, variable.find('=')) == "HOME";
      });
  if (!has_home) {
    words->insert(words->end(),
                  {"--env", std::string("HOME=") + kTemporaryTarget});
  }
  for (const std::string& variable : variables) {
    words->insert(words->end(), {"--env", variable});
  }
}

constexpr int kForwardedSignals[] = {SIGINT,  SIGTERM, SIGHUP,
                                     SIGQUIT, SIGUSR1, SIGUSR2};

// How long listing or removing a container may take.
constexpr double kEngineSeconds = 30;

// How long removal is retried: a killed client may have requested a container
// that appears only later.
constexpr double kRemovalSeconds = 10;

// How long the client may take to end after its container has ended.
constexpr double kClientSeconds = 5;

// The container can ignore this many Ctrl-C; the next one removes it.
constexpr int kPatientInterrupts = 2;

constexpr timespec kBetweenTries = {0, 100'000'000};

// Removes the session's container, of which there is at most one, by force.
// Returns true if there is none left.
bool Remove(const Session& session) {
  const Answer answer =
      Ask({session.engine.path, "ps", "--all", "--quiet", "--no-trunc",
           "--filter", "label=" + SessionLabel(session.id)},
          kEngineSeconds, /*own_group=*/true);
  const std::vector<std::string> ids = Split(answer.out, '\n');
  for (const std::string& id : ids) {
    Ask({session.engine.path, "rm", "--force", id}, kEngineSeconds,
        /*own_group=*/true);
  }
  return ids.empty();
}

// Tries to remove the container until it is gone. Returns false if it is still
// there after the time limit.
bool RemoveForSure(const Session& session) {
  const Clock::time_point end = After(kRemovalSeconds);
  while (!Remove(session)) {
    if (Clock::now() > end) return false;
    nanosleep(&kBetweenTries, nullptr);
  }
  return true;
}

// Returns the signals to pass on. Ignored ones (as under nohup) stay ignored.
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

// Detaches the watcher from the session, keeping only the descriptor `keep`.
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

// Reads what the session sends to its watcher: the client's pid, and 0 at the
// end.
std::optional<pid_t> Hear(int fd) {
  pid_t pid;
  const ssize_t n = TEMP_FAILURE_RETRY(read(fd, &pid, sizeof(pid)));
  return n == sizeof(pid) ? std::optional<pid_t>(pid) : std::nullopt;
}

void Tell(int fd, pid_t pid) {
  [[maybe_unused]] const ssize_t n =
      TEMP_FAILURE_RETRY(write(fd, &pid, sizeof(pid)));
}

// Waits as the watcher until the session ends. If it was killed, removes its
// container until the client, which could still request one, is gone too.
[[noreturn]] void Watch(int fd, const Session& session) {
  Detach(fd);
  const pid_t client = Hear(fd).value_or(0);
  if (Hear(fd).has_value()) _exit(0);
  const Clock::time_point end = After(kRemovalSeconds);
  bool is_gone = false;
  while (Clock::now() < end) {
    const bool client_is_gone = client > 0 && kill(client, 0) != 0;
    is_gone = Remove(session);
    if (is_gone && client_is_gone) _exit(0);
    nanosleep(&kBetweenTries, nullptr);
  }
  _exit(is_gone ? 0 : 1);
}

// Becomes the session's client. If its parent ends, it ends too, but in a way
// that lets it restore the terminal.
[[noreturn]] void ExecClient(const std::vector<std::string>& command,
                             pid_t parent, const sigset_t& mask) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(127);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  Exec(command);
}

// Waits for the client and passes signals on to it. All of `signals`, including
// SIGCHLD, are blocked.
class Supervision {
 public:
  Supervision(const Session& session, pid_t client, const sigset_t& signals)
      : session_(session), client_(client), signals_(signals) {}

  SessionEnd Run() {
    int status = 0;
    while (waitpid(client_, &status, WNOHANG) == 0) {
      siginfo_t info;
      const timespec wait = UntilDeadline();
      const int number = sigtimedwait(&signals_, &info, &wait);
      if (number > 0 && number != SIGCHLD) Pass(number, info);
      if (Clock::now() >= deadline_) Force();
    }
    end_.exit_code = ExitCode(status);
    return end_;
  }

 private:
  // Returns how long to wait for a signal, which is at most a minute.
  timespec UntilDeadline() const {
    const auto left = std::clamp<std::chrono::nanoseconds>(
        deadline_ - Clock::now(), std::chrono::seconds(0),
        std::chrono::seconds(60));
    return {left.count() / 1'000'000'000, left.count() % 1'000'000'000};
  }

  void Pass(int number, const siginfo_t& info) {
    end_.signal = number;
    // The terminal sends its signals to the client too.
    if (info.si_code != SI_KERNEL) kill(client_, number);
    if (number == SIGTERM || number == SIGHUP) {
      SetDeadline(session_.options.stop_seconds);
    }
    if (number == SIGINT && ++interrupts_ > kPatientInterrupts) SetDeadline(0);
  }

  void SetDeadline(double seconds) {
    deadline_ = std::min(deadline_, After(seconds));
  }

  // Removes the container, which ends the client; the second call kills the
  // client.
  void Force() {
    if (forced_) {
      kill(client_, SIGKILL);
    } else {
      Remove(session_);
    }
    forced_ = true;
    deadline_ = After(kClientSeconds);
  }

  const Session& session_;
  const pid_t client_;
  const sigset_t signals_;
  SessionEnd end_;
  Clock::time_point deadline_ = Clock::time_point::max();
  bool forced_ = false;
  int interrupts_ = 0;
};

}  // namespace

Answer Ask(const std::vector<std::string>& argv, double timeout_seconds,
           bool own_group) {
  constexpr timespec kBetweenLooks = {0, 1'000'000};
  Answer answer;
  const int out = memfd_create("out", MFD_CLOEXEC);
  const int error = memfd_create("error", MFD_CLOEXEC);
  const pid_t pid = out < 0 || error < 0 ? -1 : fork();
  if (pid == 0) {
    if (own_group) setpgid(0, 0);
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(error, STDERR_FILENO);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    Exec(argv);
  }
  if (pid > 0) {
    const Clock::time_point end = After(timeout_seconds);
    int status = 0;
    while (waitpid(pid, &status, WNOHANG) == 0) {
      answer.timed_out = Clock::now() >= end;
      if (answer.timed_out || SizeOf(out) + SizeOf(error) > kMostPrinted) {
        kill(pid, SIGKILL);
      }
      nanosleep(&kBetweenLooks, nullptr);
    }
    answer.exit_code = ExitCode(status);
  }
  answer.out = TakeText(out);
  answer.error = TakeText(error);
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

std::optional<Engine> ParseInfo(const std::string& text) {
  // Docker's client prints an empty version if the engine does not answer.
  const std::vector<std::string> fields = Split(text, '|');
  if (fields.size() != 3) return std::nullopt;
  return Engine{"", fields[0], std::atoll(fields[1].c_str()),
                std::atoll(fields[2].c_str())};
}

Failure ExplainSilence(const Answer& answer) {
  if (answer.timed_out) {
    return {
        "Docker does not answer: restart it (sudo systemctl restart docker)"};
  }
  const std::string all = answer.out + answer.error;
  if (Says(all, "permission denied")) {
    return {
        "you have no permission to use Docker: join its group (sudo usermod "
        "-aG docker \"$USER\", then log in again), or call this with sudo"};
  }
  if (Says(all, "Cannot connect to the Docker daemon") ||
      Says(all, "Is the docker daemon running") ||
      Says(all, "connection refused")) {
    const char* host = std::getenv("DOCKER_HOST");
    if (host == nullptr || *host == 0) {
      return {"Docker is not running: start it (sudo systemctl start docker)"};
    }
    return {std::string("Docker is not running at DOCKER_HOST=") + host +
            ": start it, or unset DOCKER_HOST"};
  }
  return {"Docker does not work here: " + LastLine(all)};
}

Failure ExplainMissingImage(const std::string& image, const Answer& answer) {
  if (answer.timed_out) return {"Docker does not answer: restart it"};
  if (Says(answer.error, "invalid reference") ||
      Says(answer.error, "must be lowercase")) {
    return {"--docker-image: " + image +
            " is not a valid image name: " + LastLine(answer.error)};
  }
  if (Says(answer.error, "no such image")) {
    return {"Docker has no image " + image +
            ": build it with docker/build in Requant's folder, or load it "
            "(docker load -i FILE)"};
  }
  return {"Docker cannot look at image " + image + ": " +
          LastLine(answer.error)};
}

Result<Engine> FindEngine(const std::string& image) {
  const std::string path = FindOnPath("docker");
  if (path.empty()) {
    return Failure{
        "docker is not on PATH: install it (on Debian: sudo apt-get install "
        "docker.io)"};
  }
  const Answer version = Ask({path, "--version"}, kAnswerSeconds);
  if (version.exit_code != 0) {
    return Failure{path + " does not run (exit code " +
                   std::to_string(version.exit_code) +
                   "): " + LastLine(version.error)};
  }
  if (Says(version.out, "podman")) {
    return Failure{path + " is Podman, which is not supported: install Docker"};
  }
  const Answer info = Ask(
      {path, "info", "--format", "{{.ServerVersion}}|{{.NCPU}}|{{.MemTotal}}"},
      kAnswerSeconds);
  std::optional<Engine> engine;
  if (info.exit_code == 0) engine = ParseInfo(info.out);
  if (!engine.has_value()) return ExplainSilence(info);
  engine->path = path;
  const Answer inspected = Ask(
      {path, "image", "inspect", "--format", "{{.Id}}", image}, kAnswerSeconds);
  if (inspected.exit_code != 0) return ExplainMissingImage(image, inspected);
  return *engine;
}

std::optional<Failure> CheckContainerName(const Engine& engine,
                                          const std::string& name) {
  const Answer answer = Ask({engine.path, "container", "inspect", "--format",
                             "{{.State.Status}}", name},
                            kAnswerSeconds);
  if (answer.exit_code != 0) return std::nullopt;
  return Failure{"there is a container named " + name + " already (" +
                 answer.out.substr(0, answer.out.find('\n')) +
                 "): choose another --name, or remove it (docker rm -f " +
                 name + ")"};
}

std::string SessionLabel(const std::string& session_id) {
  return "requant.session=" + session_id;
}

std::vector<std::string> ContainerCommand(const Session& session) {
  const Options& options = session.options;
  Words words = {session.engine.path, "run", "--rm", "--init", "--pull=never"};
  words.push_back("--name=" +
                  (options.name.empty() ? session.id : options.name));
  words.push_back("--label=" + SessionLabel(session.id));
  if (session.input) words.push_back("--interactive");
  if (session.terminal) words.insert(words.end(), {"--tty", kDetachKeys});
  words.push_back("--network=" + options.network);
  // The host's network implies the host's name.
  if (options.network != "host") words.push_back("--hostname=quantization");
  AddUser(session, &words);
  AddPrivileges(options, &words);
  AddLimits(session, &words);
  AddFolders(session, &words);
  AddEnvironment(options.environment, &words);
  words.push_back(options.image);
  if (options.test) words.push_back(kSelfTest);
  words.insert(words.end(), options.command.begin(), options.command.end());
  return words;
}

std::string CommandText(const std::vector<std::string>& command) {
  std::string text;
  for (const std::string& word : command) {
    if (!text.empty()) text += ' ';
    text += word.empty() ? "''" : ShellQuoted(word);
  }
  return text;
}

SessionEnd RunSession(const Session& session,
                      const std::vector<std::string>& command) {
  // If SIGCHLD were ignored, the client's exit would be lost.
  signal(SIGCHLD, SIG_DFL);
  sigset_t signals = ForwardedSignals(), before;
  sigaddset(&signals, SIGCHLD);
  sigprocmask(SIG_BLOCK, &signals, &before);
  SessionEnd end;
  int pipe[2];
  if (pipe2(pipe, O_CLOEXEC) != 0) return end;
  const pid_t watcher = fork();
  if (watcher == 0) {
    close(pipe[1]);
    Watch(pipe[0], session);
  }
  close(pipe[0]);
  const pid_t self = getpid();
  const pid_t client = watcher < 0 ? -1 : fork();
  if (client == 0) ExecClient(command, self, before);
  if (client > 0) {
    Tell(pipe[1], client);
    end = Supervision(session, client, signals).Run();
    end.left_behind = !RemoveForSure(session);
    Tell(pipe[1], 0);
  }
  close(pipe[1]);
  if (watcher > 0) waitpid(watcher, nullptr, 0);
  return end;
}

std::string ExplainEnd(const Session& session, const SessionEnd& end) {
  const Options& options = session.options;
  if (end.exit_code == 125) {
    return "Docker did not start the container (exit code 125): its reason is "
           "above";
  }
  if (!options.test && options.command.empty()) return "";
  const std::string program =
      options.test ? kSelfTest : ShellQuoted(options.command.front());
  if (end.exit_code == 126) {
    return program +
           " could not be started in the container (exit code 126): the "
           "reason is above";
  }
  if (end.exit_code == 127) {
    return program + " was not found in the container (exit code 127): " +
           (options.test ? "is " + options.image + " an image of Requant?"
                         : "check the name");
  }
  if (end.exit_code == 128 + SIGKILL && end.signal == 0) {
    return program +
           " was killed (exit code 137): if it needed more memory than the "
           "container has, raise --memory";
  }
  return "";
}

}  // namespace requant::launch
