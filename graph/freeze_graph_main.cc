// freeze_graph: replaces TensorFlow's program of that name, with its flags.

#include <gflags/gflags.h>

#include <cstdio>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/files/file.h"
#include "base/message_text.h"
#include "base/program/flags.h"
#include "base/program/isolation.h"
#include "base/status_macros.h"
#include "base/text/printable.h"
#include "graph/freeze/freeze.h"
#include "graph/graph_io.h"

DEFINE_string(input_saved_model_dir, "",
              "The model: a SavedModel directory. Or name --input_meta_graph, "
              "or --input_graph with --input_checkpoint.");
DEFINE_string(saved_model_tags, "serve",
              "Tags, separated by commas, of the graph to take from the "
              "SavedModel.");
DEFINE_string(input_meta_graph, "",
              "The model as a MetaGraphDef, such as model.ckpt-1.meta.");
DEFINE_string(input_graph, "", "The model's GraphDef, binary or text.");
DEFINE_string(input_checkpoint, "",
              "The checkpoint with the variables' values, without the endings "
              ".index and .data-…; or the one file that TensorFlow before 1.0 "
              "wrote.");
DEFINE_string(output_graph, "", "Where to write the frozen graph.");
DEFINE_string(output_node_names, "",
              "The nodes to compute, separated by commas; by default the "
              "outputs of the SavedModel's serving signature.");
DEFINE_bool(clear_devices, true, "Forget on which devices nodes were placed.");
DEFINE_string(initializer_nodes, "",
              "Nodes, separated by commas, that fill lookup tables. Those that "
              "a SavedModel names itself are found without this.");
DEFINE_string(variable_names_whitelist, "",
              "If given, only these variables, separated by commas, are "
              "frozen.");
DEFINE_string(variable_names_blacklist, "",
              "Variables, separated by commas, that stay variables.");
DEFINE_string(input_saver, "",
              "A SaverDef file, which names the node that restores the "
              "variables.");
DEFINE_string(restore_op_name, "",
              "The node that restores the variables; by default what the "
              "model says, else save/restore_all.");
DEFINE_bool(input_binary, false,
            "Accepted and not needed: binary and text are told apart by "
            "content.");
DEFINE_int32(checkpoint_version, 2,
             "Accepted and not needed: the format of the checkpoint is told by "
             "its files.");
DEFINE_string(filename_tensor_name, "",
              "Accepted and ignored: no graph is run to read the checkpoint.");
DEFINE_double(timeout, 3600, "Give up after this many seconds; 0 means never.");

namespace requant {
namespace {

const char* const kProgram = ProgramName();

ProgramHelp Help() {
  ProgramHelp help;
  help.name = kProgram;
  help.summary =
      "Makes one graph without variables from a trained TensorFlow model.";
  help.usage =
      "$0 --input_saved_model_dir=model --output_graph=frozen.pb\n"
      "$0 --input_graph=graph.pbtxt "
      "--input_checkpoint=model.ckpt-100 "
      "--output_node_names=y --output_graph=frozen.pb";
  help.flag_files = {__FILE__};
  help.footer =
      "Exit codes: 0 done, 1 failed (nothing was written), 2 wrong usage.";
  return help;
}

std::vector<std::string> Names(const std::string& list) {
  std::vector<std::string> names =
      absl::StrSplit(list, ',', absl::SkipWhitespace());
  for (std::string& name : names) absl::StripAsciiWhitespace(&name);
  return names;
}

std::set<std::string> NameSet(const std::string& list) {
  const std::vector<std::string> names = Names(list);
  return {names.begin(), names.end()};
}

bool IsBoolFlag(const std::string& arg) {
  const std::string name = absl::StrReplaceAll(
      absl::StripPrefix(absl::StripPrefix(arg, "-"), "-"), {{"-", "_"}});
  gflags::CommandLineFlagInfo info;
  return gflags::GetCommandLineFlagInfo(name.c_str(), &info) &&
         info.type == "bool";
}

// Commands for TensorFlow's own program have values that gflags would not
// recognize as such: "--input_binary True", and "--output_graph= x.pb", which a
// published command contains.
std::vector<std::string> Joined(const std::vector<std::string>& args) {
  std::vector<std::string> joined;
  for (const std::string& arg : args) {
    if (!joined.empty() && !absl::StartsWith(arg, "-")) {
      std::string& last = joined.back();
      if (absl::StartsWith(last, "-") && absl::EndsWith(last, "=")) {
        last += arg;
        continue;
      }
      if (absl::StartsWith(last, "-") && IsBoolFlag(last) && ParseTruth(arg)) {
        absl::StrAppend(&last, "=", absl::AsciiStrToLower(arg));
        continue;
      }
    }
    joined.push_back(arg);
  }
  return joined;
}

std::optional<std::string> UsageProblem(
    const std::vector<std::string>& positional) {
  if (!positional.empty()) {
    return absl::StrCat("unexpected argument \"", positional.front(), "\"");
  }
  const int models = !FLAGS_input_saved_model_dir.empty() +
                     !FLAGS_input_meta_graph.empty() +
                     !FLAGS_input_graph.empty();
  if (models == 0) {
    return "name the model with --input_saved_model_dir, --input_meta_graph or "
           "--input_graph";
  }
  if (models > 1) {
    return "--input_saved_model_dir, --input_meta_graph and --input_graph "
           "exclude each other";
  }
  if (FLAGS_output_graph.empty()) return "--output_graph is missing";
  return std::nullopt;
}

FreezeOptions Options() {
  FreezeOptions options;
  options.files.saved_model = FLAGS_input_saved_model_dir;
  options.files.tags = NameSet(FLAGS_saved_model_tags);
  options.files.meta_graph = FLAGS_input_meta_graph;
  options.files.graph = FLAGS_input_graph;
  options.files.checkpoint = FLAGS_input_checkpoint;
  options.files.saver = FLAGS_input_saver;
  options.files.restore_op = FLAGS_restore_op_name;
  options.outputs = Names(FLAGS_output_node_names);
  options.initializers = Names(FLAGS_initializer_nodes);
  options.clear_devices = FLAGS_clear_devices;
  options.only_variables = NameSet(FLAGS_variable_names_whitelist);
  options.kept_variables = NameSet(FLAGS_variable_names_blacklist);
  return options;
}

void Note(std::string_view text) {
  Say(kProgram, absl::StrCat("note: ", text));
}

absl::Status FreezeAndWrite() {
  REQUANT_RETURN_IF_ERROR(
      CheckDistinct(FilesOf(Options().files), {FLAGS_output_graph}));
  REQUANT_RETURN_IF_ERROR(CheckWritable(FLAGS_output_graph));
  SetActivity("freezing the graph");
  REQUANT_ASSIGN_OR_RETURN(const FrozenGraph frozen, Freeze(Options()));
  SetActivity("writing the frozen graph");
  REQUANT_RETURN_IF_ERROR(
      WriteGraph(frozen.graph, FLAGS_output_graph, GraphFormat::kBinary));
  for (const std::string& note : frozen.notes) Note(note);
  std::printf(
      "%s (%.3f MB) frozen, %s inlined, %s kept; wrote %s to "
      "%s\n",
      CountText(frozen.variables, "variable").c_str(),
      frozen.variable_bytes / 1e6,
      CountText(frozen.inlined_calls, "function call").c_str(),
      CountText(frozen.tables, "lookup table").c_str(),
      CountText(frozen.graph.node_size(), "node").c_str(),
      Printable(FLAGS_output_graph).c_str());
  return absl::OkStatus();
}

int Work() {
  if (!FLAGS_filename_tensor_name.empty()) {
    Note(
        "--filename_tensor_name is ignored: no graph is run to read the "
        "checkpoint");
  }
  const absl::Status status = FreezeAndWrite();
  return status.ok() ? kExitOk : ReportFailure(kProgram, status);
}

int Main(int argc, char** argv) {
  const std::vector<std::string> arguments =
      Joined(std::vector<std::string>(argv + 1, argv + argc));
  std::vector<std::string> positional;
  if (auto code = ParseFlags(arguments, Help(), &positional)) return *code;
  if (auto problem = UsageProblem(positional)) {
    return ReportUsage(kProgram, *problem);
  }
  IsolationOptions isolation;
  isolation.program = kProgram;
  isolation.arguments = arguments;
  isolation.outputs = {FLAGS_output_graph};
  isolation.subject = !FLAGS_input_saved_model_dir.empty()
                          ? FLAGS_input_saved_model_dir
                      : !FLAGS_input_meta_graph.empty() ? FLAGS_input_meta_graph
                                                        : FLAGS_input_graph;
  isolation.timeout_seconds = FLAGS_timeout;
  return RunIsolated(isolation, Work);
}

}  // namespace
}  // namespace requant

int main(int argc, char** argv) {
  return requant::FinishOutput(requant::kProgram, requant::Main(argc, argv));
}
