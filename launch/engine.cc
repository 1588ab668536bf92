#include "launch/engine.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace requant::launch {
namespace {

// More than this of an answer is not read.
constexpr size_t kLongestAnswer = 1 << 20;
// An engine that prints more than this is stopped.
constexpr off_t kMostPrinted = 64 << 20;

off_t SizeOf(int fd) {
  struct stat info;
  return fstat(fd, &info) == 0 ? info.st_size : 0;
}

// Returns what was written to a descriptor, and closes it.
std::string TakeText(int fd) {
  if (fd < 0) return "";
  const off_t size = SizeOf(fd);
  std::string text(std::min<size_t>(size, kLongestAnswer), ' ');
  text.resize(std::max<ssize_t>(0, pread(fd, text.data(), text.size(), 0)));
  close(fd);
  return text;
}

// An engine that is alive answers within a second or two, a busy one later.
constexpr double kAnswerSeconds = 60;

// Returns whether a message has those words, in either case.
bool Says(const std::string& message, const char* words) {
  return strcasestr(message.c_str(), words) != nullptr;
}

// Returns the last line of a message that is not blank.
std::string LastLine(const std::string& text) {
  const size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return "no message";
  const size_t begin = text.rfind('\n', end) + 1;
  return text.substr(begin, text.find('\n', end) - begin);
}

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

std::optional<Engine> ParseInfo(const std::string& text) {
  // Docker's client prints an empty version when the engine does not answer.
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

}  // namespace requant::launch
