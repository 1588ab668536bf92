#include "transforms/layers/layer_pairs.h"

#include "graph/graph_index.h"
#include "graph/testing/testing.h"

namespace requant::layer_pairs_test {
namespace {

// relu = Relu(MatMul(x, w) + b), named with a prefix.
std::string FloatLayerText(const std::string& prefix = "") {
  return absl::StrCat(
      Placeholder("x", {-1, 2}), FloatConst("w", {2, 1}, {1, 2}),
      FloatConst("b", {1}, {3}),
      Node(prefix + "m", "MatMul", {"x", "w"}, {kFloat}),
      Node(prefix + "add", "BiasAdd", {prefix + "m", "b"}, {kFloat}),
      Node(prefix + "relu", "Relu", {prefix + "add"}, {kFloat}));
}

LayerPairs Find(const std::string& float_text, const std::string& other_text) {
  GraphDef graph = GraphFromText(float_text);
  GraphDef other = GraphFromText(other_text);
  const auto index = GraphIndex::Create(&graph);
  const auto other_index = GraphIndex::Create(&other);
  EXPECT_TRUE(index.ok() && other_index.ok());
  return FindLayerPairs(*index, *other_index, {});
}

LayerPair Only(const LayerPairs& found) {
  EXPECT_THAT(found.pairs, SizeIs(1));
  EXPECT_THAT(found.unmatched, IsEmpty());
  return found.pairs.empty() ? LayerPair() : found.pairs[0];
}

TEST(FindLayerPairs, FindsTheCodesOfARequantize) {
  const LayerPair pair =
      Only(Find(FloatLayerText(), Node("m_eightbit_requantize", "Requantize",
                                       {"a", "b", "c", "d", "e"})));
  EXPECT_EQ(pair.name, "m");
  EXPECT_EQ(pair.float_tensor, "relu:0");
  EXPECT_EQ(pair.tensor, "m_eightbit_requantize:0");
  EXPECT_EQ(pair.min_tensor, "m_eightbit_requantize:1");
  EXPECT_EQ(pair.max_tensor, "m_eightbit_requantize:2");
  EXPECT_EQ(pair.coding, LayerCoding::kMinFirst);
}

// It has no zero point: kernels.md.
TEST(FindLayerPairs, TakesCodesOfAFusedLayerAsScaled) {
  EXPECT_EQ(
      Only(Find(FloatLayerText(),
                Node("m_eightbit_requantize",
                     "QuantizedMatMulWithBiasAndReluAndRequantize", {"a"})))
          .coding,
      LayerCoding::kScaled);
}

TEST(FindLayerPairs, ReadsTheModeOfTheNewerFusedOp) {
  const auto coding = [](const std::string& mode) {
    return Only(Find(FloatLayerText(),
                     Node("m_eightbit_requantize", "_QuantizedMatMul", {"a"},
                          {{"output_quant_mode", mode}})))
        .coding;
  };
  EXPECT_EQ(coding("s: 'MIN_FIRST'"), LayerCoding::kMinFirst);
  EXPECT_EQ(coding("s: 'SCALED'"), LayerCoding::kScaled);
}

TEST(FindLayerPairs, FindsAFloatTensorOfTheSameName) {
  const LayerPair dequantized = Only(
      Find(FloatLayerText(),
           Node("relu", "QuantizedMatMulWithBiasAndDequantize", {"a"},
                {{"T1", "type: DT_QUINT8"}, {"Toutput", "type: DT_FLOAT"}})));
  EXPECT_EQ(dequantized.tensor, "relu:0");
  EXPECT_EQ(dequantized.coding, LayerCoding::kFloat);
  EXPECT_EQ(dequantized.min_tensor, "");
  EXPECT_EQ(Only(Find(FloatLayerText(), FloatLayerText())).tensor, "relu:0");
  EXPECT_EQ(Only(Find(FloatLayerText(), Node("relu", "Dequantize", {"a"},
                                             {{"T", "type: DT_QUINT8"}})))
                .tensor,
            "relu:0");
}

TEST(FindLayerPairs, PrefersTheCodesToWhatIsMadeOfThem) {
  EXPECT_EQ(
      Only(Find(FloatLayerText(),
                absl::StrCat(
                    Node("m_eightbit_requantize", "Requantize", {"a"}),
                    Node("relu", "Dequantize", {"m_eightbit_requantize"}))))
          .tensor,
      "m_eightbit_requantize:0");
}

TEST(FindLayerPairs, LooksBehindTheImportPrefixOfEitherGraph) {
  const std::string codes = "m_eightbit_requantize";
  EXPECT_EQ(
      Only(Find(FloatLayerText("import/"), Node(codes, "Requantize", {"a"})))
          .tensor,
      codes + ":0");
  EXPECT_EQ(
      Only(Find(FloatLayerText(), Node("import/" + codes, "Requantize", {"a"})))
          .tensor,
      "import/" + codes + ":0");
}

TEST(FindLayerPairs, ListsLayersThatAreGone) {
  EXPECT_THAT(Find(FloatLayerText(), Placeholder("x")).unmatched,
              ElementsAre("m"));
  // Codes under the float tensor's name say nothing without their range.
  EXPECT_THAT(Find(FloatLayerText(),
                   Node("relu", "Identity", {"a"}, {{"T", "type: DT_QUINT8"}}))
                  .unmatched,
              ElementsAre("m"));
}

TEST(FindLayerPairs, HasAQuantizedInputAsAPairOfItsOwn) {
  const auto find = [](const std::string& mode) {
    return Find(FloatLayerText(),
                absl::StrCat(Node("m_eightbit_requantize", "Requantize", {"a"}),
                             Node("m_eightbit_quantize_x", "QuantizeV2", {"x"},
                                  {{"T", "type: DT_QUINT8"}, {"mode", mode}})));
  };
  const LayerPairs found = find("s: 'MIN_FIRST'");
  ASSERT_THAT(found.pairs, SizeIs(2));
  EXPECT_EQ(found.pairs[0].name, "x");
  EXPECT_EQ(found.pairs[0].float_tensor, "x:0");
  EXPECT_EQ(found.pairs[0].tensor, "m_eightbit_quantize_x:0");
  EXPECT_EQ(found.pairs[0].max_tensor, "m_eightbit_quantize_x:2");
  EXPECT_EQ(found.pairs[0].coding, LayerCoding::kMinFirst);
  EXPECT_EQ(found.pairs[1].name, "m");
  EXPECT_THAT(find("s: 'SCALED'").pairs, SizeIs(1));
}

TEST(FindLayerPairs, EndsALayerAtAnOutput) {
  GraphDef graph = GraphFromText(FloatLayerText());
  ASSERT_OK_AND_ASSIGN(const auto index, GraphIndex::Create(&graph));
  EXPECT_EQ(Only(FindLayerPairs(index, index, {"add"})).float_tensor, "add:0");
}

}  // namespace
}  // namespace requant::layer_pairs_test
