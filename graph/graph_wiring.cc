#include "graph/graph_wiring.h"

#include <algorithm>

#include "graph/graph_index.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace requant {

using tensorflow::NodeDef;

namespace {

// Returns the edges to the readers of each node, in the readers' order.
NodeEdges Reversed(const NodeEdges& inputs) {
  const int32_t count = inputs.node_count();
  NodeEdges uses;
  uses.first.assign(count + 1, 0);
  for (const Edge& edge : inputs.edges) {
    if (edge.node != kNoNode) ++uses.first[edge.node + 1];
  }
  for (int32_t i = 0; i < count; ++i) uses.first[i + 1] += uses.first[i];
  uses.edges.resize(uses.first[count]);
  std::vector<int64_t> next(uses.first.begin(), uses.first.end() - 1);
  for (int32_t i = 0; i < count; ++i) {
    for (const Edge& edge : inputs.Of(i)) {
      if (edge.node != kNoNode) uses.edges[next[edge.node]++] = {i, edge.port};
    }
  }
  return uses;
}

// Walks backward from every node that waits (`waiting` > 0), always to the
// first producer that waits too. Each walk ends in a cycle or at a node that an
// earlier walk has seen.
std::vector<std::vector<int32_t>> FindCycles(
    const NodeEdges& inputs, const std::vector<int32_t>& waiting) {
  std::vector<std::vector<int32_t>> cycles;
  std::vector<int32_t> walk_of(inputs.node_count(), -1);
  for (int32_t start = 0; start < inputs.node_count(); ++start) {
    if (waiting[start] == 0) continue;
    std::vector<int32_t> path;
    int32_t at = start;
    while (walk_of[at] < 0) {
      walk_of[at] = start;
      path.push_back(at);
      const auto edges = inputs.Of(at);
      at = std::find_if(edges.begin(), edges.end(), [&](const Edge& edge) {
             return edge.node != kNoNode && waiting[edge.node] > 0;
           })->node;
    }
    if (walk_of[at] != start) continue;
    cycles.emplace_back(std::find(path.begin(), path.end(), at), path.end());
    std::reverse(cycles.back().begin(), cycles.back().end());
  }
  return cycles;
}

}  // namespace

NodeOrder SortNodes(const NodeEdges& inputs) {
  const int32_t count = inputs.node_count();
  const NodeEdges uses = Reversed(inputs);
  NodeOrder order;
  order.sorted.reserve(count);
  std::vector<int32_t> waiting(count, 0);
  for (int32_t i = 0; i < count; ++i) {
    for (const Edge& edge : inputs.Of(i)) waiting[i] += edge.node != kNoNode;
    if (waiting[i] == 0) order.sorted.push_back(i);
  }
  for (size_t done = 0; done < order.sorted.size(); ++done) {
    for (const Edge& use : uses.Of(order.sorted[done])) {
      if (--waiting[use.node] == 0) order.sorted.push_back(use.node);
    }
  }
  if (order.sorted.size() < static_cast<size_t>(count)) {
    order.cycles = FindCycles(inputs, waiting);
  }
  return order;
}

GraphWiring::GraphWiring(const tensorflow::GraphDef& graph) : graph_(graph) {
  ids_.reserve(graph.node_size());
  for (int i = 0; i < graph.node_size(); ++i) ids_[graph.node(i).name()] = i;
  for (const NodeDef& node : graph.node()) {
    for (const std::string& input : node.input()) {
      const TensorName tensor = ParseTensorName(input);
      inputs_.edges.push_back({Find(tensor.node), tensor.port});
    }
    inputs_.EndNode();
  }
  uses_ = Reversed(inputs_);
}

int GraphWiring::Find(std::string_view name) const {
  const auto found = ids_.find(name);
  return found == ids_.end() ? kNoNode : found->second;
}

std::vector<int> GraphWiring::PendingInputs() const {
  std::vector<int> pending(size());
  for (int i = 0; i < size(); ++i) {
    const NodeDef& node = graph_.node(i);
    const auto producers = Producers(i);
    pending[i] = static_cast<int>(producers.size());
    if (node.op() != "Merge" && node.op() != "RefMerge" &&
        node.op() != "_XlaMerge") {
      continue;
    }
    // A Merge runs on its first value; the other may come from the loop that it
    // starts.
    pending[i] = 1;
    for (const Edge& edge : producers) pending[i] += edge.port == kControlPort;
  }
  return pending;
}

std::vector<int> GraphWiring::ExecutionOrder() const {
  std::vector<int> pending = PendingInputs();
  std::vector<int> ready;
  for (int i = 0; i < size(); ++i) {
    if (Producers(i).empty()) ready.push_back(i);
  }
  std::vector<int> order;
  std::vector<bool> done(size());
  while (!ready.empty()) {
    const int node = ready.back();
    ready.pop_back();
    order.push_back(node);
    done[node] = true;
    for (const Edge& edge : Consumers(node)) {
      if (--pending[edge.node] == 0) ready.push_back(edge.node);
    }
  }
  for (int i = 0; i < size(); ++i) {
    if (!done[i]) order.push_back(i);
  }
  return order;
}

}  // namespace requant
