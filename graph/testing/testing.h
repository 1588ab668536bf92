#ifndef REQUANT_GRAPH_TESTING_TESTING_H_
#define REQUANT_GRAPH_TESTING_TESTING_H_

// For tests: extends base/testing/testing.h with graphs that are written as
// text, run and compared. Test files need not include what this header does.

#include <algorithm>

#include "base/testing/gzip.h"
#include "base/testing/testing.h"
#include "graph/testing/graph_text.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/framework/types.pb.h"

namespace requant {

using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::Tensor;

// Parses a graph in the format of graph_text.h; a mistake in it fails the test
// and gives an empty graph.
GraphDef GraphFromText(const std::string& text);

// Returns the node with that name, or fails the test and returns an empty one.
const NodeDef& NodeNamed(const GraphDef& graph, const std::string& name);
bool HasNode(const GraphDef& graph, const std::string& name);
// Returns a mutable node; if it is missing, adds it and fails the test.
NodeDef* MutableNode(GraphDef* graph, const std::string& name);
// Returns the names of all nodes, or of those with this op.
std::vector<std::string> NodesOf(const GraphDef& graph,
                                 const std::string& op = "");
// Returns the value of a Const; any other node fails the test.
Tensor ConstNamed(const GraphDef& graph, const std::string& name);
// Returns the value of a Const with a single float.
float ScalarNamed(const GraphDef& graph, const std::string& name);

// Returns a line for each node, "name = Op(input, input)", with the values of
// constants and any device, followed by a line for each function.
std::string LinesOf(const GraphDef& graph);

// Adds nodes in the format of graph_text.h.
void AddNodes(const std::string& lines, GraphDef* graph);

// Return a tensor of `values` in row-major order, and a tensor's values.
template <typename T>
Tensor TensorOf(const tensorflow::TensorShape& shape,
                const std::vector<T>& values) {
  Tensor tensor(tensorflow::DataTypeToEnum<T>::value, shape);
  std::copy(values.begin(), values.end(), tensor.flat<T>().data());
  return tensor;
}
template <typename T = float>
std::vector<T> ValuesOf(const Tensor& tensor) {
  const auto flat = tensor.flat<T>();
  return {flat.data(), flat.data() + flat.size()};
}

// Runs `graph` in a session of this process; returns the fetched tensors.
absl::StatusOr<std::vector<Tensor>> RunGraph(
    const GraphDef& graph,
    const std::vector<std::pair<std::string, Tensor>>& feeds,
    const std::vector<std::string>& fetches);
// Does the same for a graph that must run; a failure returns zeros.
std::vector<Tensor> MustRunGraph(
    const GraphDef& graph,
    const std::vector<std::pair<std::string, Tensor>>& feeds,
    const std::vector<std::string>& fetches);

}  // namespace requant

#endif  // REQUANT_GRAPH_TESTING_TESTING_H_
