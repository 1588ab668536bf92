#include "graph/graph_wiring.h"

#include "graph/graph_index.h"
#include "graph/testing/testing.h"

namespace requant::graph_wiring_test {
namespace {

std::vector<std::string> OrderOf(const GraphDef& graph) {
  std::vector<std::string> names;
  for (const int node : GraphWiring(graph).ExecutionOrder()) {
    names.push_back(graph.node(node).name());
  }
  return names;
}

TEST(GraphWiring, GivesOneEdgePerInputWithItsPort) {
  const GraphDef graph = GraphFromText("a = A; b = B(a:2, a, ^a)");
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
  const GraphDef graph = GraphFromText("b = B(gone)");
  const GraphWiring wiring(graph);
  EXPECT_EQ(wiring.Producers(0)[0].node, GraphWiring::kNoNode);
}

TEST(GraphWiring, TheLastOfARepeatedNameIsRead) {
  const GraphDef graph = GraphFromText("a = A; a = B; c = C(a)");
  const GraphWiring wiring(graph);
  EXPECT_EQ(wiring.Find("a"), 1);
  EXPECT_TRUE(wiring.Consumers(0).empty());
  EXPECT_EQ(wiring.Consumers(1).size(), 1);
}

TEST(ExecutionOrder, PutsProducersFirstAndTheLastSourceBeforeTheOthers) {
  EXPECT_THAT(OrderOf(GraphFromText(
                  "sum = Add(x, y); x = Placeholder; y = Placeholder")),
              ElementsAre("y", "x", "sum"));
}

TEST(ExecutionOrder, SortsAWhileLoop) {
  EXPECT_THAT(OrderOf(GraphFromText(R"(
    exit = Exit(merge)
    merge = Merge(enter, next)
    next = NextIteration(merge)
    enter = Enter
  )")),
              ElementsAre("enter", "merge", "next", "exit"));
}

TEST(ExecutionOrder, PutsWhatCannotBeSortedLast) {
  EXPECT_THAT(OrderOf(GraphFromText("a = A(b); b = B(a); c = C(gone); d = D")),
              ElementsAre("d", "a", "b", "c"));
}

}  // namespace
}  // namespace requant::graph_wiring_test
