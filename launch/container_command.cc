#include "launch/container_command.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "base/text/shell_quote.h"

namespace requant::launch {
namespace {

// Detaching would leave a container behind, and Docker's usual keys for it take
// Ctrl-P away from the shell. It cannot be turned off, only be made unlikely.
constexpr char kDetachKeys[] = "--detach-keys=ctrl-^,ctrl-^,ctrl-^";

using Words = std::vector<std::string>;

// Adds the limits. The usual one leaves a fifth of the memory to others.
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

// Adds the calling user, to whom files that the container makes then belong.
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

}  // namespace

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
  // The host's network brings the host's name along.
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

}  // namespace requant::launch
