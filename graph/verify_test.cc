#include "graph/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/testing.h"
#include "graph/verify_test_graphs.h"

namespace requant {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<GraphProblem> Problems(const GraphDef& graph,
                                   const VerifyOptions& options = {}) {
  auto problems = VerifyGraph(graph, options);
  EXPECT_TRUE(problems.ok()) << problems.status();
  return problems.ok() ? *std::move(problems) : std::vector<GraphProblem>();
}

std::vector<std::string> Messages(const GraphDef& graph) {
  std::vector<std::string> messages;
  for (const GraphProblem& problem : Problems(graph)) {
    messages.push_back(absl::StrCat(
        problem.kind == ProblemKind::kStructure ? "structure: " : "semantics: ",
        problem.message));
  }
  return messages;
}

class ValidGraph : public testing::TestWithParam<NamedGraph> {};

TEST_P(ValidGraph, HasNoProblem) {
  const GraphDef graph = GraphFromText(GetParam().text);
  EXPECT_THAT(Messages(graph), IsEmpty());
  auto run = RunGraph(graph, {}, {});
  EXPECT_THAT(std::string(run.status().message()),
              HasSubstr("Must specify at least one target to fetch or execute"))
      << "TensorFlow itself does not accept the graph";
}

INSTANTIATE_TEST_SUITE_P(All, ValidGraph, testing::ValuesIn(ValidGraphs()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace requant
