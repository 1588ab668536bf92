// launch_quantization: container sessions with a model directory mounted.

#include <signal.h>
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
#include "base/text/shell_quote.h"
#include "launch/container_command.h"
#include "launch/engine.h"
#include "launch/explain_end.h"
#include "launch/host_path.h"
#include "launch/identity.h"
#include "launch/mount.h"
#include "launch/options.h"
#include "launch/result.h"
#include "launch/supervisor.h"

namespace requant::launch {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

// One line on stderr. Names may have control characters; terminals get none.
void Say(const std::string& line) {
  std::fprintf(stderr, "launch_quantization: %s\n", Printable(line).c_str());
}

int Fail(const Failure& failure) {
  Say(failure.message);
  return kExitFailed;
}

// No other session has it.
std::string UniqueId() {
  std::random_device random;
  char text[64];
  std::snprintf(text, sizeof(text), "launch_quantization-%08x%08x",
                static_cast<unsigned>(random()),
                static_cast<unsigned>(random()));
  return text;
}

// The model directory and the volumes as mounts, and the groups that own them.
std::optional<Failure> AddMounts(Session* session,
                                 std::vector<std::string>* warnings) {
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
  // Another user has its own rights, which are not known here.
  if (!model_dir.empty() && options.user.empty()) {
    return CheckModelDirectory(model_dir, session->user, warnings);
  }
  return std::nullopt;
}

void AddGroups(Session* session) {
  const std::vector<gid_t>& mine = session->user.groups;
  for (const Mount& mount : session->mounts) {
    struct stat info;
    if (stat(mount.source.c_str(), &info) != 0) continue;
    const gid_t group = info.st_gid;
    std::vector<gid_t>& groups = session->groups;
    if (group != session->user.gid &&
        std::find(mine.begin(), mine.end(), group) != mine.end() &&
        std::find(groups.begin(), groups.end(), group) == groups.end()) {
      groups.push_back(group);
    }
  }
}

// A job in the background may not touch its terminal.
bool IsInForeground(int fd) { return tcgetpgrp(fd) == getpgrp(); }

void AddTerminal(Session* session) {
  const bool stdin_is_terminal = isatty(STDIN_FILENO);
  session->input = !stdin_is_terminal || IsInForeground(STDIN_FILENO);
  session->terminal =
      stdin_is_terminal && session->input && isatty(STDOUT_FILENO);
}

// The engine, which a dry run need not have.
Result<Engine> FindEngine(const Options& options) {
  const Result<Engine> engine = ChooseEngine(options);
  if (engine.ok() || !options.dry_run) return engine;
  Say("warning: " + engine.failure().message);
  Engine assumed;
  assumed.kind = options.engine == EngineChoice::kPodman ? EngineKind::kPodman
                                                         : EngineKind::kDocker;
  assumed.path = options.engine == EngineChoice::kPodman ? "podman" : "docker";
  return assumed;
}

std::optional<Failure> CheckLimits(const Session& session) {
  const double cpus = session.options.cpus.value_or(0);
  if (session.engine.cpus == 0 || cpus <= session.engine.cpus) {
    return std::nullopt;
  }
  return Failure{"--cpus is more than the " +
                 std::to_string(session.engine.cpus) + " that " +
                 EngineName(session.engine.kind) +
                 " has: give at most so many"};
}

void Announce(const Session& session, const std::vector<std::string>& warnings,
              const std::vector<std::string>& command) {
  for (const std::string& warning : warnings) Say("warning: " + warning);
  for (const std::string& flag : MissingLimits(session)) {
    Say("warning: " + EngineName(session.engine.kind) +
        " cannot limit this here and goes without: " + flag);
  }
  for (const std::string& line : Relaxations(session.options)) {
    Say("relaxed: " + line);
  }
  if (session.engine.selinux) {
    Say("relaxed: SELinux labels are off for the container, so that it can "
        "read your files without relabelling them");
  }
  if (!session.options.verbose) return;
  Say(EngineName(session.engine.kind) + " " + session.engine.version + " (" +
      session.engine.path + (session.engine.rootless ? ", rootless)" : ")"));
  for (const Mount& mount : session.mounts) {
    Say(mount.source + " is at " + mount.target +
        (mount.read_only ? " (read-only)" : ""));
  }
  Say(CommandText(command));
}

int RunAndExplain(const Session& session,
                  const std::vector<std::string>& command) {
  const SessionEnd end = RunSession(
      {session.engine.path, session.id, command, session.options.stop_seconds});
  if (end.left_behind) {
    Say(EngineName(session.engine.kind) +
        " could not remove the container: look for it with " +
        session.engine.path + " ps --all --filter label=" + kSessionLabel +
        "=" + session.id);
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
  std::vector<std::string> warnings;
  if (auto failure = AddMounts(&session, &warnings)) return Fail(*failure);
  AddGroups(&session);
  AddTerminal(&session);
  const Result<Engine> engine = FindEngine(options);
  if (!engine.ok()) return Fail(engine.failure());
  session.engine = *engine;
  if (auto failure = CheckLimits(session)) return Fail(*failure);
  const std::vector<std::string> command = ContainerCommand(session);
  if (options.dry_run) {
    Announce(session, warnings, command);
    std::printf("%s\n", CommandText(command).c_str());
    return 0;
  }
  if (!options.name.empty()) {
    if (auto failure = CheckContainerName(session.engine, options.name)) {
      return Fail(*failure);
    }
  }
  Announce(session, warnings, command);
  return RunAndExplain(session, command);
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
