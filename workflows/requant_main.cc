// requant: one program, a command per task.

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/flags.h"
#include "base/nearest_name.h"
#include "base/sibling_program.h"
#include "base/version.h"
#include "workflows/doctor_command.h"
#include "workflows/plan_command.h"
#include "workflows/run_command.h"
#include "workflows/shell_command.h"
#include "workflows/verify_command.h"

namespace requant {
namespace {

using Args = std::vector<std::string>;

constexpr char kProgram[] = "requant";

struct Command {
  std::string name;
  std::string summary;
  // Gets the arguments behind the command's name; returns the exit code.
  // `--help` among them prints the command's help.
  int (*run)(const Args& args);
};

int Become(const std::string& room, const std::string& name, const Args& args) {
  return ReportFailure(kProgram, BecomeSiblingProgram(room, name, args));
}

int RunTransform(const Args& args) {
  return Become("transforms", "transform_graph", args);
}

int RunSummarize(const Args& args) {
  return Become("transforms", "summarize_graph", args);
}

int RunDiff(const Args& args) { return Become("graph", "diff_graphs", args); }

int RunFreeze(const Args& args) {
  return Become("graph", "freeze_graph", args);
}

int RunParseLog(const Args& args) {
  return Become("logs_parser", "parse_min_max_log", args);
}

int RunBenchmark(const Args& args) {
  return Become("runtime", "benchmark_graph", args);
}

int RunCalibrate(const Args& args) {
  return Become("runtime", "calibrate_graph", args);
}

int RunConvert(const Args& args) {
  return Become("runtime", "convert_model", args);
}

int RunDumpGraph(const Args& args) {
  return Become("graph", "dump_graph", args);
}

int RunPbToPbtxt(const Args& args) {
  return Become("graph", "pb_to_pbtxt", args);
}

int RunEvaluate(const Args& args) {
  return Become("runtime", "evaluate_graph", args);
}

int RunQuantize(const Args& args) {
  return Become("runtime", "quantize_model", args);
}

int RunQuantizeGraph(const Args& args) {
  return Become("transforms", "quantize_graph", args);
}

int RunPlan(const Args& args) { return RunPlanCommand(args, FindTaskStates); }

int RunDataset(const Args& args) {
  return Become("runtime/datasets", "dataset", args);
}

const std::vector<Command>& Commands() {
  static const auto* commands = new std::vector<Command>{
      {"benchmark", "speed of graphs against each other", RunBenchmark},
      {"calibrate", "ranges of a graph's tensors on a dataset", RunCalibrate},
      {"convert", "a SavedModel with its graph transformed, variables and all",
       RunConvert},
      {"dataset", "make records: synthesize them, or preprocess Criteo's",
       RunDataset},
      {"diff", "what changed between two graphs", RunDiff},
      {"doctor", "check this machine: CPU features, TensorFlow, memory, Docker",
       RunDoctorCommand},
      {"dump_graph", "the graph of a SavedModel as a file", RunDumpGraph},
      {"evaluate", "accuracy and speed of a graph on a dataset", RunEvaluate},
      {"freeze", "one graph without variables from a trained model", RunFreeze},
      {"parse_log", "tables of the ranges in calibration logs", RunParseLog},
      {"pb_to_pbtxt", "a binary graph as text", RunPbToPbtxt},
      {"plan", "what a workflow would do, and whether it can", RunPlan},
      {"quantize", "an int8 graph from a frozen float one, in one go",
       RunQuantize},
      {"quantize_graph",
       "eight-bit layers with dynamic ranges (recipe, step 6)",
       RunQuantizeGraph},
      {"run", "a workflow, stage by stage, each verified", RunRunCommand},
      {"shell",
       "a shell in which published command lines work: python convert.py",
       RunShellCommand},
      {"summarize", "inputs, outputs and size of a graph or SavedModel",
       RunSummarize},
      {"transform", "apply graph transforms, TensorFlow's and ours",
       RunTransform},
      {"verify", "whether a run's files are still what its manifest says",
       RunVerifyCommand},
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
  std::fprintf(stderr, "%s: unknown %s \"%s\"%s; the commands are:\n%s",
               kProgram, name[0] == '-' ? "flag" : "command", name.c_str(),
               DidYouMean(name, names).c_str(), CommandList().c_str());
  return kExitUsage;
}

int RunCommand(const std::string& name, const Args& args) {
  for (const Command& command : Commands()) {
    if (command.name == name) return command.run(args);
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
