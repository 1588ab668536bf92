// featurecolumn_graph_optimization: the program of that name in the published
// Wide & Deep recipe, with its flags.

#include <gflags/gflags.h>

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files/file.h"
#include "base/program/flags.h"
#include "base/program/isolation.h"
#include "base/status_macros.h"
#include "base/text/printable.h"
#include "graph/diff.h"
#include "graph/graph_io.h"
#include "transforms/feature_columns/fuse_feature_columns.h"
#include "transforms/pipeline_parser.h"
#include "transforms/recipe_program.h"

DEFINE_string(input_graph, "",
              "The frozen graph to read: a binary or text GraphDef.");
DEFINE_string(output_graph, "", "Where to write the result.");
DEFINE_string(output_nodes, "",
              "The graph's outputs, separated by commas; what they do not need "
              "is left out. By default everything is kept.");
DEFINE_string(wide_and_deep_large_ds, "False",
              "True: also fuse the columns, so that the graph takes "
              "preprocessed records. False: only simplify each of them.");
DEFINE_string(prefix, "import/",
              "Put before the name of every node but the new placeholders.");
DEFINE_double(timeout, 3600, "Give up after this many seconds; 0 means never.");

namespace requant {
namespace {

const char* const kProgram = ProgramName();

ProgramHelp Help() {
  ProgramHelp help;
  help.name = kProgram;
  help.summary =
      "Replaces the feature columns of a frozen estimator graph by direct "
      "table lookups.";
  help.usage =
      "$0 --input-graph wide_deep_fp32_graph.pb "
      "--output-graph optimized_wide_deep_fp32_graph.pb --output-nodes "
      "head/predictions/probabilities --wide_and_deep_large_ds True";
  help.flag_files = {__FILE__};
  help.footer =
      "Exit codes: 0 done, 1 failed (nothing was written), 2 wrong usage.";
  return help;
}

std::optional<std::string> UsageProblem(
    const std::vector<std::string>& positional) {
  if (!positional.empty()) {
    return absl::StrCat("unexpected argument \"", positional.front(), "\"");
  }
  if (FLAGS_input_graph.empty()) return "--input-graph is missing";
  if (FLAGS_output_graph.empty()) return "--output-graph is missing";
  if (!ParseTruth(FLAGS_wide_and_deep_large_ds).has_value()) {
    return absl::StrCat("--wide_and_deep_large_ds takes True or False, not \"",
                        FLAGS_wide_and_deep_large_ds, "\"");
  }
  return std::nullopt;
}

absl::Status Optimize() {
  REQUANT_RETURN_IF_ERROR(CheckWritable(FLAGS_output_graph));
  SetActivity("reading the graph");
  REQUANT_ASSIGN_OR_RETURN(tensorflow::GraphDef graph,
                           ReadGraph(FLAGS_input_graph));
  REQUANT_RETURN_IF_ERROR(CheckGraph(graph, "input"));
  const GraphSize before = SizeOf(graph);
  FeatureColumnOptions options;
  options.fuse = *ParseTruth(FLAGS_wide_and_deep_large_ds);
  options.outputs = ParseNameList(FLAGS_output_nodes);
  options.prefix = FLAGS_prefix;
  if (!options.outputs.empty()) {
    REQUANT_RETURN_IF_ERROR(KeepWhatIsNeeded(options.outputs, "--output-nodes",
                                             FLAGS_input_graph, &graph));
  }
  SetActivity("fusing feature columns");
  REQUANT_ASSIGN_OR_RETURN(const FeatureColumnReport report,
                           FuseFeatureColumns(options, &graph));
  for (const std::string& warning : report.warnings) {
    Say(kProgram, absl::StrCat("warning: ", warning));
  }
  if (!report.changed) {
    return absl::FailedPreconditionError(
        absl::StrCat(FLAGS_input_graph, ": ", absl::StrJoin(report.notes, "; "),
                     "; nothing was written"));
  }
  REQUANT_RETURN_IF_ERROR(CheckGraph(graph, "resulting"));
  SetActivity("writing the graph");
  REQUANT_RETURN_IF_ERROR(
      WriteGraph(graph, FLAGS_output_graph, GraphFormat::kBinary));
  for (const std::string& note : report.notes)
    std::printf("%s\n", Printable(note).c_str());
  std::printf("%s\n", GraphSizeSummary(before, SizeOf(graph)).c_str());
  return absl::OkStatus();
}

int Work() {
  const absl::Status status = Optimize();
  return status.ok() ? kExitOk : ReportFailure(kProgram, status);
}

int Main(int argc, char** argv) {
  std::vector<std::string> positional;
  if (auto code = ParseFlags(argc, argv, Help(), &positional)) return *code;
  if (auto problem = UsageProblem(positional)) {
    return ReportUsage(kProgram, *problem);
  }
  IsolationOptions isolation;
  isolation.program = kProgram;
  isolation.arguments.assign(argv + 1, argv + argc);
  isolation.outputs = {FLAGS_output_graph};
  isolation.subject = FLAGS_input_graph;
  isolation.timeout_seconds = FLAGS_timeout;
  return RunIsolated(isolation, Work);
}

}  // namespace
}  // namespace requant

int main(int argc, char** argv) {
  return requant::FinishOutput(requant::kProgram, requant::Main(argc, argv));
}
