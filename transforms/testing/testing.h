#ifndef REQUANT_TRANSFORMS_TESTING_TESTING_H_
#define REQUANT_TRANSFORMS_TESTING_TESTING_H_

// Support for tests of transforms.

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "graph/testing/testing.h"

namespace requant {

struct TransformRun {
  absl::Status status;
  tensorflow::GraphDef graph;
  std::vector<std::string> notes;
  std::vector<std::string> warnings;
};

// Cases of one rule, each with its input and the expected result.
using Cases = std::vector<std::pair<std::string, std::string>>;

// Runs one transform, written as in --transforms, without the verifier.
TransformRun RunTransform(const std::string& transform,
                          const tensorflow::GraphDef& graph,
                          const std::vector<std::string>& inputs = {},
                          const std::vector<std::string>& outputs = {});

// Does the same for a transform that must succeed.
TransformRun MustTransform(const std::string& transform,
                           const tensorflow::GraphDef& graph,
                           const std::vector<std::string>& inputs = {},
                           const std::vector<std::string>& outputs = {});

// Runs a transform that must fail, and returns its error message.
std::string TransformError(const std::string& transform,
                           const tensorflow::GraphDef& graph);

// Returns `graph` with nodes, written as in graph_text.h, added or replacing
// those of the same names.
tensorflow::GraphDef WithNodes(tensorflow::GraphDef graph,
                               const std::string& lines);

// Matches a graph that has the nodes of `lines`, written as in graph_text.h,
// with their ops, inputs and given attributes. Constants must have the same
// values, however they are stored.
testing::Matcher<const tensorflow::GraphDef&> HasNodes(
    const std::string& lines);

// Writes a new file in the test's temporary folder.
std::string WriteTestFile(const std::string& name, const std::string& content);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_TESTING_TESTING_H_
