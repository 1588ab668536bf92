// Implements featurecolumn_graph_optimization with the flags that it has in the
// published Wide & Deep recipe.

#include <gflags/gflags.h>

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/program/flags.h"
#include "base/program/isolation.h"
#include "base/status_macros.h"
#include "graph/graph_io.h"
#include "transforms/feature_columns/feature_columns.h"
#include "transforms/pipeline_parser.h"
#include "transforms/recipe_program.h"
#include "transforms/transform.h"

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

ProgramHelp Help() {
  return {ProgramName(),
          "Replaces the feature columns of a frozen estimator graph by direct "
          "table lookups.",
          "$0 --input-graph wide_deep_fp32_graph.pb --output-graph "
          "optimized_wide_deep_fp32_graph.pb --output-nodes "
          "head/predictions/probabilities --wide_and_deep_large_ds True",
          {__FILE__},
          ""};
}

std::optional<std::string> UsageProblem() {
  if (FLAGS_input_graph.empty()) return "--input-graph is missing";
  if (FLAGS_output_graph.empty()) return "--output-graph is missing";
  if (!ParseTruth(FLAGS_wide_and_deep_large_ds).has_value()) {
    return absl::StrCat("--wide_and_deep_large_ds takes True or False, not \"",
                        FLAGS_wide_and_deep_large_ds, "\"");
  }
  return std::nullopt;
}

absl::Status Optimize(TransformContext& context, tensorflow::GraphDef* graph) {
  SetActivity("fusing feature columns");
  REQUANT_ASSIGN_OR_RETURN(const bool changed,
                           FuseFeatureColumns(context, graph));
  if (changed) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(FLAGS_input_graph, ": ", absl::StrJoin(context.notes, "; "),
                   "; nothing was written"));
}

RecipeProgram Program() {
  const bool fuse = *ParseTruth(FLAGS_wide_and_deep_large_ds);
  return {FLAGS_input_graph,
          FLAGS_output_graph,
          GraphFormat::kBinary,
          ParseNameList(FLAGS_output_nodes),
          "--output-nodes",
          FLAGS_timeout,
          Parameters({{"fuse", {fuse ? "true" : "false"}},
                      {"prefix", {FLAGS_prefix}}}),
          Optimize};
}

}  // namespace
}  // namespace requant

int main(int argc, char** argv) {
  return requant::RecipeMain(argc, argv, requant::Help(), requant::UsageProblem,
                             requant::Program);
}
