#include "transforms/recipe_program.h"

#include <cstdio>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/program/isolation.h"
#include "base/status_macros.h"
#include "base/text/nearest_name.h"
#include "base/text/printable.h"
#include "graph/diff.h"
#include "graph/freeze/needed_nodes.h"
#include "graph/graph_index.h"
#include "graph/verify/verify.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace requant {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;

// Removes the nodes that none of the outputs needs.
absl::Status KeepWhatIsNeeded(const RecipeProgram& program, GraphDef* graph) {
  REQUANT_ASSIGN_OR_RETURN(const GraphIndex index, GraphIndex::Create(graph));
  std::vector<std::string> roots;
  for (const std::string& output : program.outputs) {
    roots.emplace_back(ParseTensorName(output).node);
    if (index.Find(roots.back()) != nullptr) continue;
    std::vector<std::string> known;
    for (const NodeDef& node : graph->node()) known.push_back(node.name());
    return absl::NotFoundError(absl::StrCat(
        program.outputs_flag, " names \"", output, "\"",
        DidYouMean(output, known), ", which is not in ", program.in_graph));
  }
  const NodeSet needed = NeededNodes(index, roots);
  GraphDef kept;
  for (NodeDef& node : *graph->mutable_node()) {
    if (needed.contains(&node)) *kept.add_node() = std::move(node);
  }
  graph->mutable_node()->Swap(kept.mutable_node());
  return absl::OkStatus();
}

// Fails if TensorFlow could not load the graph; `which` is an adjective for it,
// such as "input".
absl::Status CheckGraph(const GraphDef& graph, std::string_view which) {
  SetActivity("checking the graph");
  REQUANT_ASSIGN_OR_RETURN(const std::vector<GraphProblem> problems,
                           VerifyGraph(graph, {/*shapes=*/true,
                                               /*max_problems=*/1}));
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the ", which, " graph is broken: ", problems[0].message));
}

absl::Status Run(const RecipeProgram& program, const std::string& name) {
  REQUANT_RETURN_IF_ERROR(CheckWritable(program.out_graph));
  SetActivity("reading the graph");
  REQUANT_ASSIGN_OR_RETURN(GraphDef graph, ReadGraph(program.in_graph));
  REQUANT_RETURN_IF_ERROR(CheckGraph(graph, "input"));
  const GraphSize before = SizeOf(graph);
  if (!program.outputs.empty()) {
    REQUANT_RETURN_IF_ERROR(KeepWhatIsNeeded(program, &graph));
  }
  TransformContext context;
  context.outputs = program.outputs;
  context.parameters = program.parameters;
  const absl::Status status = program.change(context, &graph);
  for (const std::string& warning : context.warnings) {
    Say(name, absl::StrCat("warning: ", warning));
  }
  REQUANT_RETURN_IF_ERROR(status);
  REQUANT_RETURN_IF_ERROR(CheckGraph(graph, "resulting"));
  SetActivity("writing the graph");
  REQUANT_RETURN_IF_ERROR(WriteGraph(graph, program.out_graph, program.format));
  for (const std::string& note : context.notes) {
    std::printf("%s\n", Printable(note).c_str());
  }
  std::printf("%s\n", GraphSizeSummary(before, SizeOf(graph)).c_str());
  return absl::OkStatus();
}

}  // namespace

int RecipeMain(int argc, char** argv, ProgramHelp help,
               std::optional<std::string> (*usage_problem)(),
               RecipeProgram (*program)()) {
  help.footer =
      "Exit codes: 0 done, 1 failed (nothing was written), 2 wrong usage.";
  const std::string name = help.name;
  std::vector<std::string> positional;
  if (auto code = ParseFlags(argc, argv, help, &positional)) {
    return FinishOutput(name, *code);
  }
  const auto problem =
      positional.empty()
          ? usage_problem()
          : absl::StrCat("unexpected argument \"", positional.front(), "\"");
  if (problem) return FinishOutput(name, ReportUsage(name, *problem));
  const RecipeProgram recipe = program();
  IsolationOptions isolation;
  isolation.program = name;
  isolation.arguments.assign(argv + 1, argv + argc);
  isolation.outputs = {recipe.out_graph};
  isolation.subject = recipe.in_graph;
  isolation.timeout_seconds = recipe.timeout_seconds;
  return FinishOutput(name, RunIsolated(isolation, [&] {
                        const absl::Status status = Run(recipe, name);
                        return status.ok() ? kExitOk
                                           : ReportFailure(name, status);
                      }));
}

}  // namespace requant
