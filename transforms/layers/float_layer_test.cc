#include "transforms/layers/float_layer.h"

#include <cmath>
#include <limits>
#include <list>

#include "graph/testing/testing.h"

namespace requant::float_layer_test {
namespace {

// x [?, 2] and the weights w [2, 3], the bias b [3].
std::string Beginning() {
  return absl::StrCat(Placeholder("x", {-1, 2}),
                      FloatConst("w", {2, 3}, {1, 2, 3, 4, 5, 6}),
                      FloatConst("b", {3}, {7, 8, 9}));
}

std::string MatMul(const std::string& weights = "w",
                   const std::vector<AttributeText>& attributes = {kFloat}) {
  return Node("m", "MatMul", {"x", weights}, attributes);
}

FloatLayers Find(const std::string& text,
                 const FloatLayerOptions& options = {}) {
  // The layers point into it.
  static auto* graphs = new std::list<GraphDef>();
  graphs->push_back(GraphFromText(text));
  auto index = GraphIndex::Create(&graphs->back());
  EXPECT_OK(index);
  return FindFloatLayers(*index, options);
}

FloatLayer OnlyLayer(const std::string& text,
                     const FloatLayerOptions& options = {}) {
  FloatLayers found = Find(text, options);
  EXPECT_THAT(found.layers, SizeIs(1));
  return found.layers.empty() ? FloatLayer() : found.layers[0];
}

std::string WhySkipped(const std::string& text,
                       const FloatLayerOptions& options = {}) {
  const FloatLayers found = Find(text, options);
  EXPECT_THAT(found.layers, IsEmpty());
  EXPECT_THAT(found.skipped, SizeIs(1));
  return found.skipped.empty() ? "" : found.skipped[0].reason;
}

TEST(FindFloatLayers, FindsMatMulBiasAndRelu) {
  for (const char* activation : {"Relu", "Relu6"}) {
    const FloatLayer layer = OnlyLayer(absl::StrCat(
        Beginning(), MatMul(), Node("a", "BiasAdd", {"m", "b"}, {kFloat}),
        Node("r", activation, {"a"}, {kFloat})));
    EXPECT_EQ(layer.input, "x:0");
    EXPECT_EQ(layer.output, "r:0");
    EXPECT_EQ(layer.bias_add->name(), "a");
    EXPECT_EQ(layer.activation->op(), activation);
    EXPECT_EQ(layer.weights_node->name(), "w");
    EXPECT_THAT(ValuesOf(layer.weights), ElementsAre(1, 2, 3, 4, 5, 6));
    EXPECT_THAT(ValuesOf(layer.bias), ElementsAre(7, 8, 9));
  }
}

TEST(FindFloatLayers, ABiasIsAlsoAddedByAddInEitherOrder) {
  for (const char* op : {"Add", "AddV2"}) {
    for (const auto& inputs :
         std::vector<std::vector<std::string>>{{"m", "b"}, {"b", "m"}}) {
      const FloatLayer layer = OnlyLayer(
          absl::StrCat(Beginning(), MatMul(), Node("a", op, inputs, {kFloat})));
      EXPECT_EQ(layer.output, "a:0");
      EXPECT_THAT(ValuesOf(layer.bias), ElementsAre(7, 8, 9));
    }
  }
}

TEST(FindFloatLayers, ALayerWithoutABiasHasZeros) {
  const FloatLayer layer = OnlyLayer(
      absl::StrCat(Beginning(), MatMul(), Node("r", "Relu", {"m"}, {kFloat})));
  EXPECT_EQ(layer.bias_add, nullptr);
  EXPECT_EQ(layer.output, "r:0");
  EXPECT_THAT(ValuesOf(layer.bias), ElementsAre(0, 0, 0));
}

TEST(FindFloatLayers, LooksThroughIdentities) {
  const FloatLayer layer = OnlyLayer(
      absl::StrCat(Beginning(), Node("w1", "Identity", {"w"}, {kFloat}),
                   Node("w2", "Identity", {"w1"}, {kFloat}), MatMul("w2"),
                   Node("b1", "Identity", {"b"}, {kFloat}),
                   Node("a", "BiasAdd", {"m", "b1"}, {kFloat})));
  EXPECT_EQ(layer.weights_node->name(), "w");
  EXPECT_EQ(layer.bias_add->name(), "a");
}

TEST(FindFloatLayers, TransposesTheWeightsOfTransposeB) {
  const FloatLayer layer = OnlyLayer(absl::StrCat(
      Placeholder("x", {-1, 2}), FloatConst("w", {3, 2}, {1, 4, 2, 5, 3, 6}),
      MatMul("w", {kFloat, {"transpose_b", "b: true"}})));
  EXPECT_TRUE(layer.transposed);
  EXPECT_EQ(layer.weights.dim_size(0), 2);
  EXPECT_THAT(ValuesOf(layer.weights), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(FindFloatLayers, ALayerEndsWithWhatSomethingElseReads) {
  const std::string layer = absl::StrCat(
      Beginning(), MatMul(), Node("a", "BiasAdd", {"m", "b"}, {kFloat}),
      Node("r", "Relu", {"a"}, {kFloat}));
  EXPECT_EQ(OnlyLayer(layer + Node("other", "Neg", {"a"}, {kFloat})).output,
            "a:0");
  EXPECT_EQ(OnlyLayer(layer + Node("other", "Neg", {"m"}, {kFloat})).output,
            "m:0");
  EXPECT_EQ(
      OnlyLayer(layer + Node("other", "Neg", {"x", "^a"}, {kFloat})).output,
      "a:0");
}

TEST(FindFloatLayers, ALayerEndsWithAnOutputOfTheGraph) {
  FloatLayerOptions options;
  options.outputs = {"a:0", "r"};
  const FloatLayer layer =
      OnlyLayer(absl::StrCat(Beginning(), MatMul(),
                             Node("a", "BiasAdd", {"m", "b"}, {kFloat}),
                             Node("r", "Relu", {"a"}, {kFloat})),
                options);
  EXPECT_EQ(layer.output, "a:0");
}

TEST(FindFloatLayers, ALayerEndsBeforeABiasThatIsNoConstantVectorOfItsWidth) {
  const std::string begin = Beginning() + MatMul();
  for (const std::string& bias :
       {Placeholder("c", {3}), FloatConst("c", {1, 3}, {1, 2, 3}),
        FloatConst("c", {1}, {1}),
        FloatConst("c", {3}, {1, std::numeric_limits<float>::infinity(), 2})}) {
    EXPECT_EQ(OnlyLayer(begin + bias + Node("a", "AddV2", {"m", "c"}, {kFloat}))
                  .output,
              "m:0");
  }
}

TEST(FindFloatLayers, ALayerEndsBeforeWhatIsExcluded) {
  const std::string layer = absl::StrCat(
      Beginning(), MatMul(), Node("a", "BiasAdd", {"m", "b"}, {kFloat}),
      Node("r", "Relu", {"a"}, {kFloat}));
  FloatLayerOptions options;
  options.excluded_ops = {"Relu"};
  EXPECT_EQ(OnlyLayer(layer, options).output, "a:0");
  options.excluded_nodes = {"a"};
  EXPECT_EQ(OnlyLayer(layer, options).output, "m:0");
  options.excluded_nodes = {"m"};
  EXPECT_EQ(WhySkipped(layer, options), "it is excluded");
  options.excluded_nodes = {};
  options.excluded_ops = {"MatMul"};
  EXPECT_EQ(WhySkipped(layer, options), "it is excluded");
}

TEST(FindFloatLayers, SkipsWhatCannotBeQuantized) {
  EXPECT_EQ(WhySkipped(Beginning() + MatMul("x")),
            "it multiplies two activations");
  EXPECT_EQ(WhySkipped(Beginning() + Node("m", "MatMul", {"w", "x"}, {kFloat})),
            "its constant is the first factor");
  EXPECT_EQ(WhySkipped(Beginning() + Node("m", "MatMul", {"w", "w"}, {kFloat})),
            "it multiplies two constants");
  EXPECT_EQ(WhySkipped(Beginning() + MatMul("w", {{"T", "type: DT_HALF"}})),
            "it is not float32");
  EXPECT_EQ(WhySkipped(Beginning() +
                       MatMul("w", {kFloat, {"transpose_a", "b: true"}})),
            "it transposes its first input");
  EXPECT_EQ(WhySkipped(Beginning() + MatMul("b")),
            "its weights have the shape [3]");
  EXPECT_EQ(
      WhySkipped(Placeholder("x") + FloatConst("w", {0, 3}, {}) + MatMul("w")),
      "its weights have the shape [0,3]");
  EXPECT_EQ(WhySkipped(Placeholder("x") + FloatConst("w", {1, 2}, {0, 0}) +
                       MatMul("w")),
            "its weights are all zero");
  EXPECT_EQ(
      WhySkipped(Placeholder("x") +
                 FloatConst("w", {1, 2}, {std::nanf(""), 0}) + MatMul("w")),
      "its weights hold a nan or an infinity");
}

TEST(FindFloatLayers, KeepsTheOrderOfTheGraph) {
  const FloatLayers found =
      Find(absl::StrCat(Beginning(), Node("z", "MatMul", {"x", "w"}, {kFloat}),
                        Node("s", "MatMul", {"x", "x"}, {kFloat}),
                        Node("a", "MatMul", {"x", "w"}, {kFloat})));
  ASSERT_THAT(found.layers, SizeIs(2));
  EXPECT_EQ(found.layers[0].output, "z:0");
  EXPECT_EQ(found.layers[1].output, "a:0");
  ASSERT_THAT(found.skipped, SizeIs(1));
  EXPECT_EQ(found.skipped[0].name, "s");
}

}  // namespace
}  // namespace requant::float_layer_test
