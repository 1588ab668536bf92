#ifndef REQUANT_GRAPH_GRAPH_WIRING_H_
#define REQUANT_GRAPH_GRAPH_WIRING_H_

// The wiring of a read-only graph, in arrays indexed by node number, so that
// walks over a million nodes need nothing else, and the orders in which nodes
// can be visited.

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace requant {

inline constexpr int32_t kNoNode = -1;

struct Edge {
  // The node at the other end, or kNoNode if an input names none or is to be
  // ignored.
  int32_t node;
  // The producer's output that is read, or kControlPort.
  int32_t port;
};

// The edges of nodes numbered from 0, either of their inputs or to their
// readers. Nodes are added in order: first their edges, then EndNode.
struct NodeEdges {
  std::vector<int64_t> first = {0};
  std::vector<Edge> edges;

  void EndNode() { first.push_back(edges.size()); }
  int32_t node_count() const { return static_cast<int32_t>(first.size()) - 1; }
  absl::Span<const Edge> Of(int32_t node) const {
    return absl::MakeConstSpan(edges.data() + first[node],
                               edges.data() + first[node + 1]);
  }
};

struct NodeOrder {
  // All nodes that depend on no cycle, each after the producers of its inputs.
  std::vector<int32_t> sorted;
  // Disjoint cycles, each in the direction of the data. There is at least one
  // if a node is missing in `sorted`.
  std::vector<std::vector<int32_t>> cycles;
};

// Sorts nodes so that producers come before consumers. Takes time in proportion
// to nodes and inputs, and does not recurse.
NodeOrder SortNodes(const NodeEdges& inputs);

// The wiring of a graph. Unlike GraphIndex it takes any graph, even with
// repeated names or missing inputs.
class GraphWiring {
 public:
  // Nodes are identified by their position in `graph`, which must outlive the
  // wiring and not change.
  explicit GraphWiring(const tensorflow::GraphDef& graph);

  // Returns the node with this name (the last one if it is repeated), or
  // kNoNode.
  int Find(std::string_view name) const;

  // Returns one edge for each of the node's inputs, in their order.
  absl::Span<const Edge> Producers(int node) const { return inputs_.Of(node); }

  // Returns one edge for each input that reads the node, in graph order.
  absl::Span<const Edge> Consumers(int node) const { return uses_.Of(node); }

  int size() const { return inputs_.node_count(); }

  // Returns the nodes in the order of TensorFlow's SortByExecutionOrder; nodes
  // that cannot be sorted (in cycles other than v1 while loops, or needing a
  // missing input) follow in graph order.
  std::vector<int> ExecutionOrder() const;

 private:
  std::vector<int> PendingInputs() const;

  const tensorflow::GraphDef& graph_;
  absl::flat_hash_map<std::string_view, int> ids_;
  NodeEdges inputs_;
  NodeEdges uses_;
};

}  // namespace requant

#endif  // REQUANT_GRAPH_GRAPH_WIRING_H_
