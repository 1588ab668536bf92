#include "launch/options.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/nearest_name.h"
#include "base/text/printable.h"
#include "launch/mount.h"

namespace requant::launch {
namespace {

// Docker refuses a container with less memory than this.
constexpr int64_t kLeastMemory = 6 << 20;
constexpr int64_t kLeastScratch = 1 << 20;

constexpr size_t kMostDigits = 9;

// A value for a flag, or one of a list of values. A setter that rejects it can
// set the reason in `why`.
struct Given {
  const std::string& value;
  Options& options;
  std::string& why;
};

struct Flag {
  const char* name;
  // The short form, or 0.
  char letter;
  // What --help calls the value, or null if there is none. It ends with "..."
  // if the value is a list.
  const char* value;
  // Describes valid values, for the message about an invalid one.
  const char* takes;
  const char* help;
  // Stores the value in the options. Returns false if it is invalid.
  bool (*set)(const Given& given);
};

bool AreDigits(std::string_view text, size_t most) {
  return !text.empty() && text.size() <= most &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isdigit(c); });
}

// Splits at commas; "\," is a literal comma.
std::vector<std::string> SplitList(std::string_view text) {
  std::vector<std::string> parts(1);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ',') {
      parts.emplace_back();
    } else {
      if (text.substr(i, 2) == "\\,") ++i;
      parts.back() += text[i];
    }
  }
  return parts;
}

// Parses a nonnegative number such as "2" or "2.5", with at most nine digits on
// either side of the decimal point.
std::optional<double> ParseDecimal(std::string_view text) {
  const size_t point = std::min(text.find('.'), text.size());
  const std::string_view fraction = text.substr(point);
  if (!AreDigits(text.substr(0, point), kMostDigits) ||
      (!fraction.empty() && !AreDigits(fraction.substr(1), kMostDigits))) {
    return std::nullopt;
  }
  return std::stod(std::string(text));
}

// Parses bytes such as "512m", "1.5g", "6GB" or "1048576", with units of 1024
// in either case. Returns nullopt for anything else and for values above 2^60.
std::optional<int64_t> ParseBytes(std::string_view text) {
  constexpr double kMost = int64_t{1} << 60;
  // Plain bytes can have more digits than ParseDecimal accepts.
  if (AreDigits(text, 18)) return std::stoll(std::string(text));
  const auto last = [&] {
    return text.empty() ? 0
                        : std::tolower(static_cast<unsigned char>(text.back()));
  };
  if (last() == 'b') text.remove_suffix(1);
  double factor = 1;
  const size_t unit = std::string_view("kmgt").find(last());
  if (unit != std::string_view::npos) {
    factor = static_cast<double>(int64_t{1} << (10 * (unit + 1)));
    text.remove_suffix(1);
  }
  const std::optional<double> number = ParseDecimal(text);
  if (!number.has_value() || *number * factor > kMost) return std::nullopt;
  return static_cast<int64_t>(*number * factor);
}

// Returns whether `text` starts with a letter, digit or underscore and
// continues with those and `more`, so that no engine can mistake it for a flag.
bool IsWord(std::string_view text, std::string_view more) {
  const auto is_usual = [](unsigned char c) {
    return std::isalnum(c) || c == '_';
  };
  return !text.empty() && is_usual(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return is_usual(c) || more.find(c) != std::string_view::npos;
         });
}

std::string VariableName(const std::string& variable) {
  return variable.substr(0, variable.find('='));
}

// Returns a quoted text for a message, or `empty` if it is empty.
std::string Quoted(const std::string& text, const char* empty) {
  return text.empty() ? empty : ShellQuoted(text);
}

bool AddVolume(const Given& given) {
  const Result<Mount> volume = ParseVolume(given.value);
  if (volume.ok()) {
    given.options.volumes.push_back(*volume);
  } else {
    given.why = volume.failure().message;
  }
  return volume.ok();
}

bool AddVariable(const Given& given) {
  const std::string name = VariableName(given.value);
  if (!IsWord(name, ".-")) return false;
  if (name == given.value && std::getenv(name.c_str()) == nullptr) {
    given.why = "--env: " + name +
                " is not set here, so it has no value to pass on (write " +
                name + "=VALUE, and \\, for a comma in a value)";
    return false;
  }
  std::vector<std::string>& all = given.options.environment;
  all.erase(std::remove_if(all.begin(), all.end(),
                           [&](const std::string& earlier) {
                             return VariableName(earlier) == name;
                           }),
            all.end());
  all.push_back(given.value);
  return true;
}

bool AddCapability(const Given& given) {
  given.options.added_capabilities.push_back(given.value);
  return IsWord(given.value, "");
}

bool SetUser(const Given& given) {
  const std::string& user = given.options.user = given.value;
  const size_t colon = user.find(':');
  return IsWord(user.substr(0, colon), ".-") &&
         (colon == std::string::npos || IsWord(user.substr(colon + 1), ".-"));
}

// Sets `member` to a number. Returns false if there is none.
template <typename Number, typename Member>
bool SetNumber(const std::optional<Number>& number, Member* member) {
  if (number.has_value()) *member = *number;
  return number.has_value();
}

template <bool Options::*kMember>
bool TurnOn(const Given& given) {
  return given.options.*kMember = true;
}

constexpr Flag kFlags[] = {
    {"docker-image", 'i', "IMAGE",
     "an image's name such as quantization:latest",
     "The container's image (default quantization:latest).",
     [](const Given& given) {
       return IsWord(given.options.image = given.value, ".-/:@");
     }},
    {"pre-trained-model-dir", 'p', "DIR", "a directory",
     "The directory with your model, mounted at /workspace/quantization; "
     "results that are written there are in it afterwards and are yours.",
     [](const Given& given) {
       return !(given.options.model_dir = given.value).empty();
     }},
    {"test", 't', nullptr, nullptr,
     "Run the image's self-test and end; needs no model directory.",
     TurnOn<&Options::test>},
    {"verbose", 'v', nullptr, nullptr,
     "Say what is found, and show the engine's command line.",
     TurnOn<&Options::verbose>},
    {"dry-run", 0, nullptr, nullptr,
     "Print the engine's command line, for a shell, and run nothing.",
     TurnOn<&Options::dry_run>},
    {"volume", 0, "SRC:DST[:ro]...", nullptr,
     "Mount SRC at DST too; several times, or separated by commas (\"\\,\" is "
     "a comma in a name).",
     AddVolume},
    {"env", 0, "NAME[=VALUE]...", "NAME=VALUE or NAME",
     "Set a variable in the container, without a value to what it is here; "
     "several times, or separated by commas (\"\\,\" is a comma in a value).",
     AddVariable},
    {"engine", 0, "NAME", "docker or auto",
     "docker, or auto, which is Docker too (default auto).",
     [](const Given& given) {
       return given.value == "docker" || given.value == "auto";
     }},
    {"name", 0, "NAME",
     "at least two letters, digits, \"_\", \".\" or \"-\", the first a letter "
     "or digit",
     "The container's name (default a unique one).",
     [](const Given& given) {
       given.options.name = given.value;
       return IsWord(given.value, ".-") && given.value.size() > 1 &&
              given.value[0] != '_';
     }},
    {"memory", 0, "SIZE",
     "a size such as 512m or 12g, at least 6m, or 0 for no limit",
     "Its memory with its scratch folders, such as 12g; 0: no limit (default "
     "80 % of the machine's).",
     [](const Given& given) {
       return SetNumber(ParseBytes(given.value), &given.options.memory_bytes) &&
              (given.options.memory_bytes == 0 ||
               given.options.memory_bytes >= kLeastMemory);
     }},
    {"cpus", 0, "NUMBER",
     "a number of CPUs such as 2 or 1.5, or 0 for no limit",
     "Its share of the CPUs, such as 2.5; 0: no limit (default all).",
     [](const Given& given) {
       return SetNumber(ParseDecimal(given.value), &given.options.cpus) &&
              (given.options.cpus == 0 || given.options.cpus >= 0.01);
     }},
    {"pids-limit", 0, "NUMBER", "a number of processes, or 0 for no limit",
     "How many processes and threads it may have; 0: no limit (default 4096).",
     [](const Given& given) {
       if (!AreDigits(given.value, kMostDigits)) return false;
       given.options.pids_limit = std::stoll(given.value);
       return true;
     }},
    {"scratch-size", 0, "SIZE", "a size such as 512m or 8g, at least 1m",
     "What /workspace/tensorflow and /tmp can each hold, in memory (default "
     "4g).",
     [](const Given& given) {
       return SetNumber(ParseBytes(given.value),
                        &given.options.scratch_bytes) &&
              given.options.scratch_bytes >= kLeastScratch;
     }},
    {"stop-timeout", 0, "SECONDS", "a number of seconds",
     "How long it may take to end after SIGTERM or SIGHUP (default 10).",
     [](const Given& given) {
       return SetNumber(ParseDecimal(given.value), &given.options.stop_seconds);
     }},
    {"network", 0, "NAME", "none, bridge, host or a network's name",
     "Connect it: bridge, host or a network's name (default none).",
     [](const Given& given) {
       return IsWord(given.options.network = given.value, ".-:=,");
     }},
    {"writable-root", 0, nullptr, nullptr,
     "Let it write anywhere in its own file system; nothing of that is kept.",
     TurnOn<&Options::writable_root>},
    {"allow-new-privileges", 0, nullptr, nullptr,
     "Let programs in it gain privileges, as sudo does.",
     TurnOn<&Options::allow_new_privileges>},
    {"cap-add", 0, "NAME...", "a capability such as SYS_PTRACE",
     "Give it a capability, such as SYS_PTRACE.", AddCapability},
    {"user", 0, "USER[:GROUP]", "USER or USER:GROUP, by number or name",
     "Run as this user of the container (default you); results belong to it.",
     SetUser},
    {"privileged", 0, nullptr, nullptr,
     "Give it all capabilities and this machine's devices.",
     TurnOn<&Options::privileged>},
    {"version", 0, nullptr, nullptr, "Print the version.",
     TurnOn<&Options::version>},
    {"help", 'h', nullptr, nullptr, "Print this text.", TurnOn<&Options::help>},
};

// Finds the flag with that name or with the only matching prefix.
Result<const Flag*> FindFlag(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  std::vector<const Flag*> beginning;
  std::vector<std::string> names;
  for (const Flag& flag : kFlags) {
    names.push_back(std::string("--") + flag.name);
    if (name == flag.name) return &flag;
    if (!name.empty() && names.back().rfind("--" + name, 0) == 0) {
      beginning.push_back(&flag);
    }
  }
  if (beginning.size() == 1) return beginning.front();
  if (beginning.empty()) {
    return Failure{"unknown flag --" + name + DidYouMean("--" + name, names)};
  }
  std::string choices;
  for (const Flag* flag : beginning) {
    choices += std::string(choices.empty() ? " --" : " or --") + flag->name;
  }
  return Failure{"--" + name + " could be" + choices};
}

Result<const Flag*> FindLetter(char letter) {
  for (const Flag& flag : kFlags) {
    if (flag.letter == letter) return &flag;
  }
  return Failure{"unknown flag " + ShellQuoted(std::string("-") + letter)};
}

// Sets options from a command line in order.
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
      const std::optional<Failure> failure = argument.substr(0, 2) == "--"
                                                 ? SetLong(argument)
                                                 : SetLetters(argument);
      if (failure.has_value()) return *failure;
    }
    return options_;
  }

 private:
  // Parses --name, --name=value or --name value.
  std::optional<Failure> SetLong(const std::string& argument) {
    const size_t equals = argument.find('=');
    const Result<const Flag*> flag = FindFlag(argument.substr(2, equals - 2));
    if (!flag.ok()) return flag.failure();
    if (equals == std::string::npos) return Set(**flag, std::nullopt);
    return Set(**flag, argument.substr(equals + 1));
  }

  // Parses -v, -vt, -p value, -pvalue or -p=value.
  std::optional<Failure> SetLetters(const std::string& argument) {
    if (argument.size() < 2 || argument[0] != '-') {
      return Failure{"unexpected argument " + Quoted(argument, "''") +
                     " (a command for the container goes after --)"};
    }
    for (size_t i = 1; i < argument.size(); ++i) {
      const Result<const Flag*> flag = FindLetter(argument[i]);
      if (!flag.ok()) return flag.failure();
      const size_t rest = i + (argument[i + 1] == '=' ? 2 : 1);
      if ((*flag)->value != nullptr && i + 1 < argument.size()) {
        return Set(**flag, argument.substr(rest));
      }
      if (auto failure = Set(**flag, std::nullopt)) return failure;
    }
    return std::nullopt;
  }

  // Sets a flag; if it lacks a required value, takes the next argument.
  std::optional<Failure> Set(const Flag& flag,
                             std::optional<std::string> value) {
    const std::string name = std::string("--") + flag.name;
    if (flag.value == nullptr) {
      if (value.has_value()) return Failure{name + " takes no value"};
      value = "";
    } else if (!value.has_value()) {
      if (next_ == arguments_.size() || arguments_[next_][0] == '-') {
        return Failure{name + " needs a value, " + flag.value};
      }
      value = arguments_[next_++];
    }
    const bool is_list =
        flag.value != nullptr && std::string_view(flag.value).back() == '.';
    for (const std::string& part :
         is_list ? SplitList(*value) : std::vector<std::string>{*value}) {
      std::string why;
      if (flag.set({part, options_, why})) continue;
      if (!why.empty()) return Failure{why};
      return Failure{name + " takes " + flag.takes + ", not " +
                     Quoted(part, "an empty text")};
    }
    return std::nullopt;
  }

  const std::vector<std::string>& arguments_;
  size_t next_ = 0;
  Options options_;
};

}  // namespace

Result<Options> ParseOptions(const std::vector<std::string>& arguments) {
  const Result<Options> options = Parser(arguments).Parse();
  if (!options.ok() || options->help || options->version) return options;
  if (options->test && !options->command.empty()) {
    return Failure{"--test and a command after -- cannot go together"};
  }
  if (options->model_dir.empty() && !options->test) {
    return Failure{
        "--pre-trained-model-dir is missing: the directory that is mounted at "
        "/workspace/quantization"};
  }
  return options;
}

std::vector<std::string> Relaxations(const Options& options) {
  std::vector<std::string> lines;
  const auto add = [&](bool is_relaxed, const std::string& line) {
    if (is_relaxed) lines.push_back(line);
  };
  add(options.network != "none",
      "--network=" + options.network + " (it can reach other machines)");
  add(options.writable_root,
      "--writable-root (its own file system can be changed)");
  add(options.allow_new_privileges,
      "--allow-new-privileges (programs in it can gain some)");
  for (const std::string& capability : options.added_capabilities) {
    add(true, "--cap-add=" + capability + " (it has that capability)");
  }
  add(!options.user.empty(),
      "--user=" + options.user + " (results belong to that user)");
  add(options.privileged,
      "--privileged (it has all capabilities and this machine's devices)");
  add(options.memory_bytes == 0, "--memory=0 (it can take all memory)");
  add(options.pids_limit == 0,
      "--pids-limit=0 (it can start any number of processes)");
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
      "--output=/workspace/quantization/run\n"
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
