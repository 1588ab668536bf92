#include "graph/graph_size.h"

#include <gtest/gtest.h>

#include "graph/testing.h"

namespace requant {
namespace {

TEST(GraphSizeSummary, ShowsBothSidesInOneUnitWithTheChange) {
  EXPECT_EQ(GraphSizeSummary({1204, 9530000}, {873, 4970000}),
            "1,204 -> 873 nodes (-27 %), 9.53 -> 4.97 MB (-48 %)");
  EXPECT_EQ(GraphSizeSummary({1234567, 999}, {1234567, 12}),
            "1,234,567 -> 1,234,567 nodes, 999 -> 12 bytes (-99 %)");
  EXPECT_EQ(GraphSizeSummary({0, 0}, {1, 2500}),
            "0 -> 1 nodes, 0.00 -> 2.50 kB");
  EXPECT_EQ(GraphSizeSummary({1000, 10}, {1001, 10}),
            "1,000 -> 1,001 nodes (0 %), 10 -> 10 bytes");
}

TEST(MeasureGraph, CountsNodesAndBytes) {
  const auto graph = GraphFromText("node { name: 'a' } node { name: 'b' }");
  EXPECT_EQ(MeasureGraph(graph).nodes, 2);
  EXPECT_EQ(MeasureGraph(graph).bytes,
            static_cast<int64_t>(graph.SerializeAsString().size()));
}

}  // namespace
}  // namespace requant
