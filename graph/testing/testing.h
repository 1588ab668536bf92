#ifndef REQUANT_GRAPH_TESTING_TESTING_H_
#define REQUANT_GRAPH_TESTING_TESTING_H_

// For tests: graphs written as text, run and compared.

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant {

// Parses a graph written as in graph_text.h; a mistake in it fails the test and
// gives an empty graph.
tensorflow::GraphDef GraphFromText(const std::string& text);

// The node of that name; a missing one fails the test and gives an empty node.
const tensorflow::NodeDef& NodeNamed(const tensorflow::GraphDef& graph,
                                     const std::string& name);
bool HasNode(const tensorflow::GraphDef& graph, const std::string& name);

// Runs `graph` in a session of this process and returns the fetched tensors.
absl::StatusOr<std::vector<tensorflow::Tensor>> RunGraph(
    const tensorflow::GraphDef& graph,
    const std::vector<std::pair<std::string, tensorflow::Tensor>>& feeds,
    const std::vector<std::string>& fetches);

// The gzip file that holds `content`.
std::string Gzip(const std::string& content);

}  // namespace requant

#endif  // REQUANT_GRAPH_TESTING_TESTING_H_
