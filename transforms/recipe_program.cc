#include "transforms/recipe_program.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/program/isolation.h"
#include "base/status_macros.h"
#include "base/text/nearest_name.h"
#include "graph/freeze/needed_nodes.h"
#include "graph/graph_index.h"
#include "graph/verify/verify.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace requant {

using tensorflow::GraphDef;
using tensorflow::NodeDef;

absl::Status KeepWhatIsNeeded(const std::vector<std::string>& outputs,
                              std::string_view flag, std::string_view file,
                              GraphDef* graph) {
  REQUANT_ASSIGN_OR_RETURN(const GraphIndex index, GraphIndex::Create(graph));
  std::vector<std::string> roots;
  for (const std::string& output : outputs) {
    roots.emplace_back(ParseTensorName(output).node);
    if (index.Find(roots.back()) != nullptr) continue;
    std::vector<std::string> known;
    for (const NodeDef& node : graph->node()) known.push_back(node.name());
    return absl::NotFoundError(absl::StrCat(flag, " names \"", output, "\"",
                                            DidYouMean(output, known),
                                            ", which is not in ", file));
  }
  const NodeSet needed = NeededNodes(index, roots);
  GraphDef kept;
  for (NodeDef& node : *graph->mutable_node()) {
    if (needed.contains(&node)) *kept.add_node() = std::move(node);
  }
  graph->mutable_node()->Swap(kept.mutable_node());
  return absl::OkStatus();
}

absl::Status CheckGraph(const GraphDef& graph, std::string_view which) {
  SetActivity("checking the graph");
  REQUANT_ASSIGN_OR_RETURN(const std::vector<GraphProblem> problems,
                           VerifyGraph(graph, {/*shapes=*/true,
                                               /*max_problems=*/1}));
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the ", which, " graph is broken: ", problems[0].message));
}

}  // namespace requant
