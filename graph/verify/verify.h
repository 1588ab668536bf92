#ifndef REQUANT_GRAPH_VERIFY_VERIFY_H_
#define REQUANT_GRAPH_VERIFY_VERIFY_H_

// Checks whether TensorFlow would accept a graph, and if not, what is wrong.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace requant {

enum class ProblemKind {
  // The nodes and edges form no graph: names are empty or repeated, inputs name
  // nothing, ports are out of range, control inputs precede data inputs, or
  // there are cycles. TensorFlow's graph code may crash or loop on these.
  kStructure,
  // TensorFlow would refuse all further kinds with a message. This TensorFlow
  // lacks the op, or removed it before the graph's version.
  kOp,
  // Attributes are missing or unknown or have invalid values.
  kAttribute,
  // A node has fewer inputs than its op takes, or, in a function, an input that
  // names nothing.
  kMissingInput,
  // A node has more inputs than its op takes, or inputs of the wrong types.
  kInput,
  // Shapes do not fit together.
  kShape,
  // The graph's version, a name or a function's signature is invalid.
  kOther,
};

struct GraphProblem {
  ProblemKind kind;
  // The place of the problem, or "" for the graph as a whole. A node of a
  // function's body is "function/node".
  std::string node;
  // A sentence that names the node.
  std::string message;
};

struct VerifyOptions {
  // Whether to infer the shapes of all nodes of the graph (not of function
  // bodies) if nothing else is wrong. This happens in a fork of the process,
  // because TensorFlow's code for it crashes on some constants.
  bool shapes = true;
  // The search stops after this many problems; 0 means never.
  int max_problems = 20;
};

// Returns the problems of `graph` and its function library, structural ones
// first, otherwise in node order; none if TensorFlow can import the graph.
// Takes time in proportion to the graph's size. Fails only if TensorFlow's
// library, which has the op definitions, cannot be loaded, or no process can be
// started to infer shapes.
absl::StatusOr<std::vector<GraphProblem>> VerifyGraph(
    const tensorflow::GraphDef& graph, const VerifyOptions& options = {});

}  // namespace requant

#endif  // REQUANT_GRAPH_VERIFY_VERIFY_H_
