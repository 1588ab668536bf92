#include "transforms/preparation/prepare_graph.h"

#include "graph/tensorflow_library.h"
#include "transforms/testing/testing.h"

namespace requant::prepare_graph_test {
namespace {

constexpr char kSequence[] = R"(
  x = Placeholder dtype=float
  w = float<2,3>{1,2,3,4,5,6}
  order = int32<2>{1,0}
  turned = Transpose(w, order) T=float Tperm=int32
  plain = MatMul(x, w) T=float transpose_b=true
  folded = MatMul(x, turned) T=float
  exposed = BatchMatMulV2(x, w) T=float adj_y=true
  y = AddN(plain, folded, exposed) T=float N=3
)";

absl::StatusOr<PreparedGraph> Prepare(const FloatLayerOptions& options,
                                      bool may_change, GraphDef* graph) {
  EXPECT_OK(LoadTensorFlow());
  return PrepareGraph(options, may_change, TransformRegistry::Get, graph);
}

TEST(PrepareGraph, FoldsExposesAndCounts) {
  GraphDef graph = GraphFromText(kSequence);
  const auto prepared = Prepare({{"y"}, {}, {}}, true, &graph);
  ASSERT_OK(prepared);
  EXPECT_TRUE(prepared->changed);
  EXPECT_THAT(prepared->folded, ElementsAre("folded"));
  EXPECT_EQ(CoverageText(prepared->products),
            "3 of 3 matrix products run in int8; convolutions: none");
  EXPECT_EQ(prepared->nothing, "");
}

TEST(PrepareGraph, ChangesNothingThatNeedsNoChangeOrMayNotChange) {
  for (const auto& [options, may_change] :
       std::vector<std::pair<FloatLayerOptions, bool>>{
           {{{"y"}, {}, {"folded", "exposed"}}, true},
           {{{"y"}, {}, {}}, false}}) {
    GraphDef graph = GraphFromText(kSequence);
    const auto prepared = Prepare(options, may_change, &graph);
    ASSERT_OK(prepared);
    EXPECT_FALSE(prepared->changed);
    EXPECT_EQ(LinesOf(graph), LinesOf(GraphFromText(kSequence)));
  }
}

TEST(PrepareGraph, SaysWhyThereIsNothingToDo) {
  GraphDef graph = GraphFromText("y = Placeholder dtype=float");
  EXPECT_EQ(Prepare({{"y"}, {}, {}}, true, &graph)->nothing,
            "no MatMul has constant float weights");
  GraphDef variable = GraphFromText(R"(
    x = Placeholder dtype=float
    v = VariableV2 dtype=float shape=<2,2>
    y = MatMul(x, v) T=float
  )");
  EXPECT_THAT(Prepare({{"y"}, {}, {}}, true, &variable).status(),
              FailsWith(HasSubstr("requant freeze")));
  EXPECT_THAT(Prepare({{"y"}, {}, {"why"}}, true, &graph).status(),
              FailsWith(HasSubstr("the graph has no node \"why\"")));
}

TEST(LayersWithoutRanges, AreThoseThatOnlyThePreparationMade) {
  GraphDef graph = GraphFromText(kSequence);
  const FloatLayerOptions options = {{"y"}, {}, {}};
  const auto prepared = Prepare(options, true, &graph);
  ASSERT_OK(prepared);
  RangeTable ranges;
  ranges.FindOrAdd("x").AddRange(0, 1, {});
  EXPECT_THAT(LayersWithoutRanges(&*prepared, options, ranges, &graph).value(),
              UnorderedElementsAre("folded", "exposed/matmul"));
  ranges.FindOrAdd("folded").AddRange(0, 1, {});
  EXPECT_THAT(LayersWithoutRanges(&*prepared, options, ranges, &graph).value(),
              ElementsAre("exposed/matmul"));
}

TEST(ExposedInVain, NamesTheProductsAsTheyWere) {
  GraphDef graph = GraphFromText(kSequence);
  ASSERT_OK(Prepare({{"y"}, {}, {}}, true, &graph));
  EXPECT_THAT(ExposedInVain(graph), ElementsAre("exposed"));
}

}  // namespace
}  // namespace requant::prepare_graph_test
