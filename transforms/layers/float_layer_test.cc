#include "transforms/layers/float_layer.h"

#include <list>

#include "absl/strings/substitute.h"
#include "graph/graph_index.h"
#include "graph/testing/testing.h"

namespace requant::float_layer_test {
namespace {

// The input x [?, 2], the weights w [2, 3], the bias b [3], and a MatMul.
constexpr char kBeginning[] = R"(
  x = Placeholder dtype=float shape=<?,2>
  w = float<2,3>{1,2,3,4,5,6}
  b = float<3>{7,8,9}
)";
constexpr char kMatMul[] = "m = MatMul(x, w) T=float\n";
constexpr char kReluLayer[] = R"(
  m = MatMul(x, w) T=float
  a = BiasAdd(m, b) T=float
  r = Relu(a) T=float
)";

FloatLayers Find(const std::string& lines,
                 const FloatLayerOptions& options = {}) {
  // The returned layers point into the graph.
  static auto* graphs = new std::list<GraphDef>();
  graphs->push_back(GraphFromText(kBeginning + lines));
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
        kMatMul, "a = BiasAdd(m, b) T=float; r = ", activation, "(a) T=float"));
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
  for (const char* sum :
       {"Add(m, b)", "Add(b, m)", "AddV2(m, b)", "AddV2(b, m)"}) {
    const FloatLayer layer =
        OnlyLayer(absl::StrCat(kMatMul, "a = ", sum, " T=float"));
    EXPECT_EQ(layer.output, "a:0");
    EXPECT_THAT(ValuesOf(layer.bias), ElementsAre(7, 8, 9));
  }
}

TEST(FindFloatLayers, ALayerWithoutABiasHasZeros) {
  const FloatLayer layer =
      OnlyLayer(absl::StrCat(kMatMul, "r = Relu(m) T=float"));
  EXPECT_EQ(layer.bias_add, nullptr);
  EXPECT_EQ(layer.output, "r:0");
  EXPECT_THAT(ValuesOf(layer.bias), ElementsAre(0, 0, 0));
}

TEST(FindFloatLayers, LooksThroughIdentities) {
  const FloatLayer layer = OnlyLayer(R"(
    w1 = Identity(w) T=float
    w2 = Identity(w1) T=float
    m = MatMul(x, w2) T=float
    b1 = Identity(b) T=float
    a = BiasAdd(m, b1) T=float
  )");
  EXPECT_EQ(layer.weights_node->name(), "w");
  EXPECT_EQ(layer.bias_add->name(), "a");
}

TEST(FindFloatLayers, TransposesTheWeightsOfTransposeB) {
  const FloatLayer layer = OnlyLayer(R"(
    t = float<3,2>{1,4,2,5,3,6}
    m = MatMul(x, t) T=float transpose_b=true
  )");
  EXPECT_TRUE(layer.transposed);
  EXPECT_EQ(layer.weights.dim_size(0), 2);
  EXPECT_THAT(ValuesOf(layer.weights), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(FindFloatLayers, ALayerEndsWithWhatSomethingElseReads) {
  for (const auto& [inputs, output] :
       std::vector<std::pair<std::string, std::string>>{
           {"a", "a:0"}, {"m", "m:0"}, {"x, ^a", "a:0"}}) {
    EXPECT_EQ(
        OnlyLayer(absl::StrCat(kReluLayer, "other = Neg(", inputs, ") T=float"))
            .output,
        output);
  }
}

TEST(FindFloatLayers, ALayerEndsWithAnOutputOfTheGraph) {
  EXPECT_EQ(OnlyLayer(kReluLayer, {{"a:0", "r"}, {}, {}}).output, "a:0");
}

TEST(FindFloatLayers, ALayerEndsBeforeABiasThatIsNoConstantVectorOfItsWidth) {
  for (const char* bias :
       {"Placeholder dtype=float shape=<3>", "float<1,3>{1,2,3}", "float<1>{1}",
        "float<3>{1,inf,2}"}) {
    EXPECT_EQ(OnlyLayer(absl::StrCat(kMatMul, "c = ", bias,
                                     "\na = AddV2(m, c) T=float"))
                  .output,
              "m:0");
  }
}

TEST(FindFloatLayers, ALayerEndsBeforeWhatIsExcluded) {
  EXPECT_EQ(OnlyLayer(kReluLayer, {{}, {"Relu"}, {}}).output, "a:0");
  EXPECT_EQ(OnlyLayer(kReluLayer, {{}, {"Relu"}, {"a"}}).output, "m:0");
  EXPECT_EQ(WhySkipped(kReluLayer, {{}, {"Relu"}, {"m"}}), "it is excluded");
  EXPECT_EQ(WhySkipped(kReluLayer, {{}, {"MatMul"}, {}}), "it is excluded");
}

TEST(FindFloatLayers, SkipsWhatCannotBeQuantized) {
  for (const auto& [matmul, why] :
       std::vector<std::pair<std::string, std::string>>{
           {"MatMul(x, x) T=float", "it multiplies two activations"},
           {"MatMul(w, x) T=float", "its constant is the first factor"},
           {"MatMul(w, w) T=float", "it multiplies two constants"},
           {"MatMul(x, w) T=half", "it is not float32"},
           {"MatMul(x, w) T=float transpose_a=true",
            "it transposes its first input"},
           {"MatMul(x, b) T=float", "its weights have the shape [3]"},
           {"MatMul(x, o) T=float; o = float<0,3>{}",
            "its weights have the shape [0,3]"},
           {"MatMul(x, o) T=float; o = float<1,2>{0,0}",
            "its weights are all zero"},
           {"MatMul(x, o) T=float; o = float<1,2>{nan,0}",
            "its weights hold a nan or an infinity"}}) {
    EXPECT_EQ(WhySkipped("m = " + matmul), why);
  }
}

TEST(FindFloatLayers, KeepsTheOrderOfTheGraph) {
  const FloatLayers found = Find(R"(
    z = MatMul(x, w) T=float
    s = MatMul(x, x) T=float
    a = MatMul(x, w) T=float
  )");
  ASSERT_THAT(found.layers, SizeIs(2));
  EXPECT_EQ(found.layers[0].output, "z:0");
  EXPECT_EQ(found.layers[1].output, "a:0");
  ASSERT_THAT(found.skipped, SizeIs(1));
  EXPECT_EQ(found.skipped[0].name, "s");
}

// Returns relu = Relu(MatMul(x, w) + b), named with a prefix.
std::string FloatLayerText(const std::string& prefix = "") {
  return absl::Substitute(R"(
    x = Placeholder dtype=float shape=<?,2>
    w = float<2,1>{1,2}
    b = float<1>{3}
    $0m = MatMul(x, w) T=float
    $0add = BiasAdd($0m, b) T=float
    $0relu = Relu($0add) T=float
  )",
                          prefix);
}

// Returns the pairs as "m: relu:0 = tensor [kScaled of min to max]", then the
// names of unmatched layers.
std::vector<std::string> Pairs(const std::string& other_lines,
                               const std::string& float_lines,
                               const std::vector<std::string>& outputs = {}) {
  GraphDef graph = GraphFromText(float_lines);
  GraphDef other = GraphFromText(other_lines);
  const LayerPairs found =
      FindLayerPairs(GraphIndex::Create(&graph).value(),
                     GraphIndex::Create(&other).value(), outputs);
  std::vector<std::string> shown = found.unmatched;
  for (const LayerPair& pair : found.pairs) {
    const char* codings[] = {"", " MIN_FIRST ", " SCALED "};
    shown.push_back(absl::StrCat(pair.name, ": ", pair.float_tensor, " = ",
                                 pair.tensor,
                                 codings[static_cast<int>(pair.coding)],
                                 pair.min_tensor, " ", pair.max_tensor));
  }
  return shown;
}

TEST(FindLayerPairs, FindsCodesWithTheirRangeOrAFloatTensorOfTheSameName) {
  const auto codes = [](const std::string& coding) {
    return absl::StrCat("m: relu:0 = m_eightbit_requantize:0 ", coding,
                        " m_eightbit_requantize:1 m_eightbit_requantize:2");
  };
  const std::string same_name = "m: relu:0 = relu:0 ";
  for (const auto& [other, pair] :
       std::vector<std::pair<std::string, std::string>>{
           {"m_eightbit_requantize = Requantize(a, b, c, d, e)",
            codes("MIN_FIRST")},
           // A fused layer has no zero point (kernels.md); the new op says so.
           {"m_eightbit_requantize = "
            "QuantizedMatMulWithBiasAndReluAndRequantize(a)",
            codes("SCALED")},
           {"m_eightbit_requantize = _QuantizedMatMul(a) "
            "output_quant_mode='MIN_FIRST'",
            codes("MIN_FIRST")},
           {"m_eightbit_requantize = _QuantizedMatMul(a) "
            "output_quant_mode='SCALED'",
            codes("SCALED")},
           // Codes take precedence over what is made of them.
           {"m_eightbit_requantize = Requantize(a)\n"
            "relu = Dequantize(m_eightbit_requantize)",
            codes("MIN_FIRST")},
           {"relu = QuantizedMatMulWithBiasAndDequantize(a) T1=quint8 "
            "Toutput=float",
            same_name},
           {FloatLayerText(), same_name},
           {"relu = Dequantize(a) T=quint8", same_name},
           {"x = Placeholder dtype=float", "m"},
           // Codes under the float tensor's name mean nothing without their
           // range.
           {"relu = Identity(a) T=quint8", "m"}}) {
    EXPECT_THAT(Pairs(other, FloatLayerText()), ElementsAre(pair)) << other;
  }
}

TEST(FindLayerPairs, LooksBehindTheImportPrefixOfEitherGraph) {
  EXPECT_THAT(
      Pairs("m_eightbit_requantize = Requantize(a)", FloatLayerText("import/")),
      ElementsAre(HasSubstr(" = m_eightbit_requantize:0 ")));
  EXPECT_THAT(
      Pairs("import/m_eightbit_requantize = Requantize(a)", FloatLayerText()),
      ElementsAre(HasSubstr(" = import/m_eightbit_requantize:0 ")));
}

TEST(FindLayerPairs, HasAQuantizedInputAsAPairOfItsOwn) {
  const auto find = [](const std::string& mode,
                       const std::string& source = "x") {
    return Pairs(absl::StrCat("m_eightbit_requantize = Requantize(a)\n"
                              "m_eightbit_quantize_x = QuantizeV2(",
                              source, ") T=quint8 mode=", mode),
                 FloatLayerText());
  };
  EXPECT_THAT(find("'MIN_FIRST'"),
              ElementsAre("x: x:0 = m_eightbit_quantize_x:0 MIN_FIRST "
                          "m_eightbit_quantize_x:1 m_eightbit_quantize_x:2",
                          StartsWith("m: ")));
  EXPECT_THAT(find("'SCALED'"), ElementsAre(StartsWith("m: ")));
  // Codes of scaled and repeated columns are not codes of x.
  EXPECT_THAT(find("'MIN_FIRST'", "shifted"), ElementsAre(StartsWith("m: ")));
  EXPECT_THAT(find("'MIN_FIRST'", "import/x"),
              ElementsAre(StartsWith("x: "), StartsWith("m: ")));
}

TEST(FindLayerPairs, EndsALayerAtAnOutput) {
  EXPECT_THAT(Pairs(FloatLayerText(), FloatLayerText(), {"add"}),
              ElementsAre("m: add:0 = add:0 "));
}

TEST(LayerTable, AlignsItsColumns) {
  EXPECT_THAT(
      LayerTable({{"layer", {"size", "output"}},
                  {"dense", {"8 x 6", "quint8"}},
                  {"hidden/1", {"6 x 4", "float"}}}),
      ElementsAre("  layer     size   output",  //
                  "  dense     8 x 6  quint8", "  hidden/1  6 x 4  float"));
}

TEST(LayerTable, AlignsNamesOfSeveralBytesPerCharacter) {
  EXPECT_THAT(LayerTable({{"é", {"a"}}, {"ee", {"b"}}}),
              ElementsAre("  é   a", "  ee  b"));
}

TEST(CheckExcluded, SuggestsTheNameThatMayBeMeantAndWarnsOfOtherTypes) {
  GraphDef graph = GraphFromText("dense/MatMul = Placeholder");
  const GraphIndex index = GraphIndex::Create(&graph).value();
  std::vector<std::string> warnings;
  EXPECT_THAT(CheckExcluded({{}, {}, {"dense/MatMull"}}, index, &warnings),
              FailsWith(HasSubstr("\"dense/MatMul\"")));
  EXPECT_OK(
      CheckExcluded({{}, {"MatMul", "Placeholder"}, {}}, index, &warnings));
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("MatMul")));
}

}  // namespace
}  // namespace requant::float_layer_test
