#ifndef REQUANT_GRAPH_NODE_ORDER_H_
#define REQUANT_GRAPH_NODE_ORDER_H_

// Sorting the nodes of a graph so that producers come before consumers, and
// finding the cycles that prevent it.

#include <cstdint>
#include <vector>

namespace requant {

// The inputs of nodes numbered from 0: those of node n are
// producer[first[n] .. first[n + 1]), where -1 stands for one to be ignored.
struct NodeInputs {
  std::vector<int64_t> first = {0};
  std::vector<int32_t> producer;

  int32_t node_count() const { return static_cast<int32_t>(first.size()) - 1; }
};

struct NodeOrder {
  // All nodes that depend on no cycle, each after the producers of its inputs.
  std::vector<int32_t> sorted;
  // Cycles that have no node in common, each in the direction of the data.
  // There is at least one if a node is missing in `sorted`.
  std::vector<std::vector<int32_t>> cycles;
};

// Takes time in proportion to nodes and inputs, and no stack.
NodeOrder SortNodes(const NodeInputs& inputs);

}  // namespace requant

#endif  // REQUANT_GRAPH_NODE_ORDER_H_
