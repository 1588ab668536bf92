// requant is one program with a command for each task.

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/process/sibling_program.h"
#include "base/program/flags.h"
#include "base/text/nearest_name.h"
#include "base/version.h"
#include "workflows/commands/commands.h"
#include "workflows/language/stage_fields.h"

namespace requant {
namespace {

using Args = std::vector<std::string>;

constexpr char kProgram[] = "requant";

// A command that this program itself carries out.
struct Command {
  std::string name;
  std::string summary;
  // Takes the arguments after the command's name and returns the exit code.
  // `--help` among them prints the command's help.
  int (*run)(const Args& args);
};

const std::vector<Command>& OwnCommands() {
  static const auto* commands = new std::vector<Command>{
      {"cache", "what runs keep so as not to do it twice: size, list, prune",
       RunCacheCommand},
      {"compare_runs", "several runs side by side, and what differed",
       RunCompareRunsCommand},
      {"completion", "a script with which bash or zsh completes command lines",
       RunCompletionCommand},
      {"doctor", "check this machine: CPU features, TensorFlow, memory, Docker",
       RunDoctorCommand},
      {"init", "a dataset declaration and a workflow for your own model",
       RunInitCommand},
      {"plan", "what a workflow would do, and whether it can", RunPlanCommand},
      {"run", "a workflow, stage by stage, each verified", RunRunCommand},
      {"shell",
       "a shell in which published command lines work: python convert.py",
       RunShellCommand},
      {"verify", "whether a run's files are still what its manifest says",
       RunVerifyCommand},
  };
  return *commands;
}

// Returns each command's summary by its name.
std::map<std::string, std::string> Summaries() {
  std::map<std::string, std::string> summaries;
  for (const Command& command : OwnCommands()) {
    summaries.emplace(command.name, command.summary);
  }
  for (const Program& program : Stages().program()) {
    summaries.emplace(program.command(), program.summary());
  }
  return summaries;
}

// Returns one line per command, indented by two blanks. ./requant help ends
// with these lines.
std::string CommandList() {
  std::string list;
  for (const auto& [name, summary] : Summaries()) {
    absl::StrAppendFormat(&list, "  %-14s  %s\n", name, summary);
  }
  return list;
}

std::string Help() {
  return absl::StrCat(
      "requant takes a trained TensorFlow model to a verified int8 model on "
      "CPUs.\n\nUsage:\n  requant COMMAND [FLAGS]\n  requant help COMMAND\n"
      "  requant --version\n\nCommands:\n",
      CommandList());
}

int RefuseCommand(const std::string& name) {
  Args names;
  for (const auto& [known, summary] : Summaries()) names.push_back(known);
  Say(kProgram,
      absl::StrCat("unknown ", name[0] == '-' ? "flag" : "command", " \"", name,
                   "\"", DidYouMean(name, names), "; the commands are:"));
  std::fputs(CommandList().c_str(), stderr);
  return kExitUsage;
}

int RunCommand(const std::string& name, const Args& args) {
  for (const Command& command : OwnCommands()) {
    if (command.name == name) return command.run(args);
  }
  const Program* const program = FindProgram(name);
  if (program == nullptr) return RefuseCommand(name);
  return ReportFailure(
      kProgram, BecomeSiblingProgram(program->folder(), program->name(), args,
                                     absl::StrCat(kProgram, " ", name)));
}

int PrintHelp(const Args& args) {
  if (!args.empty() && args[0] != "help")
    return RunCommand(args[0], {"--help"});
  std::fputs(Help().c_str(), stdout);
  return kExitOk;
}

int Run(const Args& args) {
  if (args.empty()) {
    std::fputs(Help().c_str(), stderr);
    return kExitUsage;
  }
  const std::string& first = args[0];
  const Args rest(args.begin() + 1, args.end());
  if (first == "help" || first == "--help" || first == "-h") {
    return PrintHelp(rest);
  }
  if (first == "--version") {
    std::printf("%s\n", VersionLine().c_str());
    return kExitOk;
  }
  if (first == "commands") {
    std::fputs(CommandList().c_str(), stdout);
    return kExitOk;
  }
  if (first == kTensorFlowCheckCommand) return RunTensorFlowCheckCommand(rest);
  return RunCommand(first, rest);
}

}  // namespace
}  // namespace requant

int main(int argc, char** argv) {
  return requant::FinishOutput(requant::kProgram,
                               requant::Run({argv + 1, argv + argc}));
}
