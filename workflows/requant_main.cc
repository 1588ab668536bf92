// requant: one program, a command per task.

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/process/sibling_program.h"
#include "base/program/flags.h"
#include "base/text/nearest_name.h"
#include "base/version.h"
#include "workflows/commands/cache_command.h"
#include "workflows/commands/doctor_command.h"
#include "workflows/commands/plan_command.h"
#include "workflows/commands/run_command.h"
#include "workflows/commands/shell_command.h"
#include "workflows/commands/verify_command.h"

namespace requant {
namespace {

using Args = std::vector<std::string>;

constexpr char kProgram[] = "requant";

struct Command {
  std::string name;
  std::string summary;
  // The program that does it, unless `run` does.
  std::string room;
  std::string program;
  // Gets the arguments behind the command's name; returns the exit code.
  // `--help` among them prints the command's help.
  int (*run)(const Args& args) = nullptr;
};

int RunPlan(const Args& args) { return RunPlanCommand(args, FindTaskStates); }

const std::vector<Command>& Commands() {
  static const auto* commands = new std::vector<Command>{
      {"benchmark", "speed of graphs against each other", "runtime",
       "benchmark_graph"},
      {"cache", "what runs keep so as not to do it twice: size, list, prune",
       "", "", RunCacheCommand},
      {"calibrate", "ranges of a graph's tensors on a dataset", "runtime",
       "calibrate_graph"},
      {"convert", "a SavedModel with its graph transformed, variables and all",
       "runtime", "convert_model"},
      {"dataset", "make records: synthesize them, or preprocess Criteo's",
       "runtime/datasets", "dataset"},
      {"diff", "what changed between two graphs", "graph", "diff_graphs"},
      {"doctor", "check this machine: CPU features, TensorFlow, memory, Docker",
       "", "", RunDoctorCommand},
      {"dump_graph", "the graph of a SavedModel as a file", "graph",
       "dump_graph"},
      {"evaluate", "accuracy and speed of a graph on a dataset", "runtime",
       "evaluate_graph"},
      {"freeze", "one graph without variables from a trained model", "graph",
       "freeze_graph"},
      {"parse_log", "tables of the ranges in calibration logs", "logs_parser",
       "parse_min_max_log"},
      {"pb_to_pbtxt", "a binary graph as text", "graph", "pb_to_pbtxt"},
      {"plan", "what a workflow would do, and whether it can", "", "", RunPlan},
      {"quantize", "an int8 graph from a frozen float one, in one go",
       "runtime", "quantize_model"},
      {"quantize_graph",
       "eight-bit layers with dynamic ranges (recipe, step 6)", "transforms",
       "quantize_graph"},
      {"run", "a workflow, stage by stage, each verified", "", "",
       RunRunCommand},
      {"shell",
       "a shell in which published command lines work: python convert.py", "",
       "", RunShellCommand},
      {"summarize", "inputs, outputs and size of a graph or SavedModel",
       "transforms", "summarize_graph"},
      {"transform", "apply graph transforms, TensorFlow's and ours",
       "transforms", "transform_graph"},
      {"verify", "whether a run's files are still what its manifest says", "",
       "", RunVerifyCommand},
  };
  return *commands;
}

// One line per command, behind two blanks: ./requant help ends with these
// lines.
std::string CommandList() {
  std::string list;
  for (const Command& command : Commands()) {
    absl::StrAppendFormat(&list, "  %-14s  %s\n", command.name,
                          command.summary);
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
  for (const Command& command : Commands()) names.push_back(command.name);
  Say(kProgram,
      absl::StrCat("unknown ", name[0] == '-' ? "flag" : "command", " \"", name,
                   "\"", DidYouMean(name, names), "; the commands are:"));
  std::fputs(CommandList().c_str(), stderr);
  return kExitUsage;
}

int RunCommand(const std::string& name, const Args& args) {
  for (const Command& command : Commands()) {
    if (command.name != name) continue;
    if (command.run != nullptr) return command.run(args);
    return ReportFailure(
        kProgram, BecomeSiblingProgram(command.room, command.program, args,
                                       absl::StrCat(kProgram, " ", name)));
  }
  return RefuseCommand(name);
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
