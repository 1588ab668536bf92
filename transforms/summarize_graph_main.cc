// Prints the inputs, outputs and contents of a graph.

#include <gflags/gflags.h>

#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/program/flags.h"
#include "base/status_macros.h"
#include "graph/graph_io.h"
#include "graph/summary/summarize.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

DEFINE_string(in_graph, "",
              "The graph: a binary or text GraphDef (told apart by content), a "
              "MetaGraphDef or a SavedModel directory.");
DEFINE_bool(print_structure, false,
            "Print every node with its op and inputs, in execution order.");
DEFINE_string(saved_model_tags, "",
              "Which graph of a SavedModel, as tags separated by commas; "
              "empty: the only one, or the one tagged serve.");
DEFINE_string(format, "text", "text or json.");

namespace requant {
namespace {

const char* const kProgram = ProgramName();

// The default of --saved_model_tags in the programs.
constexpr char kDefaultTags[] = "serve";

ProgramHelp Help() {
  return {kProgram,
          "Lists a graph's likely inputs and outputs (the best first), its "
          "signatures, variables, size and ops, and the command lines to go on "
          "with.",
          "$0 --in_graph=frozen.pb\n"
          "$0 --in_graph=saved_model_directory --format=json",
          {__FILE__},
          ""};
}

absl::StatusOr<tensorflow::MetaGraphDef> ReadModel(const std::string& path) {
  const std::set<std::string> tags =
      absl::StrSplit(FLAGS_saved_model_tags, ',', absl::SkipEmpty());
  const std::string directory = SavedModelDirectory(path);
  if (!directory.empty()) return ReadSavedModel(directory, tags);
  tensorflow::MetaGraphDef meta;
  REQUANT_ASSIGN_OR_RETURN(*meta.mutable_graph_def(), ReadGraph(path, tags));
  return meta;
}

void Print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

absl::Status Summarize() {
  REQUANT_ASSIGN_OR_RETURN(const tensorflow::MetaGraphDef meta,
                           ReadModel(FLAGS_in_graph));
  GraphSummary summary = SummarizeMetaGraph(meta);
  summary.saved_model = SavedModelDirectory(FLAGS_in_graph);
  const std::string tags = absl::StrJoin(meta.meta_info_def().tags(), ",");
  if (tags != kDefaultTags) summary.saved_model_tags = tags;
  if (FLAGS_format == "json") {
    Print(JsonReport(summary, FLAGS_in_graph,
                     FLAGS_print_structure ? &meta.graph_def() : nullptr));
  } else {
    Print(TextReport(summary, FLAGS_in_graph));
    if (FLAGS_print_structure) Print(StructureReport(meta.graph_def()));
  }
  if (summary.invalid_inputs.empty()) return absl::OkStatus();
  const auto& [node, input] = summary.invalid_inputs[0];
  return absl::InvalidArgumentError(
      absl::StrCat(FLAGS_in_graph, ": ", summary.invalid_inputs.size(),
                   " inputs name nodes that do not exist, such as \"", input,
                   "\" read by \"", node, "\""));
}

int Main(int argc, char** argv) {
  std::vector<std::string> positional;
  if (auto code = ParseFlags(argc, argv, Help(), &positional)) return *code;
  if (!positional.empty()) {
    return ReportUsage(kProgram,
                       absl::StrCat("unexpected argument \"", positional[0],
                                    "\"; name the graph by --in_graph"));
  }
  if (FLAGS_in_graph.empty()) {
    return ReportUsage(kProgram, "--in_graph is not given");
  }
  if (FLAGS_format != "text" && FLAGS_format != "json") {
    return ReportUsage(
        kProgram,
        absl::StrCat("--format is text or json, not \"", FLAGS_format, "\""));
  }
  const absl::Status status = Summarize();
  return status.ok() ? kExitOk : ReportFailure(kProgram, status);
}

}  // namespace
}  // namespace requant

int main(int argc, char** argv) {
  return requant::FinishOutput(requant::kProgram, requant::Main(argc, argv));
}
