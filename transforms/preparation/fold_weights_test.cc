#include "transforms/preparation/fold_weights.h"

#include "graph/tensorflow_library.h"
#include "transforms/testing/testing.h"

namespace requant::fold_weights_test {
namespace {

// Returns the graph with its factors folded, and the products' inputs that were
// found as "product:input tensor".
GraphDef Folded(GraphDef graph, std::vector<std::string>* found,
                const FloatLayerOptions& options = {}) {
  EXPECT_OK(LoadTensorFlow());
  std::vector<ComputedFactor> factors;
  {
    const GraphIndex index = GraphIndex::Create(&graph).value();
    factors = FindComputedFactors(index, options);
  }
  for (const ComputedFactor& factor : factors) {
    found->push_back(
        absl::StrCat(factor.product, ":", factor.input, " ", factor.tensor));
  }
  EXPECT_OK(FoldFactors(**TransformRegistry::Get(), factors, &graph));
  return graph;
}

constexpr char kTransposed[] = R"(
  x = Placeholder dtype=float
  w = float<2,3>{1,2,3,4,5,6}
  order = int32<2>{1,0}
  turned = Transpose(w, order) T=float Tperm=int32
  same = Identity(turned) T=float
  y = MatMul(x, same) T=float
  z = MatMul(x, turned) T=float
  u = BatchMatMulV2(z, x) T=float
)";

TEST(FoldFactors, MakesConstantsOfWeightsThatAreComputedFromConstants) {
  std::vector<std::string> found;
  const GraphDef graph = GraphFromText(kTransposed);
  const GraphDef folded = Folded(graph, &found);
  EXPECT_THAT(found, ElementsAre("y:1 turned:0", "z:1 turned:0"));
  EXPECT_EQ(NodeNamed(folded, "y").input(1), "turned/folded");
  EXPECT_EQ(NodeNamed(folded, "z").input(1), "turned/folded");
  const Tensor weights = ConstNamed(folded, "turned/folded");
  EXPECT_EQ(weights.shape(), tensorflow::TensorShape({3, 2}));
  EXPECT_THAT(ValuesOf(weights), ElementsAre(1, 4, 2, 5, 3, 6));
  // All of the nodes are still there, for those who name them.
  EXPECT_EQ(folded.node_size(), graph.node_size() + 1);
  EXPECT_TRUE(HasNode(folded, "same"));
}

TEST(FoldFactors, SkipsWhatTensorFlowDoesNotFold) {
  std::vector<std::string> found;
  const GraphDef graph = GraphFromText(R"(
    x = Placeholder dtype=float
    w = float<2,4>{1,2,3,4,5,6,7,8}
    axis = int32{1}
    parts = Split(axis, w) T=float num_split=2
    y = MatMul(x, parts:1) T=float
  )");
  const GraphDef folded = Folded(graph, &found);
  EXPECT_THAT(found, ElementsAre("y:1 parts:1"));
  EXPECT_EQ(LinesOf(folded), LinesOf(graph));
}

TEST(FoldFactors, FindsNothingThatDependsOnMoreThanConstants) {
  for (const std::string weights :
       {"p = Placeholder dtype=float; w = Neg(p) T=float",
        "c = float<1,1>{1}; w = PlaceholderWithDefault(c) dtype=float",
        "s = int32<2>{1,1}; w = RandomUniform(s) T=int32 dtype=float",
        "c = float<1,1>{1}; w = Enter(c) T=float frame_name='loop'",
        "c = float<1,1>{1}; w = Neg(c, ^x) T=float",
        "c = float<1,1>{1}; w = NoSuchOp(c)", "w = Neg(absent) T=float",
        "w = float<1,1>{1}"}) {
    std::vector<std::string> found;
    GraphDef graph = GraphFromText(absl::StrCat(
        "x = Placeholder dtype=float\ny = MatMul(x, w) T=float\n", weights));
    Folded(graph, &found);
    EXPECT_THAT(found, IsEmpty()) << weights;
  }
}

TEST(FoldFactors, LeavesOtherTypesAndWhatIsExcluded) {
  for (const FloatLayerOptions& options : std::vector<FloatLayerOptions>{
           {{}, {"MatMul"}, {}}, {{}, {}, {"y", "z"}}}) {
    std::vector<std::string> found;
    Folded(GraphFromText(kTransposed), &found, options);
    EXPECT_THAT(found, IsEmpty());
  }
  std::vector<std::string> found;
  Folded(GraphFromText(R"(
           x = Placeholder dtype=double
           w = double<1,1>{1}
           n = Neg(w) T=double
           y = MatMul(x, n) T=double
           z = BatchMatMulV3(x, n) Ta=double Tb=double Tout=double
         )"),
         &found);
  EXPECT_THAT(found, IsEmpty());
}

}  // namespace
}  // namespace requant::fold_weights_test
