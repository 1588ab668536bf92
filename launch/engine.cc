#include "launch/engine.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/child.h"
#include "launch/options.h"

namespace requant::launch {
namespace {

// An engine that is alive answers within a second or two, a busy one later.
constexpr double kAnswerSeconds = 60;

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::vector<std::string> SplitAt(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// The last line of a message that has any text.
std::string LastLine(const std::string& text) {
  const std::vector<std::string> lines = SplitAt(text, '\n');
  const auto last =
      std::find_if(lines.rbegin(), lines.rend(), [](const std::string& line) {
        return line.find_first_not_of(" \t\r") != std::string::npos;
      });
  return last == lines.rend() ? "no message" : *last;
}

// A client that is there.
Result<EngineKind> ClientKind(const std::string& path) {
  const Answer answer = Ask({path, "--version"}, kAnswerSeconds);
  if (answer.exit_code != 0) {
    return Failure{path + " does not run (exit code " +
                   std::to_string(answer.exit_code) +
                   "): " + LastLine(answer.error)};
  }
  // Podman can be installed under Docker's name.
  return Contains(answer.out, "podman") ? EngineKind::kPodman
                                        : EngineKind::kDocker;
}

std::optional<Failure> CheckImage(const Engine& engine,
                                  const std::string& image) {
  const Answer answer =
      Ask({engine.path, "image", "inspect", "--format", "{{.Id}}", image},
          kAnswerSeconds);
  if (answer.exit_code == 0) return std::nullopt;
  return ExplainMissingImage(engine.kind, image, answer);
}

// The engine whose client is called `name`, if it runs.
Result<Engine> FindEngine(const std::string& name) {
  const std::string path = FindOnPath(name);
  if (path.empty()) {
    return Failure{name +
                   " is not on PATH: install it (on Debian: sudo apt-get "
                   "install " +
                   (name == "docker" ? "docker.io" : name) +
                   "), or choose another --engine"};
  }
  const Result<EngineKind> kind = ClientKind(path);
  if (!kind.ok()) return kind.failure();
  const Answer answer =
      Ask({path, "info", "--format", InfoFormat(*kind)}, kAnswerSeconds);
  std::optional<Engine> engine;
  if (answer.exit_code == 0) engine = ParseInfo(*kind, answer.out);
  if (!engine.has_value()) return ExplainSilence(*kind, answer);
  engine->path = path;
  return *engine;
}

// The clients to look for, by name.
std::vector<std::string> Candidates(EngineChoice choice) {
  if (choice == EngineChoice::kDocker) return {"docker"};
  if (choice == EngineChoice::kPodman) return {"podman"};
  std::vector<std::string> installed;
  for (const char* name : {"docker", "podman"}) {
    if (!FindOnPath(name).empty()) installed.push_back(name);
  }
  return installed;
}

}  // namespace

std::string EngineName(EngineKind kind) {
  return kind == EngineKind::kDocker ? "Docker" : "Podman";
}

std::string InfoFormat(EngineKind kind) {
  return kind == EngineKind::kDocker
             ? "{{.ServerVersion}}|{{.NCPU}}|{{.MemTotal}}|{{.SecurityOptions}}"
             : "{{.Version.Version}}|{{.Host.CPUs}}|{{.Host.MemTotal}}|"
               "rootless={{.Host.Security.Rootless}} "
               "selinux={{.Host.Security.SELinuxEnabled}}|"
               "{{.Host.CgroupControllers}}";
}

std::optional<Engine> ParseInfo(EngineKind kind, const std::string& text) {
  const std::vector<std::string> fields =
      SplitAt(std::string_view(text).substr(0, text.find('\n')), '|');
  const bool is_docker = kind == EngineKind::kDocker;
  // Docker's client prints empty fields when the engine does not answer.
  if (fields.size() != (is_docker ? 4 : 5) || fields[0].empty()) {
    return std::nullopt;
  }
  Engine engine;
  engine.kind = kind;
  engine.version = fields[0];
  engine.cpus = std::strtoll(fields[1].c_str(), nullptr, 10);
  engine.memory_bytes = std::strtoll(fields[2].c_str(), nullptr, 10);
  if (is_docker) {
    engine.rootless = Contains(fields[3], "name=rootless");
    engine.remaps_users = Contains(fields[3], "name=userns");
    engine.selinux = Contains(fields[3], "name=selinux");
    return engine;
  }
  engine.rootless = Contains(fields[3], "rootless=true");
  engine.selinux = Contains(fields[3], "selinux=true");
  // "[cpuset cpu memory pids]"; a rootless engine has what systemd gives it.
  std::string controllers = fields[4];
  std::replace(controllers.begin(), controllers.end(), '[', ' ');
  std::replace(controllers.begin(), controllers.end(), ']', ' ');
  controllers = " " + controllers + " ";
  engine.limits_memory = Contains(controllers, " memory ");
  engine.limits_cpus = Contains(controllers, " cpu ");
  engine.limits_pids = Contains(controllers, " pids ");
  return engine;
}

Failure ExplainSilence(EngineKind kind, const Answer& answer) {
  const std::string name = EngineName(kind);
  const bool is_docker = kind == EngineKind::kDocker;
  if (answer.timed_out) {
    return Failure{name + " does not answer: restart it" +
                   (is_docker ? " (sudo systemctl restart docker)" : "")};
  }
  const std::string all = answer.out + answer.error;
  if (is_docker && Contains(all, "permission denied")) {
    return Failure{
        "you have no permission to use Docker: join its group (sudo usermod "
        "-aG docker \"$USER\", then log in again), or call this with sudo"};
  }
  if (is_docker && (Contains(all, "Cannot connect to the Docker daemon") ||
                    Contains(all, "Is the docker daemon running") ||
                    Contains(all, "connection refused"))) {
    const char* host = std::getenv("DOCKER_HOST");
    return Failure{
        host == nullptr || *host == 0
            ? std::string("Docker is not running: start it (sudo systemctl "
                          "start docker)")
            : std::string("Docker is not running at DOCKER_HOST=") + host +
                  ": start it, or unset DOCKER_HOST"};
  }
  return Failure{name + " does not work here: " + LastLine(all)};
}

Failure ExplainMissingImage(EngineKind kind, const std::string& image,
                            const Answer& answer) {
  std::string message = answer.error;
  std::transform(message.begin(), message.end(), message.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
  });
  const std::string name = EngineName(kind);
  if (answer.timed_out) {
    return Failure{name + " does not answer: restart it"};
  }
  if (Contains(message, "invalid reference") ||
      Contains(message, "must be lowercase")) {
    return Failure{"--docker-image: " + image +
                   " is not a valid image name: " + LastLine(answer.error)};
  }
  if (Contains(message, "no such image") ||
      Contains(message, "image not known")) {
    return Failure{name + " has no image " + image +
                   ": build it with docker/build in Requant's folder, or load "
                   "it (" +
                   (kind == EngineKind::kDocker ? "docker" : "podman") +
                   " load -i FILE)"};
  }
  return Failure{name + " cannot look at image " + image + ": " +
                 LastLine(answer.error)};
}

Result<Engine> ChooseEngine(const Options& options) {
  std::string message;
  bool image_is_missing = false;
  for (const std::string& name : Candidates(options.engine)) {
    const Result<Engine> engine = FindEngine(name);
    std::optional<Failure> failure;
    if (!engine.ok()) {
      failure = engine.failure();
    } else {
      failure = CheckImage(*engine, options.image);
      if (!failure.has_value()) return engine;
      // Said once is enough.
      if (image_is_missing) continue;
      image_is_missing = true;
    }
    message += (message.empty() ? "" : "; and ") + failure->message;
  }
  if (!message.empty()) return Failure{message};
  return Failure{
      "neither docker nor podman is on PATH: install one of them (on Debian: "
      "sudo apt-get install docker.io)"};
}

std::optional<Failure> CheckContainerName(const Engine& engine,
                                          const std::string& name) {
  const Answer answer = Ask({engine.path, "container", "inspect", "--format",
                             "{{.State.Status}}", name},
                            kAnswerSeconds);
  if (answer.exit_code != 0) return std::nullopt;
  const std::string state = answer.out.substr(0, answer.out.find('\n'));
  return Failure{"there is a container named " + name + " already (" + state +
                 "): choose another --name, or remove it (" +
                 (engine.kind == EngineKind::kDocker ? "docker" : "podman") +
                 " rm -f " + name + ")"};
}

}  // namespace requant::launch
