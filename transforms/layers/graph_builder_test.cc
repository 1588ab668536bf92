#include "transforms/layers/graph_builder.h"

#include <functional>

#include "graph/graph_index.h"
#include "graph/testing/testing.h"

namespace requant::graph_builder_test {
namespace {

// Returns the sum of x and a constant w that is read through an Identity.
GraphDef SumGraph() {
  return GraphFromText(R"(
    x = Placeholder dtype=float
    w = float{1}
    read = Identity(w) T=float
    sum = AddV2(x, read) T=float
  )");
}

// Returns the names of the nodes that remain after `edit`.
std::vector<std::string> Left(const std::vector<std::string>& outputs,
                              const std::function<void(GraphBuilder*)>& edit) {
  GraphDef graph = SumGraph();
  GraphIndex index = GraphIndex::Create(&graph).value();
  GraphBuilder builder(&index, outputs);
  edit(&builder);
  index.Commit();
  return NodesOf(graph);
}

TEST(GraphBuilder, RemovesAnUnreadNodeAndTheConstantsThatOnlyFedIt) {
  const auto remove = [](GraphBuilder* builder) {
    builder->RemoveUnread("sum");
  };
  EXPECT_THAT(Left({}, remove), UnorderedElementsAre("x"));
  // Outputs are never removed.
  EXPECT_THAT(Left({"read:0"}, remove), UnorderedElementsAre("x", "w", "read"));
}

TEST(GraphBuilder, RemovesNothingThatIsRead) {
  EXPECT_THAT(Left({},
                   [](GraphBuilder* builder) {
                     builder->RemoveUnread("read");
                     builder->RemoveUnread("not there");
                   }),
              SizeIs(4));
}

TEST(GraphBuilder, ReplacingInputsRemovesWhatNoOneReadsAnyMore) {
  EXPECT_THAT(
      Left({},
           [](GraphBuilder* builder) {
             builder->ReplaceInputs(builder->index().Find("sum"), {"x", "x"});
           }),
      UnorderedElementsAre("x", "sum"));
}

TEST(GraphBuilder, GivesANodeAFreeName) {
  Left({}, [](GraphBuilder* builder) {
    EXPECT_EQ(builder->AddScalar("w", 2), "w_1");
    EXPECT_EQ(builder->AddScalar("v", 2), "v");
  });
}

}  // namespace
}  // namespace requant::graph_builder_test
