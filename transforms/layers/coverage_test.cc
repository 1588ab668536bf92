#include "transforms/layers/coverage.h"

#include "graph/testing/testing.h"

namespace requant::coverage_test {
namespace {

using tensorflow::TensorShape;
using testing::Optional;

std::vector<CountedProduct> Products(
    const std::string& text, const std::vector<std::string>& outputs = {},
    const std::vector<std::string>& excluded_nodes = {}) {
  GraphDef graph = GraphFromText(text);
  const GraphIndex index = GraphIndex::Create(&graph).value();
  const FloatLayerOptions options = {outputs, {}, excluded_nodes};
  return CountProducts(index, FindFloatLayers(index, options), options);
}

std::vector<std::string> Lines(const std::vector<CountedProduct>& products) {
  std::vector<std::string> lines;
  for (const CountedProduct& product : products) {
    lines.push_back(absl::StrCat(product.name, ": ", product.in_float));
  }
  return lines;
}

// An attention of four records of five tokens, with 6 channels.
constexpr char kAttention[] = R"(
  x = Placeholder dtype=float
  w = float<6,6>{1}
  q = MatMul(x, w) T=float
  k = MatMul(x, w) T=float
  q3 = Reshape(q, s) T=float
  k3 = Reshape(k, s) T=float
  scores = BatchMatMulV2(q3, k3) T=float adj_y=true
  mix = Einsum(scores, k3) T=float N=2 equation='abc,acd->abd'
  out = MatMul(x, w) T=float
  s = Placeholder dtype=int32
)";

SeenShapes AttentionInputs() { return {4, {{"x:0", {20, 6}}}}; }
SeenShapes AttentionOperands() {
  return {1,
          {{"q3:0", {1, 5, 6}}, {"k3:0", {1, 5, 6}}, {"scores:0", {1, 5, 5}}}};
}

TEST(CountProducts, SaysOfEachWhyItIsInFloat) {
  EXPECT_THAT(
      Lines(Products(kAttention, {}, {"out"})),
      ElementsAre("q: ", "k: ", "scores: it multiplies two activations",
                  "mix: it multiplies two activations", "out: it is excluded"));
}

TEST(CountProducts, CountsOnlyWhatTheOutputsNeed) {
  EXPECT_THAT(Lines(Products(kAttention, {"q3"})), ElementsAre("q: "));
  EXPECT_THAT(Products(kAttention, {"mix:0"}), SizeIs(4));
}

TEST(CountProducts, FindsProductsInLoopsConditionsAndFunctions) {
  EXPECT_THAT(
      Lines(Products(R"(
    function step(a) -> (y=m:product:0) {
      m = MatMul(a, a) T=float
    }
    function inner(a) -> (y=c:output:0) {
      c = PartitionedCall(a) Tin=[float] Tout=[float] f=@step
    }
    function more(a) -> (y=e:z:0) {
      e = Greater(a, a) T=float
    }
    function either(a) -> (y=k:output:0) {
      k = Conv2D(a, a) T=float
    }
    function twice(a) -> (y=b:output:0) {
      b = BatchMatMulV2(a, a) T=float
    }
    x = Placeholder dtype=float
    loop = While(x) T=[float] cond=@more body=@inner
    chosen = StatelessIf(x, x) then_branch=@either else_branch=@either
    called = twice(x)
    again = twice(x)
  )")),
      ElementsAre("step/m: in loops (While)", "either/k: under conditions (If)",
                  "twice/b: in functions"));
}

TEST(CountProducts, FindsProductsInLoopsOfTheFirstKind) {
  EXPECT_THAT(Lines(Products(R"(
    x = Placeholder dtype=float
    enter = Enter(x) T=float frame_name='f'
    inside = MatMul(enter, enter) T=float
    exit = Exit(inside) T=float
    outside = MatMul(exit, exit) T=float
    switch = Switch(x, p) T=float
    if = MatMul(switch, switch) T=float
    p = Placeholder dtype=bool
  )")),
              ElementsAre("inside: in loops (While)",
                          "outside: it multiplies two activations",
                          "if: under conditions (If)"));
}

TEST(SetWork, CountsTheMultiplyAddsOfARecord) {
  std::vector<CountedProduct> products = Products(kAttention);
  std::vector<std::string> wanted;
  for (const ProductOperand& operand : UnknownOperands(products)) {
    wanted.push_back(operand.tensor);
  }
  // The inputs of layers are observed anyway.
  EXPECT_THAT(wanted, ElementsAre("q3:0", "k3:0", "scores:0"));
  SetWork(AttentionInputs(), AttentionOperands(), &products);
  // Five rows of a record times a matrix; five rows times five, of six; and
  // five rows of five times six columns.
  EXPECT_THAT(products[0].work, Optional(5 * 6 * 6));
  EXPECT_THAT(products[2].work, Optional(5 * 5 * 6));
  EXPECT_THAT(products[3].work, Optional(5 * 5 * 6));
}

struct WorkCase {
  std::string node;
  TensorShape a, b;
  double work;
};

TEST(SetWork, KnowsEveryKindOfProduct) {
  for (const WorkCase& test : std::vector<WorkCase>{
           {"MatMul(a, b) transpose_a=true", {3, 2}, {3, 4}, 2 * 3 * 4},
           {"MatMul(a, b) transpose_b=true", {2, 3}, {4, 3}, 2 * 3 * 4},
           {"BatchMatMulV2(a, b)", {7, 1, 2, 3}, {5, 3, 4}, 7 * 5 * 2 * 3 * 4},
           {"BatchMatMulV2(a, b) adj_x=true", {5, 3, 2}, {3, 4}, 5 * 2 * 3 * 4},
           {"Einsum(a, b) N=2 equation='ab, bc -> ac'", {2, 3}, {3, 4}, 24},
           {"Einsum(a, b) N=2 equation='...ab,...bc->...ac'",
            {7, 5, 2, 3},
            {7, 5, 3, 4},
            7 * 5 * 2 * 3 * 4},
           {"_FusedMatMul(a, b, b)", {2, 3}, {3, 4}, 24},
           // Eight pixels of six channels, each from 3 x 3 of five channels.
           {"Conv2D(b, a)", {3, 3, 5, 6}, {1, 4, 2, 6}, 8 * 6 * 9 * 5},
           {"DepthwiseConv2dNative(b, a)", {3, 3, 5, 2}, {1, 4, 2, 10}, 720},
           {"Conv2DBackpropInput(s, a, b)",
            {3, 3, 5, 6},
            {1, 4, 2, 6},
            8 * 6 * 9 * 5},
           {"Conv3D(b, a)", {1, 2, 3, 5, 6}, {1, 2, 2, 2, 6}, 8 * 6 * 6 * 5},
       }) {
    std::vector<CountedProduct> products = Products(absl::StrCat(
        "a = Placeholder dtype=float; b = Placeholder dtype=float\n"
        "s = Placeholder dtype=int32\ny = ",
        test.node));
    ASSERT_THAT(products, SizeIs(1)) << test.node;
    // A convolution's work follows from its result.
    SetWork({}, {1, {{"a:0", test.a}, {"b:0", test.b}, {"y:0", test.b}}},
            &products);
    EXPECT_THAT(products[0].work, Optional(test.work)) << test.node;
  }
}

TEST(SetWork, DoesNotKnowWhatHasOddShapesOrNone) {
  for (const WorkCase& test : std::vector<WorkCase>{
           {"MatMul(a, b)", {3}, {3, 4}, 0},
           {"Einsum(a, b) N=2 equation='abc,bc->ac'", {2, 3}, {3, 4}, 0},
           {"Einsum(a, b) N=2 equation='...abc,bc->ac'", {2}, {3, 4}, 0},
           {"Einsum(a, b, a) N=3 equation='ab,bc,cd->ad'", {2, 3}, {3, 4}, 0},
           {"Conv2D(b, a)", {3}, {1, 4, 2, 6}, 0},
           {"Conv2DBackpropFilter(b, s, a)", {3, 3, 5, 6}, {1, 4, 2, 6}, 0},
           {"MatMul(a)", {3}, {3, 4}, 0}}) {
    std::vector<CountedProduct> products = Products(absl::StrCat(
        "a = Placeholder dtype=float; b = Placeholder dtype=float\n"
        "s = Placeholder dtype=int32\ny = ",
        test.node));
    ASSERT_THAT(products, SizeIs(1)) << test.node;
    SetWork({}, {1, {{"a:0", test.a}, {"b:0", test.b}, {"y:0", test.b}}},
            &products);
    EXPECT_EQ(products[0].work, std::nullopt) << test.node;
  }
}

TEST(CoverageText, IsByWork) {
  std::vector<CountedProduct> products = Products(kAttention, {}, {"out"});
  SetWork(AttentionInputs(), AttentionOperands(), &products);
  // "out" is no layer, so that its input is an operand of its own.
  EXPECT_EQ(CoverageText(products),
            "2 of 5 matrix products run in int8, 55 % of the multiply-adds "
            "that can be counted; float: 2 of two activations, as in attention "
            "(45 %), 1 "
            "excluded (unknown work); convolutions: none");
  SeenShapes operands = AttentionOperands();
  operands.shapes["x:0"] = {5, 6};
  SetWork(AttentionInputs(), operands, &products);
  // 360 of 840.
  EXPECT_EQ(CoverageText(products),
            "43 % of the multiply-adds run in int8: 2 of 5 matrix products; "
            "float: 2 of two activations, as in attention (36 %), 1 excluded "
            "(21 %); convolutions: none");
}

TEST(CoverageText, MentionsConvolutionsAndWhatIsUnknown) {
  std::vector<CountedProduct> products(4);
  products[0].work = 3;
  products[1].in_float = "in loops (While)";
  products[2].kind = CountedProduct::kConvolution;
  products[2].in_float = "it is a convolution";
  products[2].work = 997;
  products[3].in_float = "its weights are all zero";
  products[3].work = 0;
  EXPECT_EQ(CoverageText(products),
            "1 of 3 matrix products run in int8, less than 1 % of the "
            "multiply-adds that can be counted; float: 1 in loops (While) "
            "(unknown work), 1 "
            "because its weights are all zero (0 %); convolutions: 1, all in "
            "float (99 %)");
}

TEST(CoverageText, IsByNumberIfNoWorkIsKnown) {
  EXPECT_EQ(CoverageText(Products(kAttention)),
            "3 of 5 matrix products run in int8; float: 2 of two activations, "
            "as in attention; convolutions: none");
  EXPECT_EQ(CoverageText({}), "no matrix products; convolutions: none");
}

TEST(MarkLeftInFloat, FindsLayersThatAreAsTheyWere) {
  std::vector<CountedProduct> products = Products(kAttention);
  MarkLeftInFloat(GraphFromText(R"(
    q = QuantizedMatMulWithBiasAndDequantize
    k = MatMul(x, x) T=float
    x = Placeholder dtype=float
  )"),
                  &products);
  EXPECT_THAT(Lines(products),
              ElementsAre("q: ", "k: it is left as it was",
                          "scores: it multiplies two activations",
                          "mix: it multiplies two activations", "out: "));
}

}  // namespace
}  // namespace requant::coverage_test
