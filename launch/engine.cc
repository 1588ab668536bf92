#include "launch/engine.h"

#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "launch/child.h"

namespace requant::launch {
namespace {

// An engine that is alive answers within a second or two, a busy one later.
constexpr double kAnswerSeconds = 60;

// Whether a message has those words, in either case.
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
