#include "graph/graph_wiring.h"

#include "graph/graph_index.h"
#include "graph/testing/testing.h"

namespace requant::graph_wiring_test {
namespace {

NodeEdges Inputs(const std::vector<std::vector<int32_t>>& producers) {
  NodeEdges inputs;
  for (const auto& node : producers) {
    for (const int32_t producer : node) inputs.edges.push_back({producer, 0});
    inputs.EndNode();
  }
  return inputs;
}

TEST(SortNodes, PutsProducersFirst) {
  const NodeOrder order = SortNodes(Inputs({{2, 1}, {2}, {-1}, {0, 0}}));
  EXPECT_THAT(order.sorted, ElementsAre(2, 1, 0, 3));
  EXPECT_THAT(order.cycles, IsEmpty());
}

TEST(SortNodes, ShowsACycleInTheDirectionOfTheData) {
  // The edges are 0 -> 1 -> 2 -> 0, and 3 only reads from the cycle.
  const NodeOrder order = SortNodes(Inputs({{2}, {0}, {1}, {2}}));
  EXPECT_THAT(order.sorted, IsEmpty());
  EXPECT_THAT(order.cycles, ElementsAre(ElementsAre(1, 2, 0)));
}

TEST(SortNodes, FindsSeparateCyclesAndNodesThatReadThemselves) {
  EXPECT_THAT(SortNodes(Inputs({{}, {0, 1}})).cycles,
              ElementsAre(ElementsAre(1)));
  EXPECT_THAT(
      SortNodes(Inputs({{1}, {0}, {3}, {2}, {0, 2}})).cycles,
      ElementsAre(UnorderedElementsAre(0, 1), UnorderedElementsAre(2, 3)));
}

TEST(SortNodes, LongChainsAndLongCyclesTakeNoStack) {
  constexpr int32_t kCount = 1000000;
  std::vector<std::vector<int32_t>> producers(kCount);
  for (int32_t i = 1; i < kCount; ++i) producers[i] = {i - 1};
  EXPECT_EQ(SortNodes(Inputs(producers)).sorted.size(), kCount);
  producers[0] = {kCount - 1};
  EXPECT_THAT(SortNodes(Inputs(producers)).cycles, ElementsAre(SizeIs(kCount)));
}

TEST(GraphWiring, GivesOneEdgePerInputWithItsPort) {
  const GraphDef graph = GraphFromText("a = A; b = B(a:2, a, ^a, gone)");
  const GraphWiring wiring(graph);
  std::vector<int> ports;
  for (const Edge& edge : wiring.Producers(1)) ports.push_back(edge.port);
  EXPECT_THAT(ports, ElementsAre(2, 0, kControlPort, 0));
  EXPECT_EQ(wiring.Producers(1)[3].node, kNoNode);
  EXPECT_EQ(wiring.Consumers(0).size(), 3);
  EXPECT_TRUE(wiring.Consumers(1).empty());
}

TEST(GraphWiring, TheLastOfARepeatedNameIsRead) {
  const GraphDef graph = GraphFromText("a = A; a = B; c = C(a)");
  const GraphWiring wiring(graph);
  EXPECT_EQ(wiring.Find("a"), 1);
  EXPECT_TRUE(wiring.Consumers(0).empty());
  EXPECT_EQ(wiring.Consumers(1).size(), 1);
}

}  // namespace
}  // namespace requant::graph_wiring_test
