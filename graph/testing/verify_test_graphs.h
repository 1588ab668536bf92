#ifndef REQUANT_GRAPH_TESTING_VERIFY_TEST_GRAPHS_H_
#define REQUANT_GRAPH_TESTING_VERIFY_TEST_GRAPHS_H_

// Graphs that TensorFlow accepts, one for each kind of graph people have; the
// verifier must find nothing in them.

#include <string>
#include <vector>

namespace requant {

struct NamedGraph {
  std::string name;
  std::string text;
};

const std::vector<NamedGraph>& ValidGraphs();

}  // namespace requant

#endif  // REQUANT_GRAPH_TESTING_VERIFY_TEST_GRAPHS_H_
