#include "launch/options.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/nearest_name.h"
#include "base/text/shell_quote.h"
#include "base/text/wrap_text.h"
#include "launch/mount.h"
#include "launch/quantity.h"

namespace requant::launch {
namespace {

// Engines refuse less.
constexpr int64_t kLeastMemory = 6 << 20;

// Takes a flag's value into the options, or says what would be right.
using Setter = std::optional<Failure> (*)(const std::string& value,
                                          Options* options);

struct Flag {
  const char* name;
  // 0: it has no short form.
  char letter;
  // What --help calls its value; null: it takes none.
  const char* value;
  const char* help;
  Setter set;
};

std::optional<Failure> Expected(const std::string& what,
                                const std::string& value) {
  return Failure{what + ", not " +
                 (value.empty() ? "an empty text" : ShellQuoted(value))};
}

bool IsAlnum(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
         (c >= 'a' && c <= 'z');
}

// Whether `text` starts with a letter, digit or underscore and goes on with
// those and `more`, so that no engine can take it for a flag.
bool IsWord(std::string_view text, std::string_view more) {
  if (text.empty() || !(IsAlnum(text[0]) || text[0] == '_')) return false;
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return IsAlnum(c) || c == '_' || more.find(c) != std::string_view::npos;
  });
}

std::string_view VariableName(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

std::optional<Failure> SetImage(const std::string& value, Options* options) {
  if (!IsWord(value, ".-/:@")) {
    return Expected(
        "--docker-image takes an image's name such as quantization:latest",
        value);
  }
  options->image = value;
  return std::nullopt;
}

std::optional<Failure> SetModelDir(const std::string& value, Options* options) {
  if (value.empty())
    return Expected("--pre-trained-model-dir takes a directory", value);
  options->model_dir = value;
  return std::nullopt;
}

std::optional<Failure> AddVolumes(const std::string& value, Options* options) {
  for (const std::string& part : SplitList(value)) {
    const Result<Mount> volume = ParseVolume(part);
    if (!volume.ok()) return volume.failure();
    options->volumes.push_back(*volume);
  }
  return std::nullopt;
}

std::optional<Failure> AddVariables(const std::string& value,
                                    Options* options) {
  for (const std::string& variable : SplitList(value)) {
    const std::string name(VariableName(variable));
    if (!IsWord(name, ".-")) {
      return Expected("--env takes NAME=VALUE or NAME", variable);
    }
    if (name == variable && std::getenv(name.c_str()) == nullptr) {
      return Failure{"--env: " + name +
                     " is not set here, so it has no value to pass on (write " +
                     name + "=VALUE, and \\, for a comma in a value)"};
    }
    std::vector<std::string>& all = options->environment;
    all.erase(std::remove_if(all.begin(), all.end(),
                             [&](const std::string& earlier) {
                               return VariableName(earlier) == name;
                             }),
              all.end());
    all.push_back(variable);
  }
  return std::nullopt;
}

std::optional<Failure> SetEngine(const std::string& value, Options* options) {
  if (value == "auto") {
    options->engine = EngineChoice::kAuto;
  } else if (value == "docker") {
    options->engine = EngineChoice::kDocker;
  } else if (value == "podman") {
    options->engine = EngineChoice::kPodman;
  } else {
    return Expected("--engine takes docker, podman or auto", value);
  }
  return std::nullopt;
}

std::optional<Failure> SetName(const std::string& value, Options* options) {
  if (value.size() < 2 || value[0] == '_' || !IsWord(value, ".-")) {
    return Expected(
        "--name takes at least two letters, digits, \"_\", \".\" or \"-\", the "
        "first a letter or digit",
        value);
  }
  options->name = value;
  return std::nullopt;
}

std::optional<Failure> SetNetwork(const std::string& value, Options* options) {
  if (!IsWord(value, ".-:=,")) {
    return Expected("--network takes none, bridge, host or a network's name",
                    value);
  }
  options->network = value;
  return std::nullopt;
}

std::optional<Failure> SetMemory(const std::string& value, Options* options) {
  options->memory_bytes = ParseBytes(value);
  if (!options->memory_bytes.has_value() ||
      (*options->memory_bytes != 0 && *options->memory_bytes < kLeastMemory)) {
    return Expected(
        "--memory takes a size such as 512m or 12g, at least 6m, or 0 for no "
        "limit",
        value);
  }
  return std::nullopt;
}

std::optional<Failure> SetCpus(const std::string& value, Options* options) {
  options->cpus = ParseDecimal(value);
  if (!options->cpus.has_value() ||
      (*options->cpus != 0 && *options->cpus < 0.01)) {
    return Expected(
        "--cpus takes a number of CPUs such as 2 or 1.5, or 0 for no limit",
        value);
  }
  return std::nullopt;
}

std::optional<Failure> SetPidsLimit(const std::string& value,
                                    Options* options) {
  const std::optional<int64_t> count = ParseCount(value);
  if (!count.has_value()) {
    return Expected(
        "--pids-limit takes a number of processes, or 0 for no limit", value);
  }
  options->pids_limit = *count;
  return std::nullopt;
}

std::optional<Failure> SetScratchSize(const std::string& value,
                                      Options* options) {
  const std::optional<int64_t> bytes = ParseBytes(value);
  if (!bytes.has_value() || *bytes < 1 << 20) {
    return Expected(
        "--scratch-size takes a size such as 512m or 8g, at least 1m", value);
  }
  options->scratch_bytes = *bytes;
  return std::nullopt;
}

std::optional<Failure> SetStopTimeout(const std::string& value,
                                      Options* options) {
  const std::optional<double> seconds = ParseDecimal(value);
  if (!seconds.has_value()) {
    return Expected("--stop-timeout takes a number of seconds", value);
  }
  options->stop_seconds = *seconds;
  return std::nullopt;
}

std::optional<Failure> AddCapabilities(const std::string& value,
                                       Options* options) {
  for (const std::string& name : SplitList(value)) {
    if (!IsWord(name, "")) {
      return Expected("--cap-add takes a capability such as SYS_PTRACE", name);
    }
    options->added_capabilities.push_back(name);
  }
  return std::nullopt;
}

std::optional<Failure> SetUser(const std::string& value, Options* options) {
  const size_t colon = value.find(':');
  if (!IsWord(value.substr(0, colon), ".-") ||
      (colon != std::string::npos && !IsWord(value.substr(colon + 1), ".-"))) {
    return Expected("--user takes USER or USER:GROUP, by number or name",
                    value);
  }
  options->user = value;
  return std::nullopt;
}

// A setter for a flag without a value.
template <bool Options::*kMember>
std::optional<Failure> TurnOn(const std::string&, Options* options) {
  options->*kMember = true;
  return std::nullopt;
}

constexpr Flag kFlags[] = {
    {"docker-image", 'i', "IMAGE",
     "The container's image (default quantization:latest).", SetImage},
    {"pre-trained-model-dir", 'p', "DIR",
     "The directory with your model, mounted at /workspace/quantization; "
     "results that are written there are in it afterwards and are yours.",
     SetModelDir},
    {"test", 't', nullptr,
     "Run the image's self-test and end; needs no model directory.",
     TurnOn<&Options::test>},
    {"verbose", 'v', nullptr,
     "Say what is found, and show the engine's command line.",
     TurnOn<&Options::verbose>},
    {"dry-run", 0, nullptr,
     "Print the engine's command line, for a shell, and run nothing.",
     TurnOn<&Options::dry_run>},
    {"volume", 0, "SRC:DST[:ro]...",
     "Mount SRC at DST too; several times, or separated by commas (\"\\,\" is "
     "a comma in a name).",
     AddVolumes},
    {"env", 0, "NAME[=VALUE]...",
     "Set a variable in the container, without a value to what it is here; "
     "several times, or separated by commas (\"\\,\" is a comma in a value).",
     AddVariables},
    {"engine", 0, "NAME",
     "docker, podman, or auto: the first of them that runs and has the image "
     "(default auto).",
     SetEngine},
    {"name", 0, "NAME", "The container's name (default a unique one).",
     SetName},
    {"memory", 0, "SIZE",
     "Its memory with its scratch folders, such as 12g; 0: no limit (default "
     "80 "
     "% of the machine's).",
     SetMemory},
    {"cpus", 0, "NUMBER",
     "Its share of the CPUs, such as 2.5; 0: no limit (default all).", SetCpus},
    {"pids-limit", 0, "NUMBER",
     "How many processes and threads it may have; 0: no limit (default 4096).",
     SetPidsLimit},
    {"scratch-size", 0, "SIZE",
     "What /workspace/tensorflow and /tmp can each hold, in memory (default "
     "4g).",
     SetScratchSize},
    {"stop-timeout", 0, "SECONDS",
     "How long it may take to end after SIGTERM or SIGHUP (default 10).",
     SetStopTimeout},
    {"network", 0, "NAME",
     "Connect it: bridge, host or a network's name (default none).",
     SetNetwork},
    {"writable-root", 0, nullptr,
     "Let it write anywhere in its own file system; nothing of that is kept.",
     TurnOn<&Options::writable_root>},
    {"allow-new-privileges", 0, nullptr,
     "Let programs in it gain privileges, as sudo does.",
     TurnOn<&Options::allow_new_privileges>},
    {"cap-add", 0, "NAME...", "Give it a capability, such as SYS_PTRACE.",
     AddCapabilities},
    {"user", 0, "USER[:GROUP]",
     "Run as this user of the container (default you); results belong to it.",
     SetUser},
    {"privileged", 0, nullptr,
     "Give it all capabilities and this machine's devices.",
     TurnOn<&Options::privileged>},
    {"version", 0, nullptr, "Print the version.", TurnOn<&Options::version>},
    {"help", 'h', nullptr, "Print this text.", TurnOn<&Options::help>},
};

std::string WithDashes(std::string_view name) {
  std::string dashed(name);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  return dashed;
}

// The flag of that name, or the only one whose name begins so.
Result<const Flag*> FindFlag(const std::string& name) {
  std::vector<const Flag*> beginning;
  std::vector<std::string> names;
  for (const Flag& flag : kFlags) {
    if (name == flag.name) return &flag;
    if (!name.empty() &&
        std::string_view(flag.name).substr(0, name.size()) == name) {
      beginning.push_back(&flag);
    }
    names.push_back(std::string("--") + flag.name);
  }
  if (beginning.size() == 1) return beginning.front();
  if (beginning.empty()) {
    return Failure{"unknown flag --" + name + DidYouMean("--" + name, names)};
  }
  std::string message = "--" + name + " could be";
  for (const Flag* flag : beginning) {
    message +=
        std::string(flag == beginning.front() ? " --" : " or --") + flag->name;
  }
  return Failure{message};
}

Result<const Flag*> FindLetter(char letter) {
  for (const Flag& flag : kFlags) {
    if (flag.letter == letter) return &flag;
  }
  return Failure{"unknown flag " + ShellQuoted(std::string("-") + letter)};
}

// Sets options from a command line, one argument after the other.
class Parser {
 public:
  explicit Parser(const std::vector<std::string>& arguments)
      : arguments_(arguments) {}

  Result<Options> Parse() {
    while (next_ < arguments_.size()) {
      const std::string& argument = arguments_[next_++];
      if (argument == "--") {
        options_.command.assign(arguments_.begin() + next_, arguments_.end());
        if (options_.command.empty()) {
          return Failure{"there is no command after --"};
        }
        break;
      }
      const std::optional<Failure> failure =
          argument.substr(0, 2) == "--"               ? SetLong(argument)
          : argument.size() > 1 && argument[0] == '-' ? SetLetters(argument)
                                                      : Unexpected(argument);
      if (failure.has_value()) return *failure;
    }
    return options_;
  }

 private:
  static std::optional<Failure> Unexpected(const std::string& argument) {
    return Failure{"unexpected argument " +
                   (argument.empty() ? "''" : ShellQuoted(argument)) +
                   " (a command for the container goes after --)"};
  }

  // --name, --name=value, --name value.
  std::optional<Failure> SetLong(const std::string& argument) {
    const size_t equals = argument.find('=');
    const Result<const Flag*> flag =
        FindFlag(WithDashes(argument.substr(2, equals - 2)));
    if (!flag.ok()) return flag.failure();
    if (equals == std::string::npos) return Set(**flag, std::nullopt);
    return Set(**flag, argument.substr(equals + 1));
  }

  // -v, -vt, -p value, -pvalue, -p=value.
  std::optional<Failure> SetLetters(const std::string& argument) {
    for (size_t i = 1; i < argument.size(); ++i) {
      const Result<const Flag*> flag = FindLetter(argument[i]);
      if (!flag.ok()) return flag.failure();
      if ((*flag)->value == nullptr) {
        if (auto failure = Set(**flag, std::nullopt)) return failure;
        continue;
      }
      std::string rest = argument.substr(i + 1);
      if (rest.empty()) return Set(**flag, std::nullopt);
      if (rest[0] == '=') rest.erase(0, 1);
      return Set(**flag, rest);
    }
    return std::nullopt;
  }

  // A flag that needs a value and has none takes the next argument.
  std::optional<Failure> Set(const Flag& flag,
                             std::optional<std::string> value) {
    const std::string name = std::string("--") + flag.name;
    if (flag.value == nullptr) {
      if (value.has_value()) return Failure{name + " takes no value"};
    } else if (!value.has_value()) {
      if (next_ == arguments_.size() || arguments_[next_][0] == '-') {
        return Failure{name + " needs a value, " + flag.value};
      }
      value = arguments_[next_++];
    }
    return flag.set(value.value_or(""), &options_);
  }

  const std::vector<std::string>& arguments_;
  size_t next_ = 0;
  Options options_;
};

std::optional<Failure> CheckTogether(const Options& options) {
  if (options.test && !options.command.empty()) {
    return Failure{"--test and a command after -- cannot go together"};
  }
  if (options.model_dir.empty() && !options.test) {
    return Failure{
        "--pre-trained-model-dir is missing: the directory that is mounted at "
        "/workspace/quantization"};
  }
  return std::nullopt;
}

}  // namespace

Result<Options> ParseOptions(const std::vector<std::string>& arguments) {
  const Result<Options> options = Parser(arguments).Parse();
  if (!options.ok() || options->help || options->version) return options;
  if (std::optional<Failure> failure = CheckTogether(*options)) return *failure;
  return options;
}

std::vector<std::string> Relaxations(const Options& options) {
  std::vector<std::string> lines;
  if (options.network != "none") {
    lines.push_back("--network=" + options.network +
                    " (it can reach other machines)");
  }
  if (options.writable_root) {
    lines.push_back("--writable-root (its own file system can be changed)");
  }
  if (options.allow_new_privileges) {
    lines.push_back("--allow-new-privileges (programs in it can gain some)");
  }
  for (const std::string& capability : options.added_capabilities) {
    lines.push_back("--cap-add=" + capability + " (it has that capability)");
  }
  if (!options.user.empty()) {
    lines.push_back("--user=" + options.user +
                    " (results belong to that user)");
  }
  if (options.privileged) {
    lines.push_back(
        "--privileged (it has all capabilities and this machine's devices)");
  }
  if (options.memory_bytes == 0) {
    lines.push_back("--memory=0 (it can take all memory)");
  }
  if (options.pids_limit == 0) {
    lines.push_back("--pids-limit=0 (it can start any number of processes)");
  }
  return lines;
}

std::string HelpText() {
  std::string text;
  AppendWrapped(
      "launch_quantization: opens a session in Requant's container, in "
      "/workspace/tensorflow, with a model directory mounted at "
      "/workspace/quantization. Safe by default: no network, a read-only root "
      "file system, no capabilities, your own uid and gid, limits.",
      0, &text);
  text +=
      "\nUsage:\n"
      "  launch_quantization -i quantization:latest -p DIR\n"
      "  launch_quantization -p DIR -- requant run wide_deep "
      "--out=/workspace/quantization/run\n"
      "  launch_quantization --test\n"
      "\nFlags:\n";
  for (const Flag& flag : kFlags) {
    text += "  ";
    if (flag.letter != 0) text += std::string("-") + flag.letter + ", ";
    text += std::string("--") + flag.name;
    if (flag.value != nullptr) text += std::string("=") + flag.value;
    text += "\n";
    AppendWrapped(flag.help, 6, &text);
  }
  text += "\n";
  AppendWrapped(
      "With a command after -- its exit code is passed on; 1 means that the "
      "session could not start, 2 that the command line is wrong.",
      0, &text);
  return text;
}

}  // namespace requant::launch
