#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/substitute.h"
#include "graph/const_node.h"
#include "graph/graph_io.h"
#include "graph/tensorflow_library.h"
#include "tensorflow/core/public/session.h"
#include "transforms/layers/float_layer.h"
#include "transforms/layers/quantized_weights.h"
#include "transforms/testing/testing.h"

namespace requant::quantize_eightbit_test {
namespace {

constexpr char kQuantize[] = "quantize_eightbit";
constexpr char kFuse[] = "fuse_quantized_matmul_and_requantize";

std::vector<float> Random(int count, float spread, int seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> value(0, spread);
  std::vector<float> values(count);
  for (float& v : values) v = value(random);
  return values;
}

std::string Input() { return Placeholder("x", {-1, 8}); }

// Returns the weights <name>/w of size inputs x outputs.
std::string Weights(const std::string& name, int inputs, int outputs) {
  return FloatConst(
      name + "/w", {inputs, outputs},
      Random(inputs * outputs, 1 / std::sqrt(inputs), inputs * 100 + outputs));
}

// Returns <name>/MatMul of `input`, <name>/BiasAdd and <name>/<activation>, the
// last of which gives the layer's output.
std::string Layer(const std::string& name, const std::string& input, int inputs,
                  int outputs, const std::string& activation = "",
                  const std::vector<float>& bias = {}) {
  return absl::StrCat(
      Weights(name, inputs, outputs),
      FloatConst(name + "/b", {outputs},
                 bias.empty() ? Random(outputs, 0.3f, outputs) : bias),
      absl::Substitute("$0/MatMul = MatMul($1, $0/w) T=float\n"
                       "$0/BiasAdd = BiasAdd($0/MatMul, $0/b) T=float\n",
                       name, input),
      activation.empty() ? ""
                         : absl::Substitute("$0/$1 = $1($0/BiasAdd) T=float\n",
                                            name, activation));
}

// Returns two layers with Relu, "b" after "a".
std::string TwoLayers() {
  return absl::StrCat(Input(), Layer("a", "x", 8, 6, "Relu"),
                      Layer("b", "a/Relu", 6, 4, "Relu"));
}

// Returns values of both signs.
Tensor InputValues(int rows = 50, int columns = 8) {
  return TensorOf<float>({rows, columns}, Random(rows * columns, 1, 7));
}

std::vector<Tensor> MustRun(const GraphDef& graph,
                            const std::vector<std::string>& fetches,
                            const Tensor& x = InputValues()) {
  return MustRunGraph(graph, {{"x", x}}, fetches);
}

// Returns the largest difference of two float tensors, divided by the first
// one's largest value.
float Difference(const Tensor& want, const Tensor& got) {
  EXPECT_EQ(want.shape(), got.shape());
  if (want.shape() != got.shape()) return INFINITY;
  float difference = 0, largest = 0;
  for (int64_t i = 0; i < want.NumElements(); ++i) {
    const float w = want.flat<float>()(i), g = got.flat<float>()(i);
    if (std::isnan(g)) return INFINITY;
    difference = std::max(difference, std::fabs(w - g));
    largest = std::max(largest, std::fabs(w));
  }
  return largest > 0 ? difference / largest : difference;
}

// Expects `graph` to compute what `text` does, up to the error of eight bits.
void ExpectSameOutputs(const std::string& text, const GraphDef& graph,
                       const std::vector<std::string>& outputs,
                       float tolerance = 0.03f) {
  const auto want = MustRun(GraphFromText(text), outputs);
  const auto got = MustRun(graph, outputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_LT(Difference(want[i], got[i]), tolerance) << outputs[i];
  }
}

// Quantizes the graph of `text` and expects it to compute the same.
TransformRun Quantize(const std::string& text,
                      const std::vector<std::string>& outputs,
                      const std::string& parameters = "",
                      float tolerance = 0.03f) {
  TransformRun run = MustTransform(kQuantize + parameters, GraphFromText(text),
                                   {"x"}, outputs);
  ExpectSameOutputs(text, run.graph, outputs, tolerance);
  return run;
}

// Returns the graph with the ranges of the inputs as constants.
GraphDef Freeze(const GraphDef& graph) {
  GraphDef frozen = graph;
  const auto freeze = [&](const std::string& op, const std::string& transform,
                          const std::string& kind, int values) {
    std::string lines;
    for (const std::string& name : NodesOf(graph, op)) {
      std::vector<std::string> fetches = {name};
      if (values == 2) fetches.push_back(name + ":1");
      absl::StrAppend(&lines, ";", name, "__print__;__", kind, ":");
      for (const Tensor& value : MustRun(graph, fetches)) {
        absl::StrAppend(&lines, "[", value.flat<float>()(0), "]");
      }
      absl::StrAppend(&lines, "\n");
    }
    if (lines.empty()) return;
    frozen = MustTransform(
                 absl::StrCat(transform, "(min_max_log_file=\"",
                              WriteTestFile(transform + ".txt", lines), "\")"),
                 frozen)
                 .graph;
  };
  freeze("RequantizationRange", "freeze_requantization_ranges",
         "requant_min_max", 2);
  freeze("Min", "freeze_min", "min", 1);
  freeze("Max", "freeze_max", "max", 1);
  return frozen;
}

TEST(QuantizeEightbit, NamesNodesAsTheOriginalDid) {
  const auto run =
      Quantize(absl::StrCat(Input(), "in/scaled = Neg(x) T=float\n",
                            Layer("l", "in/scaled", 8, 4, "Relu")),
               {"l/Relu"});
  for (const auto& [op, names] :
       std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"Reshape", {"l/MatMul_eightbit_reshape_in/scaled"}},
           {"Min", {"l/MatMul_eightbit_min_in/scaled"}},
           {"Max", {"l/MatMul_eightbit_max_in/scaled"}},
           {"QuantizeV2", {"l/MatMul_eightbit_quantize_in/scaled"}},
           {"QuantizedMatMulWithBiasAndRelu",
            {"l/MatMul_eightbit_quantized_mat_mul"}},
           {"RequantizationRange", {"l/MatMul_eightbit_requant_range"}},
           {"Requantize", {"l/MatMul_eightbit_requantize"}},
           {"Dequantize", {"l/Relu"}},
           {"MatMul", {}},
           {"BiasAdd", {}}}) {
    EXPECT_EQ(NodesOf(run.graph, op), names);
  }
  EXPECT_THAT(NodesOf(run.graph, "Const"),
              AllOf(Contains("l/MatMul_eightbit_reshape_dims"),
                    Contains("l/MatMul_eightbit_reduction_dims"),
                    Contains("l/w_qint8_const"), Contains("l/w_min"),
                    Contains("l/w_max"), Not(Contains("l/w"))));
}

TEST(QuantizeEightbit, AnotherOutputsPortIsPartOfTheName) {
  const auto run =
      Quantize(absl::StrCat(Input(), "axis = int32{1}\n",
                            "s = Split(axis, x) T=float num_split=2\n",
                            Layer("l", "s:1", 4, 4)),
               {"l/BiasAdd"});
  EXPECT_TRUE(HasNode(run.graph, "l/MatMul_eightbit_quantize_s__port__1"));
}

TEST(QuantizeEightbit, RangeNodesNameTheFloatTensor) {
  const auto run = Quantize(
      absl::StrCat(Input(), Layer("l", "x", 8, 4, "Relu")), {"l/Relu"});
  const auto range_of = [&](const std::string& name) {
    return NodeNamed(run.graph, name).attr().at(kRangeOfAttribute).s();
  };
  EXPECT_EQ(range_of("l/MatMul_eightbit_min_x"), "x:0");
  EXPECT_EQ(range_of("l/MatMul_eightbit_max_x"), "x:0");
  EXPECT_EQ(range_of("l/MatMul_eightbit_requant_range"), "l/Relu:0");
}

TEST(QuantizeEightbit, IsRightForNegativeInputs) {
  for (const std::string activation : {"", "Relu", "Relu6"}) {
    Quantize(absl::StrCat(Input(), Layer("l", "x", 8, 6, activation)),
             {activation.empty() ? "l/BiasAdd" : "l/" + activation});
  }
}

// The kernels may cache a bias from one run to the next.
TEST(QuantizeEightbit, FollowsTheRangeOfEveryRun) {
  const std::string text = absl::StrCat(Input(), Layer("l", "x", 8, 6, "Relu"));
  const GraphDef graph = Quantize(text, {"l/Relu"}).graph;
  ASSERT_OK(LoadTensorFlow());
  std::unique_ptr<tensorflow::Session> session(
      tensorflow::NewSession(tensorflow::SessionOptions()));
  ASSERT_OK(session->Create(graph));
  for (const float shift : {0.0f, -2.0f, 3.0f}) {
    Tensor x = InputValues();
    x.flat<float>() = x.flat<float>() + shift;
    std::vector<Tensor> outputs;
    ASSERT_OK(session->Run({{"x", x}}, {"l/Relu"}, {}, &outputs));
    const auto want = MustRun(GraphFromText(text), {"l/Relu"}, x);
    EXPECT_LT(Difference(want[0], outputs[0]), 0.03f) << shift;
  }
}

TEST(QuantizeEightbit, ReluLayersHandQuint8On) {
  const auto run = Quantize(TwoLayers(), {"b/Relu"});
  EXPECT_EQ(
      NodeNamed(run.graph, "b/MatMul_eightbit_quantized_mat_mul").input(0),
      "a/MatMul_eightbit_requantize");
  EXPECT_FALSE(HasNode(run.graph, "a/Relu"));
  EXPECT_THAT(NodesOf(run.graph, "QuantizeV2"),
              ElementsAre("a/MatMul_eightbit_quantize_x"));
}

TEST(QuantizeEightbit, FloatReadersOfAReluLayerGetADequantize) {
  const auto run =
      Quantize(TwoLayers() + "y = Neg(a/Relu) T=float\n", {"b/Relu", "y"});
  EXPECT_EQ(NodeNamed(run.graph, "a/Relu").op(), "Dequantize");
  EXPECT_EQ(NodeNamed(run.graph, "y").input(0), "a/Relu");
}

TEST(QuantizeEightbit, ALayerWithoutReluGivesFloatThatTheNextQuantizes) {
  const auto run = Quantize(absl::StrCat(Input(), Layer("a", "x", 8, 6),
                                         Layer("b", "a/BiasAdd", 6, 4)),
                            {"b/BiasAdd"});
  EXPECT_EQ(NodeNamed(run.graph, "a/BiasAdd").op(),
            "QuantizedMatMulWithBiasAndDequantize");
  EXPECT_THAT(NodesOf(run.graph, "RequantizationRange"), IsEmpty());
  EXPECT_EQ(
      NodeNamed(run.graph, "b/MatMul_eightbit_quantize_a/BiasAdd").input(0),
      "a/BiasAdd");
}

TEST(QuantizeEightbit, LayersMayStandInAnyOrder) {
  Quantize(absl::StrCat(Layer("b", "a/Relu", 6, 4, "Relu"),
                        Layer("a", "x", 8, 6, "Relu"), Input()),
           {"b/Relu"});
}

TEST(QuantizeEightbit, ATensorIsQuantizedOnce) {
  const auto run = Quantize(
      absl::StrCat(Input(), Layer("a", "x", 8, 6), Layer("b", "x", 8, 4)),
      {"a/BiasAdd", "b/BiasAdd"});
  EXPECT_THAT(NodesOf(run.graph, "QuantizeV2"),
              ElementsAre("a/MatMul_eightbit_quantize_x"));
}

TEST(QuantizeEightbit, SharedWeightsBecomeOneConstant) {
  const auto run =
      Quantize(absl::StrCat(Input(), Weights("s", 8, 8),
                            "a = MatMul(x, s/w) T=float\n"
                            "b = MatMul(a, s/w) T=float transpose_b=true\n"
                            "c = MatMul(b, s/w) T=float\n"),
               {"c"}, "", 0.05f);
  EXPECT_TRUE(HasNode(run.graph, "s/w_qint8_const"));
  EXPECT_EQ(NodeNamed(run.graph, "a").input(1),
            NodeNamed(run.graph, "c").input(1));
  // Transposed weights are another constant.
  EXPECT_EQ(NodeNamed(run.graph, "b").input(1), "s/w_qint8_const_1");
  EXPECT_FALSE(HasNode(run.graph, "s/w"));
}

TEST(QuantizeEightbit, Relu6EndsAtSix) {
  const auto run = Quantize(Input() +
                                "w = float<8,2>{3}; m = MatMul(x, w) T=float; "
                                "r = Relu6(m) T=float\n",
                            {"r"});
  const auto largest = MustRun(run.graph, {"m_eightbit_requantize:2", "r"});
  EXPECT_EQ(largest[0].flat<float>()(0), 6);
}

TEST(QuantizeEightbit, ALayerThatIsNeverPositiveGivesZeros) {
  Quantize(absl::StrCat(Input(), Layer("l", "x", 8, 3, "Relu", {-99, -99, -99}),
                        Layer("next", "l/Relu", 3, 2)),
           {"next/BiasAdd", "l/Relu"});
}

// Returns a layer whose output is never positive, then one with a bias.
std::string DeadThenBias(float bias) {
  return absl::StrCat(
      Input(), Layer("dead", "x", 8, 3, "Relu", {-99, -99, -99}),
      Layer("next", "dead/Relu", 3, 2, "Relu", {bias, bias / 5}));
}

TEST(QuantizeEightbit, ABiasBehindALayerThatIsNeverPositiveIsNotSaturated) {
  for (const float bias : {0.3f, 5.0f, 1000.0f}) {
    EXPECT_THAT(Quantize(DeadThenBias(bias), {"next/Relu"}).warnings, IsEmpty())
        << bias;
  }
}

TEST(QuantizeEightbit, ALayerThatWasNeverPositiveCanBeFused) {
  const std::string text = DeadThenBias(5);
  const GraphDef frozen =
      WithNodes(Freeze(Quantize(text, {"next/Relu"}).graph),
                "dead/MatMul_eightbit_requant_range/frozen_max = float{0}");
  const auto fused = MustTransform(kFuse, frozen, {"x"}, {"next/Relu"});
  EXPECT_THAT(NodesOf(fused.graph, "Maximum"), IsEmpty());
  ExpectSameOutputs(text, fused.graph, {"next/Relu"});
}

TEST(QuantizeEightbit, ALargeBiasWidensTheInputsRangeAndIsWarnedOf) {
  const std::string text =
      absl::StrCat(Input(), Layer("l", "x", 8, 2, "", {1e7f, -3e6f}));
  const auto run = Quantize(text, {"l/BiasAdd"}, "", 1e-3f);
  EXPECT_THAT(run.warnings, ElementsAre(HasSubstr("excluded_nodes=l/MatMul")));
  const auto fused =
      MustTransform(kFuse, Freeze(run.graph), {"x"}, {"l/BiasAdd"});
  ExpectSameOutputs(text, fused.graph, {"l/BiasAdd"}, 1e-3f);
}

TEST(QuantizeEightbit, RefusesABiasThatTheRangeOfARelu6IsTooNarrowFor) {
  const std::string text =
      absl::StrCat(Input(), Layer("six", "x", 8, 3, "Relu6"),
                   Layer("next", "six/Relu6", 3, 2, "", {1e7f, 0}));
  EXPECT_THAT(TransformError(kQuantize, GraphFromText(text)),
              HasSubstr("excluded_nodes=next/MatMul"));
  Quantize(text, {"next/BiasAdd"}, "(excluded_nodes=next/MatMul)");
}

TEST(QuantizeEightbit, LeavesOtherNodesAsTheyAre) {
  const auto run = Quantize(
      absl::StrCat(Input(), Layer("l", "x", 8, 8),
                   "y = Softmax(l/BiasAdd) T=float\n"
                   "z = MatMul(y, l/BiasAdd) T=float transpose_b=true\n"),
      {"z"}, "", 0.05f);
  EXPECT_EQ(NodeNamed(run.graph, "z").op(), "MatMul");
  EXPECT_THAT(
      run.notes,
      Contains("  leaves \"z\" in float: it multiplies two activations"));
}

TEST(QuantizeEightbit, KeepsControlInputs) {
  const auto run =
      Quantize(absl::StrCat(Input(), Weights("l", 8, 3),
                            "first = Neg(x) T=float; r = Relu(m) T=float\n"
                            "m = MatMul(x, l/w, ^first) T=float\n"),
               {"r"});
  EXPECT_THAT(NodeNamed(run.graph, "m_eightbit_quantized_mat_mul").input(),
              Contains("^first"));
}

TEST(QuantizeEightbit, TellsOfEveryLayer) {
  // The graph is not run, since this CPU may not be the target.
  const auto run = MustTransform(
      "quantize_eightbit(target=vnni)",
      GraphFromText(absl::StrCat(Input(), Layer("a", "x", 8, 6, "Relu6"),
                                 Layer("b", "a/Relu6", 6, 4))));
  EXPECT_EQ(run.notes[0], "quantizes 2 of 2 MatMuls for the target \"vnni\"");
  EXPECT_THAT(run.notes[2],
              MatchesRegex("  a/MatMul +8 x 6 +Relu6 +127 +[0-9.]+ % +quint8"));
  EXPECT_THAT(run.notes[3],
              MatchesRegex("  b/MatMul +6 x 4 +none +127 +[0-9.]+ % +float"));
}

// A misspelt op such as "Matmul" would silently exclude nothing.
TEST(QuantizeEightbit, ExcludedOpsStayAndOneThatIsNotThereIsWarnedOf) {
  const auto run = Quantize(TwoLayers(), {"b/Relu"}, "(excluded_ops=Relu)");
  EXPECT_EQ(NodeNamed(run.graph, "a/Relu").op(), "Relu");
  EXPECT_THAT(
      Quantize(TwoLayers(), {"b/Relu"}, "(excluded_ops=Matmul)").warnings,
      ElementsAre(HasSubstr("did you mean \"MatMul\"")));
}

TEST(QuantizeEightbit, RefusesWhatItCannotDo) {
  for (const auto& [parameters, why] :
       Cases{{"excluded_nodes=a/MatMull",
              "no node \"a/MatMull\" to exclude (did you mean \"a/MatMul\"?)"},
             {"per_channel=true", "QuantizedMatMulWithBiasAndRelu"},
             {"target=i386", "no target \"i386\""}}) {
    EXPECT_THAT(TransformError(absl::StrCat(kQuantize, "(", parameters, ")"),
                               GraphFromText(TwoLayers())),
                HasSubstr(why));
  }
}

TEST(QuantizeEightbit, LeavesAGraphWithoutLayersAsItIs) {
  const std::string text = Input() + "y = Neg(x) T=float\n";
  const auto run = Quantize(text, {"y"});
  EXPECT_THAT(run.warnings, ElementsAre(HasSubstr("nothing to quantize")));
  EXPECT_TRUE(SameMessage(run.graph, GraphFromText(text)));
}

TEST(QuantizeEightbit, RunningItAgainChangesNothing) {
  const auto once = Quantize(TwoLayers(), {"b/Relu"});
  const auto twice = RunTransform(kQuantize, once.graph, {"x"}, {"b/Relu"});
  EXPECT_TRUE(SameMessage(once.graph, twice.graph));
}

// Returns a graph with Relu6, no bias, transposed and shared weights, an inner
// layer without Relu, and a MatMul of two activations.
std::string AnotherKindOfModel() {
  return absl::StrCat(Input(), Layer("one", "x", 8, 16, "Relu6"),
                      FloatConst("two/w", {16, 16}, Random(256, 0.3f, 2)),
                      FloatConst("three/b", {16}, Random(16, 0.3f, 3)), R"(
        two = MatMul(one/Relu6, two/w) T=float transpose_b=true
        two/Relu = Relu(two) T=float
        three/MatMul = MatMul(two/Relu, two/w) T=float
        three = AddV2(three/b, three/MatMul) T=float
        product = MatMul(three, three) T=float transpose_b=true
        y = Softmax(logits/BiasAdd) T=float
      )",
                      Layer("four", "three", 16, 12, "Relu"),
                      Layer("logits", "four/Relu", 12, 3));
}

TEST(QuantizeEightbit, EveryStageOfAnotherKindOfModelIsRight) {
  const std::string text = AnotherKindOfModel();
  const std::vector<std::string> outputs = {"y", "product", "logits/BiasAdd"};
  const GraphDef dynamic = Quantize(text, outputs, "", 0.05f).graph;
  const GraphDef frozen = Freeze(dynamic);
  for (const char* op : {"RequantizationRange", "Min", "Max"}) {
    EXPECT_THAT(NodesOf(frozen, op), IsEmpty());
  }
  ExpectSameOutputs(text, frozen, outputs, 0.05f);
  const auto fused = MustTransform(kFuse, frozen, {"x"}, outputs);
  ExpectSameOutputs(text, fused.graph, outputs, 0.05f);
  const auto before = MustRun(frozen, outputs);
  const auto after = MustRun(fused.graph, outputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_LT(Difference(before[i], after[i]), 0.01f) << outputs[i];
  }
  // Biases are qint32, and ranges are constant.
  for (const NodeDef& node : fused.graph.node()) {
    EXPECT_FALSE(node.op() == "Requantize" || node.op() == "Sub" ||
                 node.op() == "Mul" || node.op() == "AddV2" ||
                 node.op() == "Minimum" || node.op() == "Maximum")
        << node.name();
    if (!absl::StartsWith(node.op(), "QuantizedMatMul")) continue;
    EXPECT_EQ(node.attr().at("Tbias").type(), tensorflow::DT_QINT32);
    EXPECT_EQ(node.attr().at("input_quant_mode").s(), "MIN_FIRST");
  }
  const auto twice = RunTransform(kFuse, fused.graph, {"x"}, outputs);
  EXPECT_TRUE(SameMessage(fused.graph, twice.graph));
}

TEST(QuantizeEightbit, FusingBeforeFreezingSaysWhatToDo) {
  const GraphDef dynamic =
      Quantize(absl::StrCat(Input(), Layer("l", "x", 8, 4)), {"l/BiasAdd"})
          .graph;
  EXPECT_THAT(TransformError(kFuse, dynamic),
              AllOf(HasSubstr("l/BiasAdd"), HasSubstr("freeze_min")));
}

// A bias that anything else shifts is not known to be constant.
TEST(QuantizeEightbit, FusionTakesOnlyTheWeightsOwnColumnSums) {
  GraphDef frozen = Freeze(
      Quantize(absl::StrCat(Input(), Layer("l", "x", 8, 4)), {"l/BiasAdd"})
          .graph);
  ASSERT_OK(RunTransform(kFuse, frozen).status);
  Tensor sums = ConstNamed(frozen, "l/w_column_sums");
  sums.flat<float>()(2) += 1;
  *MutableNode(&frozen, "l/w_column_sums") = MakeConst("l/w_column_sums", sums);
  EXPECT_THAT(TransformError(kFuse, frozen), HasSubstr("l/BiasAdd"));
}

// Applies the original's formulas (quantized_layer.h) to the result of
// quantize_eightbit.
TEST(QuantizeEightbit, CompatFusionReproducesTheOriginalsBiases) {
  const GraphDef frozen = Freeze(Quantize(TwoLayers(), {"b/Relu"}).graph);
  const auto run = MustTransform(absl::StrCat(kFuse, "(compat=true)"), frozen,
                                 {"x"}, {"b/Relu"});
  const auto scalar = [&](const std::string& name) {
    return ScalarNamed(frozen, name);
  };
  const float min = scalar("a/MatMul_eightbit_min_x/frozen_min_only");
  const float max = scalar("a/MatMul_eightbit_max_x/frozen_max_only");
  const float inner = scalar("a/MatMul_eightbit_requant_range/frozen_max");
  // `range` is the magnitude of the input's range.
  for (const auto& [layer, range, zero_point] :
       std::vector<std::tuple<std::string, float, float>>{
           {"a", std::max(-min, max), 255.0f * min / (max - min)},
           {"b", inner, 0}}) {
    const NodeDef& fused =
        NodeNamed(run.graph, layer + "/MatMul_eightbit_requantize");
    const auto got =
        ValuesOf<tensorflow::qint32>(ConstNamed(run.graph, fused.input(2)));
    const auto sums = ColumnSums(ConstNamed(frozen, layer + "/w_qint8_const"));
    const auto bias = ValuesOf(ConstNamed(frozen, layer + "/b"));
    const float scale = 255.0f * 127.0f / (range * scalar(layer + "/w_max"));
    for (size_t j = 0; j < bias.size(); ++j) {
      EXPECT_EQ(got[j].value,
                static_cast<int>(bias[j] * scale + zero_point * sums[j]));
    }
  }
}

}  // namespace
}  // namespace requant::quantize_eightbit_test
