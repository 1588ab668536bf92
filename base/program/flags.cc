#include "base/program/flags.h"

#include <gflags/gflags.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/terminal_guard.h"
#include "base/text/nearest_name.h"
#include "base/text/printable.h"
#include "base/version.h"

namespace requant {
namespace {

// Receives the lines of Say instead of stderr, unless null.
void (*say_line)(std::string_view line) = nullptr;

bool Listed(const gflags::CommandLineFlagInfo& flag, const ProgramHelp& help) {
  return absl::c_any_of(help.flag_files, [&](const std::string& file) {
    return absl::EndsWith(flag.filename, file) ||
           absl::EndsWith(file, flag.filename);
  });
}

std::vector<gflags::CommandLineFlagInfo> ListedFlags(const ProgramHelp& help) {
  std::vector<gflags::CommandLineFlagInfo> all, listed;
  gflags::GetAllFlags(&all);
  for (const auto& flag : all) {
    if (Listed(flag, help) &&
        !absl::c_linear_search(help.hidden_flags, flag.name)) {
      listed.push_back(flag);
    }
  }
  return listed;
}

struct FlagArgument {
  std::string name;
  std::optional<std::string> value;
};

FlagArgument SplitFlag(std::string_view arg) {
  arg.remove_prefix(absl::StartsWith(arg, "--") ? 2 : 1);
  FlagArgument flag;
  const size_t equals = arg.find('=');
  flag.name = absl::StrReplaceAll(arg.substr(0, equals), {{"-", "_"}});
  if (equals != std::string_view::npos) {
    flag.value = std::string(arg.substr(equals + 1));
  }
  return flag;
}

// Sets flags from a command line in order.
class FlagSetter {
 public:
  FlagSetter(const std::vector<std::string>& args, const ProgramHelp& help)
      : args_(args), help_(help) {}

  // Takes the value of a flag without "=" from args[*next]. Returns an exit
  // code after an error, which has been printed.
  std::optional<int> Set(FlagArgument flag, size_t* next) {
    for (const auto& [alias, name] : help_.aliases) {
      if (flag.name == alias) flag.name = name;
    }
    gflags::CommandLineFlagInfo info;
    if (!Find(&flag, &info)) return ReportUnknown(flag.name);
    if (!flag.value.has_value()) {
      if (info.type == "bool") {
        flag.value = "true";
      } else if (*next < args_.size()) {
        flag.value = args_[(*next)++];
      } else {
        return ReportUsage(
            help_.name, absl::StrCat("flag --", flag.name, " needs a value"));
      }
    }
    const bool is_first = !absl::c_linear_search(already_set_, flag.name);
    if (is_first) already_set_.push_back(flag.name);
    if (!is_first && absl::c_linear_search(help_.repeatable_flags, flag.name)) {
      flag.value = absl::StrCat(info.current_value, ",", *flag.value);
    }
    if (gflags::SetCommandLineOption(flag.name.c_str(), flag.value->c_str())
            .empty()) {
      return ReportUsage(
          help_.name,
          absl::StrCat("flag --", flag.name, " takes a value of type ",
                       info.type, ", not \"", *flag.value, "\""));
    }
    return std::nullopt;
  }

 private:
  // Looks up a flag of the program, not of others in the same binary.
  bool FindByName(const char* name, gflags::CommandLineFlagInfo* info) const {
    return gflags::GetCommandLineFlagInfo(name, info) && Listed(*info, help_);
  }

  // Looks the flag up; "--noflag" becomes "--flag=false".
  bool Find(FlagArgument* flag, gflags::CommandLineFlagInfo* info) const {
    if (FindByName(flag->name.c_str(), info)) return true;
    const bool negated =
        absl::StartsWith(flag->name, "no") && !flag->value.has_value() &&
        FindByName(flag->name.c_str() + 2, info) && info->type == "bool";
    if (!negated) return false;
    flag->name = flag->name.substr(2);
    flag->value = "false";
    return true;
  }

  int ReportUnknown(const std::string& name) const {
    std::vector<std::string> names;
    for (const auto& listed : ListedFlags(help_)) names.push_back(listed.name);
    return ReportUsage(help_.name, absl::StrCat("unknown flag --", name,
                                                DidYouMean(name, names)));
  }

  const std::vector<std::string>& args_;
  const ProgramHelp& help_;
  std::vector<std::string> already_set_;
};

// Returns what to do about a system limit. It is recognized by the message,
// because most come from libraries, and some from other processes.
std::string LimitHint(std::string_view message) {
  if (absl::StrContains(message, "ulimit -")) return "";
  if (absl::StrContains(message, std::strerror(EFBIG))) {
    return "; files may not be as large as that here: raise the limit with "
           "ulimit -f, or write to another file system";
  }
  if (absl::StrContains(message, std::strerror(EMFILE))) {
    return "; raise the limit on open files, as with ulimit -n 1024";
  }
  return "";
}

}  // namespace

std::optional<bool> ParseTruth(std::string_view text) {
  const std::string value = absl::AsciiStrToLower(text);
  if (value == "true" || value == "1" || value == "yes") return true;
  if (value == "false" || value == "0" || value == "no") return false;
  return std::nullopt;
}

std::string HelpText(const ProgramHelp& help) {
  std::string text;
  AppendWrapped(absl::StrCat(help.name, ": ", help.summary), 0, &text);
  text += "\nUsage:\n";
  for (std::string_view line :
       absl::StrSplit(help.usage, '\n', absl::SkipEmpty())) {
    absl::StrAppend(&text, "  ", absl::StrReplaceAll(line, {{"$0", help.name}}),
                    "\n");
  }
  const auto flags = ListedFlags(help);
  if (!flags.empty()) text += "\nFlags:\n";
  for (const auto& flag : flags) {
    absl::StrAppend(&text, "  --", flag.name);
    if (flag.type != "bool") {
      absl::StrAppend(&text, "=<", flag.type, ">");
      if (absl::c_linear_search(help.repeatable_flags, flag.name)) {
        text += "...";
      }
      if (!flag.default_value.empty()) {
        double number = 0;
        // Otherwise, 99.99 would be shown as 99.989999999999995.
        const bool is_double = flag.type == "double" &&
                               absl::SimpleAtod(flag.default_value, &number);
        absl::StrAppend(
            &text, "  (default ",
            is_double ? absl::StrFormat("%.15g", number) : flag.default_value,
            ")");
      }
    } else if (flag.default_value == "true") {
      absl::StrAppend(&text, "  (default on; --no", flag.name,
                      " turns it off)");
    }
    text += "\n";
    const auto own = absl::c_find_if(help.descriptions, [&](const auto& entry) {
      return entry.first == flag.name;
    });
    AppendWrapped(
        own == help.descriptions.end() ? flag.description : own->second, 6,
        &text);
  }
  if (!help.footer.empty()) absl::StrAppend(&text, "\n", help.footer, "\n");
  return text;
}

std::optional<int> ParseFlags(const std::vector<std::string>& args,
                              const ProgramHelp& help,
                              std::vector<std::string>* positional) {
  GuardTerminal();
  FlagSetter setter(args, help);
  size_t next = 0;
  while (next < args.size()) {
    const std::string& arg = args[next++];
    if (arg == "--") break;
    if (arg.size() < 2 || arg[0] != '-') {
      positional->push_back(arg);
      continue;
    }
    if (arg == "--help" || arg == "-h" || arg == "-help") {
      std::fputs(HelpText(help).c_str(), stdout);
      return kExitOk;
    }
    if (arg == "--version") {
      std::printf("%s\n", VersionLine().c_str());
      return kExitOk;
    }
    if (auto code = setter.Set(SplitFlag(arg), &next)) return code;
  }
  positional->insert(positional->end(), args.begin() + next, args.end());
  return std::nullopt;
}

std::optional<int> ParseFlags(int argc, char** argv, const ProgramHelp& help,
                              std::vector<std::string>* positional) {
  return ParseFlags(std::vector<std::string>(argv + 1, argv + argc), help,
                    positional);
}

void Say(std::string_view program, std::string_view text) {
  GuardTerminal();
  // Messages of libraries can have line breaks.
  const std::string line = absl::StrCat(
      program, ": ", Printable(absl::StrReplaceAll(text, {{"\n", " "}})));
  if (say_line != nullptr) return say_line(line);
  std::fputs(absl::StrCat(line, "\n").c_str(), stderr);
}

void SetSayer(void (*sayer)(std::string_view line)) { say_line = sayer; }

int ReportFailure(std::string_view program, const absl::Status& status) {
  Say(program, absl::StrCat(status.message(), LimitHint(status.message())));
  return kExitFailed;
}

int ReportUsage(std::string_view program, std::string_view message) {
  Say(program, absl::StrCat(message, "; see ", program, " --help"));
  return kExitUsage;
}

int FinishOutput(std::string_view program, int exit_code) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  if (errno == 0) {
    // An earlier write failed with a lost errno; writing again shows it.
    std::fputc('\n', stdout);
    std::fflush(stdout);
  }
  const std::string reason =
      errno == 0 ? "" : absl::StrCat(": ", std::strerror(errno));
  const int failed = ReportFailure(
      program,
      absl::DataLossError(absl::StrCat("cannot write the result", reason)));
  return exit_code == kExitOk ? failed : exit_code;
}

}  // namespace requant
