#include "tests/defects/graph_edits.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "graph/const_node.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant {

using tensorflow::NodeDef;
using tensorflow::Tensor;

std::vector<NodeDef*> NodesOf(const GraphIndex& index,
                              const std::vector<std::string_view>& ops) {
  std::vector<NodeDef*> nodes;
  for (const NodeDef& node : index.graph().node()) {
    if (absl::c_linear_search(ops, node.op())) {
      nodes.push_back(index.Find(node.name()));
    }
  }
  return nodes;
}

absl::StatusOr<NodeDef*> NodeOf(const GraphIndex& index,
                                const std::vector<std::string_view>& ops,
                                int number) {
  const std::vector<NodeDef*> nodes = NodesOf(index, ops);
  if (number < static_cast<int>(nodes.size())) return nodes[number];
  return absl::NotFoundError(absl::StrCat("the graph has ", nodes.size(),
                                          " nodes of ",
                                          absl::StrJoin(ops, " and ")));
}

absl::StatusOr<NodeDef*> ReaderOf(const GraphIndex& index, const NodeDef& node,
                                  std::string_view op) {
  for (const Use& use : index.Uses(node.name())) {
    if (use.node->op() == op) return use.node;
  }
  return absl::NotFoundError(
      absl::StrCat("no ", op, " reads \"", node.name(), "\""));
}

absl::StatusOr<NodeDef*> InputOf(const GraphIndex& index, const NodeDef& node,
                                 int input) {
  NodeDef* producer =
      input < node.input_size() ? index.Producer(node, input) : nullptr;
  if (producer != nullptr) return producer;
  return absl::NotFoundError(
      absl::StrCat("\"", node.name(), "\" has no input ", input));
}

absl::StatusOr<NodeDef*> ConstBehind(const GraphIndex& index,
                                     const NodeDef& node, int input) {
  REQUANT_ASSIGN_OR_RETURN(NodeDef * producer, InputOf(index, node, input));
  while (producer->op() == "Identity") {
    REQUANT_ASSIGN_OR_RETURN(producer, InputOf(index, *producer, 0));
  }
  return producer;
}

void SetConst(const Tensor& value, NodeDef* node) {
  *node->mutable_attr() = MakeConst(node->name(), value).attr();
}

absl::Status ScaleInput(const GraphIndex& index, const NodeDef& node, int input,
                        double factor) {
  REQUANT_ASSIGN_OR_RETURN(ConstValues<float> constant,
                           ValuesBehind<float>(index, node, input));
  for (float& value : constant.values) value *= factor;
  constant.Write();
  return absl::OkStatus();
}

std::vector<int> SortedPositions(std::string_view letter, int count,
                                 std::string_view suffix) {
  std::vector<std::string> names;
  for (int i = 1; i <= count; ++i) {
    names.push_back(absl::StrCat(letter, i, suffix));
  }
  std::vector<std::string> sorted = names;
  absl::c_sort(sorted);
  std::vector<int> positions;
  for (const std::string& name : names) {
    positions.push_back(absl::c_find(sorted, name) - sorted.begin());
  }
  return positions;
}

}  // namespace requant
