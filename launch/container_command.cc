#include "launch/container_command.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/shell_quote.h"

namespace requant::launch {
namespace {

// Detaching would leave a container behind, and Docker's usual keys for it take
// Ctrl-P away from the shell. It cannot be turned off, only be made unlikely.
constexpr char kDetachKeys[] = "--detach-keys=ctrl-^,ctrl-^,ctrl-^";

using Words = std::vector<std::string>;

std::string Decimal(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.10g", number);
  return text;
}

// What is left of the machine when a container takes all it may.
int64_t UsualMemory(const Engine& engine) {
  return engine.memory_bytes / 5 * 4;
}

int64_t MemoryLimit(const Session& session) {
  return session.options.memory_bytes.value_or(UsualMemory(session.engine));
}

double CpuLimit(const Session& session) {
  return session.options.cpus.value_or(session.engine.cpus);
}

void AddLimits(const Session& session, Words* words) {
  if (session.engine.limits_memory && MemoryLimit(session) > 0) {
    words->push_back("--memory=" + std::to_string(MemoryLimit(session)));
  }
  if (session.engine.limits_cpus && CpuLimit(session) > 0) {
    words->push_back("--cpus=" + Decimal(CpuLimit(session)));
  }
  if (session.engine.limits_pids) {
    // 0 means Podman's own default; -1 is no limit for both engines.
    const int64_t limit = session.options.pids_limit;
    words->push_back("--pids-limit=" + std::to_string(limit == 0 ? -1 : limit));
  }
}

// Such that files that it makes belong to the calling user.
void AddUser(const Session& session, Words* words) {
  const Engine& engine = session.engine;
  if (!session.options.user.empty()) {
    words->push_back("--user=" + session.options.user);
    return;
  }
  if (engine.rootless && engine.kind == EngineKind::kDocker) {
    // There the container's root is the caller, and every other user is nobody.
    words->push_back("--user=0:0");
    return;
  }
  if (engine.rootless) words->push_back("--userns=keep-id");
  if (engine.remaps_users) words->push_back("--userns=host");
  words->push_back("--user=" + std::to_string(session.user.uid) + ":" +
                   std::to_string(session.user.gid));
  if (engine.rootless) return;
  for (gid_t group : session.groups) {
    words->push_back("--group-add=" + std::to_string(group));
  }
}

void AddPrivileges(const Session& session, Words* words) {
  const Options& options = session.options;
  if (!options.writable_root) words->push_back("--read-only");
  if (options.privileged) {
    words->push_back("--privileged");
  } else {
    words->push_back("--cap-drop=ALL");
    for (const std::string& capability : options.added_capabilities) {
      words->push_back("--cap-add=" + capability);
    }
    if (!options.allow_new_privileges) {
      words->push_back("--security-opt=no-new-privileges");
    }
  }
  if (session.engine.selinux) {
    words->push_back("--security-opt=label=disable");
  }
}

void AddFolders(const Session& session, Words* words) {
  for (const Mount& mount : session.mounts) {
    words->push_back("--mount");
    words->push_back(MountArgument(mount));
  }
  for (const char* target : {kWorkTarget, kTemporaryTarget}) {
    words->push_back("--tmpfs");
    words->push_back(std::string(target) +
                     ":rw,exec,nosuid,nodev,mode=1777,size=" +
                     std::to_string(session.options.scratch_bytes));
  }
  words->push_back(std::string("--workdir=") + kWorkTarget);
}

void AddEnvironment(const Session& session, Words* words) {
  const Words& variables = session.options.environment;
  const bool has_home = std::any_of(
      variables.begin(), variables.end(), [](const std::string& variable) {
        return std::string_view(variable).substr(0, 5) == "HOME=" ||
               variable == "HOME";
      });
  if (!has_home) {
    words->push_back("--env");
    words->push_back(std::string("HOME=") + kTemporaryTarget);
  }
  for (const std::string& variable : variables) {
    words->push_back("--env");
    words->push_back(variable);
  }
}

}  // namespace

std::vector<std::string> ContainerCommand(const Session& session) {
  const Options& options = session.options;
  Words words = {session.engine.path, "run", "--rm", "--init", "--pull=never"};
  words.push_back("--name=" +
                  (options.name.empty() ? session.id : options.name));
  words.push_back(std::string("--label=") + kSessionLabel + "=" + session.id);
  if (session.input) words.push_back("--interactive");
  if (session.terminal) {
    words.push_back("--tty");
    words.push_back(kDetachKeys);
  }
  words.push_back("--network=" + options.network);
  // The host's network brings the host's name along.
  if (options.network != "host") words.push_back("--hostname=quantization");
  AddUser(session, &words);
  AddPrivileges(session, &words);
  AddLimits(session, &words);
  AddFolders(session, &words);
  AddEnvironment(session, &words);
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

std::vector<std::string> MissingLimits(const Session& session) {
  std::vector<std::string> missing;
  const Engine& engine = session.engine;
  if (!engine.limits_memory && session.options.memory_bytes != 0) {
    missing.push_back("--memory");
  }
  if (!engine.limits_cpus && session.options.cpus.value_or(0) > 0) {
    missing.push_back("--cpus");
  }
  if (!engine.limits_pids && session.options.pids_limit != 0) {
    missing.push_back("--pids-limit");
  }
  return missing;
}

}  // namespace requant::launch
