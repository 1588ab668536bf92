#include "transforms/layers/graph_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "graph/const_node.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace requant::graph_builder_test {
namespace {

using tensorflow::DT_FLOAT;
using tensorflow::GraphDef;
using testing::UnorderedElementsAre;

// x and a constant w are added; w comes through an Identity.
GraphDef SumGraph() {
  GraphDef graph;
  *graph.add_node() = MakeNode("x", "Placeholder", {}, {{"dtype", DT_FLOAT}});
  *graph.add_node() = MakeScalarConst("w", 1);
  *graph.add_node() = MakeNode("read", "Identity", {"w"}, {{"T", DT_FLOAT}});
  *graph.add_node() =
      MakeNode("sum", "AddV2", {"x", "read"}, {{"T", DT_FLOAT}});
  return graph;
}

std::vector<std::string> Names(const GraphDef& graph) {
  std::vector<std::string> names;
  for (const auto& node : graph.node()) names.push_back(node.name());
  return names;
}

TEST(GraphBuilder, RemovesAnUnreadNodeAndTheConstantsThatOnlyFedIt) {
  GraphDef graph = SumGraph();
  GraphIndex index = GraphIndex::Create(&graph).value();
  GraphBuilder builder(&index, {});
  ASSERT_TRUE(builder.RemoveUnread("sum").ok());
  index.Commit();
  EXPECT_THAT(Names(graph), UnorderedElementsAre("x"));
}

TEST(GraphBuilder, RemovesNoOutputs) {
  GraphDef graph = SumGraph();
  GraphIndex index = GraphIndex::Create(&graph).value();
  GraphBuilder builder(&index, {"read:0"});
  ASSERT_TRUE(builder.RemoveUnread("sum").ok());
  index.Commit();
  EXPECT_THAT(Names(graph), UnorderedElementsAre("x", "w", "read"));
}

TEST(GraphBuilder, RemovesNothingThatIsRead) {
  GraphDef graph = SumGraph();
  GraphIndex index = GraphIndex::Create(&graph).value();
  GraphBuilder builder(&index, {});
  ASSERT_TRUE(builder.RemoveUnread("read").ok());
  ASSERT_TRUE(builder.RemoveUnread("not there").ok());
  index.Commit();
  EXPECT_EQ(graph.node_size(), 4);
}

TEST(GraphBuilder, ReplacingInputsRemovesWhatNoOneReadsAnyMore) {
  GraphDef graph = SumGraph();
  GraphIndex index = GraphIndex::Create(&graph).value();
  GraphBuilder builder(&index, {});
  ASSERT_TRUE(builder.ReplaceInputs(index.Find("sum"), {"x", "x"}).ok());
  index.Commit();
  EXPECT_THAT(Names(graph), UnorderedElementsAre("x", "sum"));
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
