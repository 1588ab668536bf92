#ifndef REQUANT_GRAPH_VERIFY_VERIFY_H_
#define REQUANT_GRAPH_VERIFY_VERIFY_H_

// Whether TensorFlow would accept a graph, and what is wrong with it if not.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace requant {

enum class ProblemKind {
  // The nodes and edges are no graph: empty or repeated names, inputs that name
  // nothing, ports out of range, control inputs before data inputs, cycles.
  // TensorFlow's graph code may crash or loop on these.
  kStructure,
  // TensorFlow would refuse the rest with a message. An op that this TensorFlow
  // does not have, or that is gone since the graph's version:
  kOp,
  // Attributes that are missing, unknown or have bad values.
  kAttribute,
  // A node has fewer inputs than its op takes, or, in a function, one that
  // names nothing.
  kMissingInput,
  // A node has more inputs than its op takes, or of other types.
  kInput,
  // Shapes that do not fit together.
  kShape,
  // The graph's version, characters in names, signatures of functions.
  kOther,
};

struct GraphProblem {
  ProblemKind kind;
  // Where it is; "" for the graph as a whole. A node of a function's body is
  // "function/node".
  std::string node;
  // A sentence that names the node.
  std::string message;
};

struct VerifyOptions {
  // Also infer the shapes of all nodes of the graph (not of function bodies),
  // given that nothing else is wrong with it. This is done in a fork of the
  // process, because TensorFlow's code for it crashes on some constants.
  bool shapes = true;
  // Stop after this many problems; 0 means never.
  int max_problems = 20;
};

// Returns the problems of `graph` and its function library, structural ones
// first, else in the order of the nodes; none for a graph that TensorFlow
// imports. Takes time in proportion to the size of the graph. Fails only when
// TensorFlow's library, which has the op definitions, cannot be loaded or no
// process can be started for the shapes.
absl::StatusOr<std::vector<GraphProblem>> VerifyGraph(
    const tensorflow::GraphDef& graph, const VerifyOptions& options = {});

}  // namespace requant

#endif  // REQUANT_GRAPH_VERIFY_VERIFY_H_
