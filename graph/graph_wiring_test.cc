#include "graph/graph_wiring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "graph/graph_index.h"
#include "graph/testing/testing.h"

namespace requant::graph_wiring_test {
namespace {

using tensorflow::GraphDef;
using testing::ElementsAre;

std::vector<std::string> OrderOf(const GraphDef& graph) {
  std::vector<std::string> names;
  for (const int node : GraphWiring(graph).ExecutionOrder()) {
    names.push_back(graph.node(node).name());
  }
  return names;
}

TEST(GraphWiring, GivesOneEdgePerInputWithItsPort) {
  const GraphDef graph = GraphFromText(R"pb(
    node { name: "a" op: "A" }
    node { name: "b" op: "B" input: "a:2" input: "a" input: "^a" }
  )pb");
  const GraphWiring wiring(graph);
  const auto producers = wiring.Producers(1);
  ASSERT_EQ(producers.size(), 3);
  EXPECT_EQ(producers[0].port, 2);
  EXPECT_EQ(producers[1].port, 0);
  EXPECT_EQ(producers[2].port, kControlPort);
  EXPECT_EQ(wiring.Consumers(0).size(), 3);
  EXPECT_TRUE(wiring.Consumers(1).empty());
}

TEST(GraphWiring, AMissingInputIsNoNode) {
  const GraphDef graph =
      GraphFromText(R"pb(node { name: "b" op: "B" input: "gone" })pb");
  const GraphWiring wiring(graph);
  EXPECT_EQ(wiring.Producers(0)[0].node, GraphWiring::kNoNode);
}

TEST(GraphWiring, TheLastOfARepeatedNameIsRead) {
  const GraphDef graph = GraphFromText(R"pb(
    node { name: "a" op: "A" }
    node { name: "a" op: "B" }
    node { name: "c" op: "C" input: "a" }
  )pb");
  const GraphWiring wiring(graph);
  EXPECT_EQ(wiring.Find("a"), 1);
  EXPECT_TRUE(wiring.Consumers(0).empty());
  EXPECT_EQ(wiring.Consumers(1).size(), 1);
}

TEST(ExecutionOrder, PutsProducersFirstAndTheLastSourceBeforeTheOthers) {
  EXPECT_THAT(OrderOf(GraphFromText(R"pb(
                node { name: "sum" op: "Add" input: "x" input: "y" }
                node { name: "x" op: "Placeholder" }
                node { name: "y" op: "Placeholder" }
              )pb")),
              ElementsAre("y", "x", "sum"));
}

TEST(ExecutionOrder, SortsAWhileLoop) {
  EXPECT_THAT(OrderOf(GraphFromText(R"pb(
                node { name: "exit" op: "Exit" input: "merge" }
                node { name: "merge" op: "Merge" input: "enter" input: "next" }
                node { name: "next" op: "NextIteration" input: "merge" }
                node { name: "enter" op: "Enter" }
              )pb")),
              ElementsAre("enter", "merge", "next", "exit"));
}

TEST(ExecutionOrder, PutsWhatCannotBeSortedLast) {
  EXPECT_THAT(OrderOf(GraphFromText(R"pb(
                node { name: "a" op: "A" input: "b" }
                node { name: "b" op: "B" input: "a" }
                node { name: "c" op: "C" input: "gone" }
                node { name: "d" op: "D" }
              )pb")),
              ElementsAre("d", "a", "b", "c"));
}

}  // namespace
}  // namespace requant::graph_wiring_test
