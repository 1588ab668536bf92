#include "graph/node_order.h"

#include <cstdint>

#include "graph/testing/testing.h"

namespace requant::node_order_test {
namespace {

NodeInputs Inputs(const std::vector<std::vector<int32_t>>& producers) {
  NodeInputs inputs;
  for (const auto& node : producers) {
    inputs.producer.insert(inputs.producer.end(), node.begin(), node.end());
    inputs.first.push_back(inputs.producer.size());
  }
  return inputs;
}

TEST(SortNodes, PutsProducersFirst) {
  const NodeOrder order = SortNodes(Inputs({{2, 1}, {2}, {-1}, {0, 0}}));
  EXPECT_THAT(order.sorted, ElementsAre(2, 1, 0, 3));
  EXPECT_THAT(order.cycles, IsEmpty());
}

TEST(SortNodes, ShowsACycleInTheDirectionOfTheData) {
  // 0 -> 1 -> 2 -> 0, and 3 only reads from it.
  const NodeOrder order = SortNodes(Inputs({{2}, {0}, {1}, {2}}));
  EXPECT_THAT(order.sorted, IsEmpty());
  EXPECT_THAT(order.cycles, ElementsAre(ElementsAre(1, 2, 0)));
}

TEST(SortNodes, ANodeThatReadsItselfIsACycle) {
  EXPECT_THAT(SortNodes(Inputs({{}, {0, 1}})).cycles,
              ElementsAre(ElementsAre(1)));
}

TEST(SortNodes, FindsSeparateCycles) {
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
  ASSERT_EQ(SortNodes(Inputs(producers)).cycles.size(), 1);
  EXPECT_EQ(SortNodes(Inputs(producers)).cycles[0].size(), kCount);
}

}  // namespace
}  // namespace requant::node_order_test
