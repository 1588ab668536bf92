#ifndef REQUANT_GRAPH_GRAPH_WIRING_H_
#define REQUANT_GRAPH_GRAPH_WIRING_H_

// Who reads whom in a graph that is only looked at. Unlike GraphIndex it takes
// any graph, also one with repeated names or missing inputs, and numbers the
// nodes, so that walks over a million of them need only arrays.

#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace requant {

class GraphWiring {
 public:
  // Nodes are known by their position in the graph.
  static constexpr int kNoNode = -1;

  struct Edge {
    // The node at the other end; kNoNode when an input names none.
    int node;
    // The producer's output that is read, or kControlPort.
    int port;
  };

  // `graph` must outlive the wiring and stay as it is.
  explicit GraphWiring(const tensorflow::GraphDef& graph);

  // The node of this name (the last one when it is repeated), or kNoNode.
  int Find(std::string_view name) const;

  // One edge for each of the node's inputs, in their order.
  absl::Span<const Edge> Producers(int node) const;

  // One edge for each input anywhere that reads the node, in graph order.
  absl::Span<const Edge> Consumers(int node) const;

  int size() const { return static_cast<int>(first_producer_.size()) - 1; }

  // The nodes in the order in which TensorFlow's SortByExecutionOrder puts
  // them; what cannot be sorted (cycles that are no v1 while loop, nodes behind
  // a missing input) follows in graph order.
  std::vector<int> ExecutionOrder() const;

 private:
  std::vector<int> PendingInputs() const;

  const tensorflow::GraphDef& graph_;
  absl::flat_hash_map<std::string_view, int> ids_;
  std::vector<Edge> producers_;
  std::vector<size_t> first_producer_;  // per node, and one past the last
  std::vector<Edge> consumers_;
  std::vector<size_t> first_consumer_;
};

}  // namespace requant

#endif  // REQUANT_GRAPH_GRAPH_WIRING_H_
