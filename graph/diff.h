#ifndef REQUANT_GRAPH_DIFF_H_
#define REQUANT_GRAPH_DIFF_H_

// What differs between two graphs. The order of nodes, of functions and of
// attributes says nothing about a graph and is ignored.

#include <cstdint>
#include <string>
#include <vector>

#include "tensorflow/core/framework/graph.pb.h"

namespace requant {

struct GraphSize {
  // Counts the graph itself, without the bodies of functions.
  int64_t nodes = 0;
  // Serialized, with all constants and functions.
  int64_t bytes = 0;
};

GraphSize SizeOf(const tensorflow::GraphDef& graph);

// Returns a line like "1,204 -> 873 nodes (-27 %), 9.53 -> 4.97 MB (-48 %)".
std::string GraphSizeSummary(const GraphSize& before, const GraphSize& after);

struct NodeChange {
  std::string name;
  // The same unless the op changed.
  std::string op_before;
  std::string op_after;
  bool inputs = false;
  bool device = false;
  // Type annotations or debug information.
  bool annotations = false;
  // The attributes that were added, removed or changed, sorted.
  std::vector<std::string> attributes;
};

struct NamedOp {
  std::string name;
  std::string op;
};

// All nodes of one op: how many, and their serialized bytes (which for Const
// are mostly those of the constants).
struct OpSize {
  std::string op;
  GraphSize before;
  GraphSize after;
};

// Everything is sorted by name.
struct GraphDiff {
  GraphSize before;
  GraphSize after;
  std::vector<OpSize> ops;
  std::vector<NamedOp> added;
  std::vector<NamedOp> removed;
  std::vector<NodeChange> changed;
  std::vector<std::string> functions_added;
  std::vector<std::string> functions_removed;
  std::vector<std::string> functions_changed;
  // The other parts of a graph that differ: "versions", "gradients", "debug
  // information".
  std::vector<std::string> other_parts;

  bool equal() const;
};

// Compares any two graphs, also invalid ones: nodes of the same name are
// compared in their order.
GraphDiff DiffGraphs(const tensorflow::GraphDef& before,
                     const tensorflow::GraphDef& after);

// Returns, for people, the summary line, a table of the ops that differ, and at
// most `max_nodes` names of each kind (0: all).
std::string DiffAsText(const GraphDiff& diff, int max_nodes);

// Returns, for programs, one object with everything.
std::string DiffAsJson(const GraphDiff& diff);

}  // namespace requant

#endif  // REQUANT_GRAPH_DIFF_H_
