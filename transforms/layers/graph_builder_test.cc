#include "transforms/layers/graph_builder.h"

#include "graph/graph_index.h"
#include "graph/testing/testing.h"

namespace requant::graph_builder_test {
namespace {

// x and a constant w are added; w comes through an Identity.
GraphDef SumGraph() {
  return GraphFromText(R"(
    x = Placeholder dtype=float
    w = float{1}
    read = Identity(w) T=float
    sum = AddV2(x, read) T=float
  )");
}

TEST(GraphBuilder, RemovesAnUnreadNodeAndTheConstantsThatOnlyFedIt) {
  GraphDef graph = SumGraph();
  GraphIndex index = GraphIndex::Create(&graph).value();
  GraphBuilder builder(&index, {});
  ASSERT_OK(builder.RemoveUnread("sum"));
  index.Commit();
  EXPECT_THAT(NodesOf(graph), UnorderedElementsAre("x"));
}

TEST(GraphBuilder, RemovesNoOutputs) {
  GraphDef graph = SumGraph();
  GraphIndex index = GraphIndex::Create(&graph).value();
  GraphBuilder builder(&index, {"read:0"});
  ASSERT_OK(builder.RemoveUnread("sum"));
  index.Commit();
  EXPECT_THAT(NodesOf(graph), UnorderedElementsAre("x", "w", "read"));
}

TEST(GraphBuilder, RemovesNothingThatIsRead) {
  GraphDef graph = SumGraph();
  GraphIndex index = GraphIndex::Create(&graph).value();
  GraphBuilder builder(&index, {});
  ASSERT_OK(builder.RemoveUnread("read"));
  ASSERT_OK(builder.RemoveUnread("not there"));
  index.Commit();
  EXPECT_EQ(graph.node_size(), 4);
}

TEST(GraphBuilder, ReplacingInputsRemovesWhatNoOneReadsAnyMore) {
  GraphDef graph = SumGraph();
  GraphIndex index = GraphIndex::Create(&graph).value();
  GraphBuilder builder(&index, {});
  ASSERT_OK(builder.ReplaceInputs(index.Find("sum"), {"x", "x"}));
  index.Commit();
  EXPECT_THAT(NodesOf(graph), UnorderedElementsAre("x", "sum"));
}

TEST(GraphBuilder, GivesANodeAFreeName) {
  GraphDef graph = SumGraph();
  GraphIndex index = GraphIndex::Create(&graph).value();
  GraphBuilder builder(&index, {});
  EXPECT_EQ(builder.AddScalar("w", 2).value(), "w_1");
  EXPECT_EQ(builder.AddScalar("v", 2).value(), "v");
}

}  // namespace
}  // namespace requant::graph_builder_test
