#ifndef REQUANT_GRAPH_DIFF_H_
#define REQUANT_GRAPH_DIFF_H_

// Compares two graphs, ignoring the order of nodes, functions and attributes,
// which has no meaning.

#include <cstdint>
#include <string>
#include <vector>

#include "tensorflow/core/framework/graph.pb.h"

namespace requant {

struct GraphSize {
  // The number of nodes outside function bodies.
  int64_t nodes = 0;
  // The serialized size, with all constants and functions.
  int64_t bytes = 0;
};

GraphSize SizeOf(const tensorflow::GraphDef& graph);

// Returns a line like "1,204 -> 873 nodes (-27 %), 9.53 -> 4.97 MB (-48 %)".
std::string GraphSizeSummary(const GraphSize& before, const GraphSize& after);

struct NodeChange {
  std::string name;
  // Both are equal unless the op changed.
  std::string op_before;
  std::string op_after;
  bool inputs = false;
  bool device = false;
  // Whether type annotations or debug information changed.
  bool annotations = false;
  // The attributes that were added, removed or changed, sorted.
  std::vector<std::string> attributes;
};

struct NamedOp {
  std::string name;
  std::string op;
};

// The nodes of one op: their number and serialized size (for Const, mostly the
// constants).
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
  // Other parts of a graph that differ: "versions", "gradients", "debug
  // information".
  std::vector<std::string> other_parts;

  bool equal() const;
};

// Compares any two graphs, even invalid ones: nodes with the same name are
// paired in order.
GraphDiff DiffGraphs(const tensorflow::GraphDef& before,
                     const tensorflow::GraphDef& after);

// Returns a readable summary: the size line, a table of the ops that differ,
// and at most `max_nodes` names of each kind (0 means all).
std::string DiffAsText(const GraphDiff& diff, int max_nodes);

// Returns a JSON object with everything, for programs.
std::string DiffAsJson(const GraphDiff& diff);

}  // namespace requant

#endif  // REQUANT_GRAPH_DIFF_H_
