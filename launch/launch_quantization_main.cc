// launch_quantization: runs a container session with a model directory mounted.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/printable.h"
#include "base/text/requant_version.h"
#include "launch/mount.h"
#include "launch/options.h"
#include "launch/session.h"

namespace requant::launch {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

// Prints one line to stderr, escaping any control characters in names.
void Say(const std::string& line) {
  std::fprintf(stderr, "launch_quantization: %s\n", Printable(line).c_str());
}

int Fail(const Failure& failure) {
  Say(failure.message);
  return kExitFailed;
}

// Returns an id that is unique to this session.
std::string UniqueId() {
  std::random_device random;
  char text[64];
  std::snprintf(text, sizeof(text), "launch_quantization-%08x%08x",
                static_cast<unsigned>(random()),
                static_cast<unsigned>(random()));
  return text;
}

// Adds the mounts of the model directory and the volumes.
std::optional<Failure> AddMounts(Session* session, std::string* warning) {
  const Options& options = session->options;
  std::string model_dir;
  if (!options.model_dir.empty()) {
    const Result<std::string> path =
        ResolvePath("--pre-trained-model-dir", options.model_dir);
    if (!path.ok()) return path.failure();
    model_dir = *path;
    session->mounts.push_back({model_dir, kModelTarget});
  }
  for (const Mount& volume : options.volumes) {
    const Result<std::string> path = ResolvePath("--volume", volume.source);
    if (!path.ok()) return path.failure();
    session->mounts.push_back({*path, volume.target, volume.read_only});
  }
  if (auto failure = CheckTargets(options.volumes, model_dir)) return failure;
  // The rights of a different user are not known here.
  if (!model_dir.empty() && options.user.empty()) {
    return CheckModelDirectory(model_dir, session->user, warning);
  }
  return std::nullopt;
}

// Adds the user's groups that own a mount.
void AddGroups(Session* session) {
  const Identity& user = session->user;
  const auto has = [](const std::vector<gid_t>& groups, gid_t group) {
    return std::count(groups.begin(), groups.end(), group) > 0;
  };
  for (const Mount& mount : session->mounts) {
    struct stat info;
    if (stat(mount.source.c_str(), &info) == 0 && info.st_gid != user.gid &&
        has(user.groups, info.st_gid) && !has(session->groups, info.st_gid)) {
      session->groups.push_back(info.st_gid);
    }
  }
}

// A background job must not touch its terminal.
void AddTerminal(Session* session) {
  const bool stdin_is_terminal = isatty(STDIN_FILENO);
  session->input = !stdin_is_terminal || tcgetpgrp(STDIN_FILENO) == getpgrp();
  session->terminal =
      stdin_is_terminal && session->input && isatty(STDOUT_FILENO);
}

// Finds the engine, which is optional in a dry run.
Result<Engine> EngineFor(const Options& options) {
  const Result<Engine> engine = FindEngine(options.image);
  if (!engine.ok()) {
    if (!options.dry_run) return engine;
    Say("warning: " + engine.failure().message);
    Engine assumed;
    assumed.path = "docker";
    return assumed;
  }
  if (engine->cpus > 0 && options.cpus.value_or(0) > engine->cpus) {
    return Failure{"--cpus is more than the " + std::to_string(engine->cpus) +
                   " that Docker has: give at most that many"};
  }
  return engine;
}

void Announce(const Session& session, const std::string& warning,
              const std::vector<std::string>& command) {
  if (!warning.empty()) Say("warning: " + warning);
  for (const std::string& line : Relaxations(session.options)) {
    Say("relaxed: " + line);
  }
  if (!session.options.verbose) return;
  Say("Docker " + session.engine.version + " (" + session.engine.path + ")");
  for (const Mount& mount : session.mounts) {
    Say(mount.source + " is at " + mount.target +
        (mount.read_only ? " (read-only)" : ""));
  }
  Say(CommandText(command));
}

int RunAndExplain(const Session& session,
                  const std::vector<std::string>& command) {
  const SessionEnd end = RunSession(session, command);
  if (end.left_behind) {
    Say("Docker could not remove the container: look for it with " +
        session.engine.path +
        " ps --all --filter label=" + SessionLabel(session.id));
  }
  const std::string explanation = ExplainEnd(session, end);
  if (!explanation.empty()) Say(explanation);
  return end.exit_code;
}

int Launch(const Options& options) {
  Session session;
  session.options = options;
  session.user = CallingUser();
  session.id = UniqueId();
  std::string warning;
  if (auto failure = AddMounts(&session, &warning)) return Fail(*failure);
  AddGroups(&session);
  AddTerminal(&session);
  const Result<Engine> engine = EngineFor(options);
  if (!engine.ok()) return Fail(engine.failure());
  session.engine = *engine;
  const std::vector<std::string> command = ContainerCommand(session);
  if (!options.dry_run && !options.name.empty()) {
    if (auto failure = CheckContainerName(*engine, options.name)) {
      return Fail(*failure);
    }
  }
  Announce(session, warning, command);
  if (!options.dry_run) return RunAndExplain(session, command);
  std::printf("%s\n", CommandText(command).c_str());
  return 0;
}

int Main(const std::vector<std::string>& arguments) {
  const Result<Options> options = ParseOptions(arguments);
  if (!options.ok()) {
    Say(options.failure().message + "; see launch_quantization --help");
    return kExitUsage;
  }
  if (options->help) {
    std::fputs(HelpText().c_str(), stdout);
    return 0;
  }
  if (options->version) {
    std::printf("launch_quantization %s\n", kRequantVersion);
    return 0;
  }
  return Launch(*options);
}

}  // namespace
}  // namespace requant::launch

int main(int argc, char** argv) {
  const int code =
      requant::launch::Main(std::vector<std::string>(argv + 1, argv + argc));
  if (std::fflush(stdout) == 0) return code;
  std::perror("launch_quantization: cannot write the result");
  return code == 0 ? requant::launch::kExitFailed : code;
}
