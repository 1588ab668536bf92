#include "graph/graph_wiring.h"

#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace requant {

using tensorflow::NodeDef;

GraphWiring::GraphWiring(const tensorflow::GraphDef& graph) : graph_(graph) {
  const int count = graph.node_size();
  ids_.reserve(count);
  for (int i = 0; i < count; ++i) ids_[graph.node(i).name()] = i;

  first_producer_.reserve(count + 1);
  first_consumer_.assign(count + 1, 0);
  for (const NodeDef& node : graph.node()) {
    first_producer_.push_back(producers_.size());
    for (const std::string& input : node.input()) {
      const TensorName tensor = ParseTensorName(input);
      const int producer = Find(tensor.node);
      producers_.push_back({producer, tensor.port});
      if (producer != kNoNode) ++first_consumer_[producer + 1];
    }
  }
  first_producer_.push_back(producers_.size());

  for (int i = 0; i < count; ++i) first_consumer_[i + 1] += first_consumer_[i];
  consumers_.resize(first_consumer_[count]);
  std::vector<size_t> next(first_consumer_.begin(), first_consumer_.end() - 1);
  for (int i = 0; i < count; ++i) {
    for (const Edge& edge : Producers(i)) {
      if (edge.node != kNoNode) consumers_[next[edge.node]++] = {i, edge.port};
    }
  }
}

int GraphWiring::Find(std::string_view name) const {
  const auto found = ids_.find(name);
  return found == ids_.end() ? kNoNode : found->second;
}

absl::Span<const GraphWiring::Edge> GraphWiring::Producers(int node) const {
  return absl::MakeConstSpan(producers_.data() + first_producer_[node],
                             producers_.data() + first_producer_[node + 1]);
}

absl::Span<const GraphWiring::Edge> GraphWiring::Consumers(int node) const {
  return absl::MakeConstSpan(consumers_.data() + first_consumer_[node],
                             consumers_.data() + first_consumer_[node + 1]);
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
    // A Merge runs on its first value; the other may come from the loop that
    // it starts.
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
