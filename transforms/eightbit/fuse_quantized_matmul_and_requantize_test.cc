#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>

#include "absl/strings/substitute.h"
#include "base/process/machine.h"
#include "base/process/tensorflow_child.h"
#include "graph/const_node.h"
#include "graph/graph_io.h"
#include "transforms/layers/quantized_weights.h"
#include "transforms/testing/testing.h"

namespace requant::fuse_quantized_matmul_and_requantize_test {
namespace {

constexpr char kFuse[] = "fuse_quantized_matmul_and_requantize";
constexpr char kFuseCompat[] =
    "fuse_quantized_matmul_and_requantize(compat=true)";

struct LayerSpec {
  std::string name;
  int inputs;
  int outputs;
  bool relu = true;
};

// A layer and the range of its output.
struct RangedLayer {
  LayerSpec spec;
  float output_min;
  float output_max;
};

// Builds a chain of quantized layers as freeze_max leaves it: x -> QuantizeV2
// -> layers -> Requantize -> Dequantize "y", with constant ranges.
class NetBuilder {
 public:
  // Weight codes range up to `levels`.
  NetBuilder(int levels, float input_min, float input_max)
      : levels_(levels), input_min_(input_min), input_max_(input_max) {
    Scalar("x_min/frozen_min_only", input_min);
    Scalar("x_max/frozen_max_only", input_max);
    AddNodes(R"(
      x = Placeholder dtype=float
      q = QuantizeV2(x, x_min/frozen_min_only, x_max/frozen_max_only) T=quint8
          mode='MIN_FIRST'
    )",
             &graph);
    last_ = "q";
  }

  NetBuilder(int levels, float input_min, float input_max,
             const std::vector<RangedLayer>& layers)
      : NetBuilder(levels, input_min, input_max) {
    for (const RangedLayer& layer : layers) {
      Layer(layer.spec, layer.output_min, layer.output_max);
    }
    Finish();
  }

  void Layer(const LayerSpec& spec, float output_min, float output_max) {
    std::normal_distribution<float> weight(0, 1 / std::sqrt(spec.inputs));
    Tensor weights(tensorflow::DT_QINT8, {spec.inputs, spec.outputs});
    const float top = 4 / std::sqrt(static_cast<float>(spec.inputs));
    for (int64_t i = 0; i < weights.NumElements(); ++i) {
      const float code = std::rint(weight(random_) * levels_ / top);
      weights.flat<tensorflow::qint8>()(i) =
          static_cast<int8_t>(std::clamp<float>(code, -levels_, levels_));
    }
    Tensor bias(tensorflow::DT_FLOAT, {spec.outputs});
    std::normal_distribution<float> bias_value(0, 0.5f);
    for (int i = 0; i < spec.outputs; ++i) {
      bias.flat<float>()(i) = bias_value(random_);
    }
    *graph.add_node() = MakeConst(spec.name + "/weights", weights);
    *graph.add_node() = MakeConst(spec.name + "/bias", bias);
    // The kernels use max/127 as one step of the weights.
    Scalar(spec.name + "/weight_min", -top * 127 / levels_);
    Scalar(spec.name + "/weight_max", top * 127 / levels_);
    Scalar(spec.name + "/range/frozen_min", output_min);
    Scalar(spec.name + "/range/frozen_max", output_max);
    AddNodes(absl::Substitute(R"(
      $0/matmul = $2($1, $0/weights, $0/bias, $1:1, $1:2, $0/weight_min,
          $0/weight_max) T1=quint8 T2=qint8 Toutput=qint32 $3
      $0 = Requantize($0/matmul, $0/matmul:1, $0/matmul:2, $0/range/frozen_min,
          $0/range/frozen_max) Tinput=qint32 out_type=quint8
    )",
                              spec.name, last_,
                              spec.relu ? "QuantizedMatMulWithBiasAndRelu"
                                        : "QuantizedMatMulWithBias",
                              spec.relu ? "" : "Tbias=float"),
             &graph);
    last_ = spec.name;
  }

  void Finish() {
    AddNodes(
        absl::Substitute(
            "y = Dequantize($0, $0:1, $0:2) T=quint8 mode='MIN_FIRST'", last_),
        &graph);
  }

  Tensor Input(int rows, int columns) {
    Tensor x(tensorflow::DT_FLOAT, {rows, columns});
    std::uniform_real_distribution<float> value(input_min_, input_max_);
    for (int64_t i = 0; i < x.NumElements(); ++i) {
      x.flat<float>()(i) = value(random_);
    }
    return x;
  }

  GraphDef graph;

 private:
  void Scalar(const std::string& name, float value) {
    *graph.add_node() = MakeScalarConst(name, value);
  }

  std::mt19937 random_{20261116};
  const int levels_;
  const float input_min_;
  const float input_max_;
  std::string last_;
};

// Returns a graph with one small Relu layer after a QuantizeV2.
GraphDef OneLayer(float input_min = -1, float input_max = 3) {
  NetBuilder net(63, input_min, input_max, {{{"layer", 8, 4}, 0, 5}});
  return net.graph;
}

std::vector<int> CodesNamed(const GraphDef& graph, const std::string& name) {
  std::vector<int> codes;
  for (auto code : ValuesOf<tensorflow::qint32>(ConstNamed(graph, name))) {
    codes.push_back(code.value);
  }
  return codes;
}

// Returns a layer's biases as in the original: truncated, at the scale of an
// input of magnitude `range`, with `zero_point` per unit of weight code.
std::vector<int> CompatBiases(const GraphDef& graph, const std::string& layer,
                              float range, float zero_point = 0) {
  const float scale =
      255.0f * 127.0f / (range * ScalarNamed(graph, layer + "/weight_max"));
  const auto sums = ColumnSums(ConstNamed(graph, layer + "/weights"));
  std::vector<int> biases;
  for (const float bias : ValuesOf(ConstNamed(graph, layer + "/bias"))) {
    const float shift = zero_point * sums[biases.size()];
    biases.push_back(static_cast<int>(bias * scale + shift));
  }
  return biases;
}

// Returns the layer's exact outputs for input codes, before requantization.
std::vector<double> ExactOutputs(const GraphDef& graph, const LayerSpec& spec,
                                 const Tensor& codes, double step,
                                 double offset) {
  const Tensor weights = ConstNamed(graph, spec.name + "/weights");
  const Tensor bias = ConstNamed(graph, spec.name + "/bias");
  const double weight_step =
      ScalarNamed(graph, spec.name + "/weight_max") / 127.0;
  const auto w = weights.matrix<tensorflow::qint8>();
  const auto a = codes.matrix<tensorflow::quint8>();
  const int64_t rows = a.dimension(0);
  std::vector<double> outputs(rows * spec.outputs);
  for (int64_t r = 0; r < rows; ++r) {
    std::vector<double> row(spec.outputs, 0);
    for (int k = 0; k < spec.inputs; ++k) {
      const double x = a(r, k).value * step + offset;
      for (int j = 0; j < spec.outputs; ++j) row[j] += x * w(k, j).value;
    }
    for (int j = 0; j < spec.outputs; ++j) {
      const double value = row[j] * weight_step + bias.flat<float>()(j);
      outputs[r * spec.outputs + j] = spec.relu ? std::max(value, 0.0) : value;
    }
  }
  return outputs;
}

// Returns how many steps the codes are away from the exact outputs.
double WorstError(const std::vector<double>& exact, const Tensor& codes,
                  double step) {
  double worst = 0;
  const auto got = codes.flat<tensorflow::quint8>();
  for (size_t i = 0; i < exact.size(); ++i) {
    const double want = std::clamp(exact[i] / step, 0.0, 255.0);
    worst = std::max(worst, std::fabs(want - got(i).value));
  }
  return worst;
}

// Expects the codes of `layer`, up to `top`, to be the nearest ones for its
// input, whose codes range from `min` to `max`.
void ExpectNearestCodes(NetBuilder& net, const GraphDef& fused, int columns,
                        const std::string& input, float min, float max,
                        const LayerSpec& layer, float top, float bottom = 0) {
  const auto outputs =
      MustRunGraph(fused, {{"x", net.Input(40, columns)}}, {input, layer.name});
  auto exact = ExactOutputs(net.graph, layer, outputs[0],
                            (static_cast<double>(max) - min) / 255, min);
  for (double& value : exact) value -= bottom;
  EXPECT_LT(
      WorstError(exact, outputs[1], (static_cast<double>(top) - bottom) / 255),
      0.51);
}

class FusedChain : public testing::TestWithParam<int> {};

// With realistic sizes and biases and a negative input minimum, every output of
// every layer is within one quantization step of a float reference.
TEST_P(FusedChain, IsWithinOneStepOfAFloatReference) {
  const int levels = GetParam();
  if (levels > 63 &&
      QuantizationTarget(ProbeCpu(), CachedOneDnnIsaCap()) != "vnni") {
    // Without VNNI the kernels' int16 pair sums saturate at eight bits.
    GTEST_SKIP() << "this CPU is not exact with 8-bit weights";
  }
  constexpr float kMin = -1.3f, kMax = 2.9f;
  const std::vector<LayerSpec> specs = {
      {"l1", 845, 1024}, {"l2", 1024, 512}, {"l3", 512, 256}};
  const std::vector<float> tops = {7, 9, 9};
  NetBuilder net(levels, kMin, kMax);
  for (int i = 0; i < 3; ++i) net.Layer(specs[i], 0, tops[i]);
  net.Layer({"logits", 256, 2, /*relu=*/false}, -8, 8);
  net.Finish();
  const auto run = MustTransform(kFuse, net.graph);
  EXPECT_THAT(run.notes, ElementsAre("fuses 4 layers: l1, l2, l3, y"));
  const auto outputs = MustRunGraph(run.graph, {{"x", net.Input(64, 845)}},
                                    {"q", "l1", "l2", "l3", "y"});
  double step = (kMax - kMin) / 255.0, offset = kMin;
  for (int i = 0; i < 3; ++i) {
    const auto exact =
        ExactOutputs(net.graph, specs[i], outputs[i], step, offset);
    step = tops[i] / 255.0;
    offset = 0;
    EXPECT_LT(WorstError(exact, outputs[i + 1], step), 0.51) << i;
  }
  const auto logits =
      ExactOutputs(net.graph, {"logits", 256, 2, false}, outputs[3], step, 0);
  for (int i = 0; i < 128; ++i) {
    EXPECT_NEAR(outputs[4].flat<float>()(i), logits[i], 1e-3);
  }
}

INSTANTIATE_TEST_SUITE_P(WeightLevels, FusedChain, testing::Values(63, 127));

TEST(Fuse, KeepsTheRequantizesNameAndDropsWhatIsUnread) {
  const auto run = MustTransform(kFuse, OneLayer());
  EXPECT_THAT(run.graph, HasNodes(R"(
    layer = QuantizedMatMulWithBiasAndReluAndRequantize(q, layer/weights,
        layer/matmul/bias_qint32, q:1, q:2, layer/weight_min, layer/weight_max,
        layer/range/frozen_min, layer/range/frozen_max) T1=quint8 T2=qint8
        Tbias=qint32 Toutput=quint8
  )"));
  EXPECT_FALSE(HasNode(run.graph, "layer/matmul"));
  EXPECT_FALSE(HasNode(run.graph, "layer/bias"));
}

TEST(Fuse, RunningItAgainChangesNothing) {
  NetBuilder net(63, -1, 3,
                 {{{"l1", 8, 8}, 0, 5},
                  {{"inner", 8, 8, /*relu=*/false}, -4, 4},
                  {{"l3", 8, 8}, 0, 5},
                  {{"logits", 8, 2, /*relu=*/false}, -4, 4}});
  const auto once = MustTransform(kFuse, net.graph);
  const auto twice = MustTransform(kFuse, once.graph);
  EXPECT_THAT(twice.notes, ElementsAre("no layer to fuse"));
  EXPECT_EQ(SerializeGraph(once.graph).value(),
            SerializeGraph(twice.graph).value());
}

TEST(Fuse, RoundsTheBiasAtTheKernelsScaleWithTheZeroPointFoldedIn) {
  const GraphDef graph = OneLayer(-1, 3);
  const auto run = MustTransform(kFuse, graph);
  const auto bias = ValuesOf(ConstNamed(graph, "layer/bias"));
  const auto sums = ColumnSums(ConstNamed(graph, "layer/weights"));
  const auto fused = CodesNamed(run.graph, "layer/matmul/bias_qint32");
  const double scale =
      255.0 * 127.0 / (4.0 * ScalarNamed(graph, "layer/weight_max"));
  for (int j = 0; j < 4; ++j) {
    EXPECT_EQ(fused[j], std::rint(bias[j] * scale + sums[j] * 255.0 * -1 / 4));
  }
}

// The original used max(|min|, |max|) instead of max − min, and truncation. It
// kept the frozen minimum and did not fuse a layer without Relu, but still gave
// it a truncated bias.
TEST(Fuse, CompatReproducesTheOriginalsBiases) {
  NetBuilder net(63, -1, 3,
                 {{{"l1", 8, 4}, 0.25f, 5},
                  {{"l2", 4, 4}, 0, 4},
                  {{"logits", 4, 2, /*relu=*/false}, -4, 4}});
  const auto run = MustTransform(kFuseCompat, net.graph);
  EXPECT_EQ(CodesNamed(run.graph, "l1/matmul/bias_qint32"),
            CompatBiases(net.graph, "l1", 3, 255.0f * -1.0f / 4.0f));
  EXPECT_EQ(CodesNamed(run.graph, "l2/matmul/bias_qint32"),
            CompatBiases(net.graph, "l2", 5));
  EXPECT_EQ(NodeNamed(run.graph, "l1").input(7), "l1/range/frozen_min");
  const NodeDef& logits = NodeNamed(run.graph, "logits/matmul");
  EXPECT_EQ(logits.op(), "QuantizedMatMulWithBias");
  EXPECT_EQ(logits.attr().at("Tbias").type(), tensorflow::DT_QINT32);
  EXPECT_EQ(CodesNamed(run.graph, logits.input(2)),
            CompatBiases(net.graph, "logits", 4));
  MustRunGraph(run.graph, {{"x", net.Input(5, 8)}}, {"y"});
}

// The original ignored how QuantizeV2 changes the range it is asked for.
TEST(Fuse, CompatTakesTheRequestedRangeOfAQuantize) {
  NetBuilder net(63, 1, 3, {{{"layer", 8, 4}, 0, 5}});
  const auto run = MustTransform(kFuseCompat, net.graph);
  EXPECT_EQ(CodesNamed(run.graph, "layer/matmul/bias_qint32"),
            CompatBiases(net.graph, "layer", 3, 255.0f * 1.0f / 2.0f));
}

TEST(Fuse, CompatKeepsTheBiasOfALayerFedByNeitherQuantizeNorFusedLayer) {
  GraphDef graph = OneLayer();
  AddNodes("reshaped = Identity(q) T=quint8", &graph);
  MutableNode(&graph, "layer/matmul")->set_input(0, "reshaped");
  const auto run = MustTransform(kFuseCompat, graph);
  const NodeDef& layer = NodeNamed(run.graph, "layer");
  EXPECT_EQ(layer.input(2), "layer/bias");
  EXPECT_EQ(layer.attr().at("Tbias").type(), tensorflow::DT_FLOAT);
}

TEST(Fuse, ALayerWithoutReluBecomesFloatAndKeepsItsSign) {
  NetBuilder net(63, -1, 1, {{{"logits", 16, 3, /*relu=*/false}, -3, 3}});
  const auto run = MustTransform(kFuse, net.graph);
  EXPECT_EQ(NodeNamed(run.graph, "y").op(),
            "QuantizedMatMulWithBiasAndDequantize");
  EXPECT_FALSE(HasNode(run.graph, "logits"));
  ASSERT_OK_AND_ASSIGN(
      const auto outputs,
      RunGraph(run.graph, {{"x", net.Input(40, 16)}}, {"q", "y"}));
  const auto exact = ExactOutputs(net.graph, {"logits", 16, 3, false},
                                  outputs[0], 2 / 255.0, -1);
  EXPECT_LT(*std::min_element(exact.begin(), exact.end()), -0.1);
  for (size_t i = 0; i < exact.size(); ++i) {
    EXPECT_NEAR(outputs[1].flat<float>()(i), exact[i], 1e-4);
  }
}

TEST(Fuse, AnInnerLayerWithoutReluIsQuantizedAgainWithItsSign) {
  const LayerSpec inner = {"inner", 16, 8, /*relu=*/false};
  NetBuilder net(63, -1, 1, {{inner, -3, 3}, {{"last", 8, 4}, 0, 5}});
  const auto run = MustTransform(kFuse, net.graph);
  EXPECT_EQ(NodeNamed(run.graph, "inner").op(), "QuantizeV2");
  EXPECT_EQ(NodeNamed(run.graph, "inner/dequantized").op(),
            "QuantizedMatMulWithBiasAndDequantize");
  ExpectNearestCodes(net, run.graph, 16, "q", -1, 1, inner, 3, -3);
  ExpectNearestCodes(net, run.graph, 16, "inner", -3, 3, {"last", 8, 4}, 5);
}

// QuantizeV2 would widen a range below .01 by itself, and the next layer's bias
// would no longer match it.
TEST(Fuse, ANarrowInnerRangeStaysAsItIs) {
  NetBuilder net(63, -0.01f, 0.01f,
                 {{{"inner", 16, 8, /*relu=*/false}, -0.002f, 0.003f},
                  {{"last", 8, 4}, 0, 2}});
  const auto run = MustTransform(kFuse, net.graph);
  const auto outputs =
      MustRunGraph(run.graph, {{"x", net.Input(40, 16)}}, {"inner:2"});
  EXPECT_FLOAT_EQ(outputs[0].flat<float>()(0), 0.003f);
  ExpectNearestCodes(net, run.graph, 16, "inner", -0.002f, 0.003f,
                     {"last", 8, 4}, 2);
}

TEST(Fuse, ALastRequantizeWithoutReluKeepsItsName) {
  NetBuilder net(63, -1, 1);
  net.Layer({"logits", 4, 2, /*relu=*/false}, -3, 3);
  const auto run = MustTransform(kFuse, net.graph);
  EXPECT_EQ(NodeNamed(run.graph, "logits").op(), "QuantizeV2");
}

// For quint8, SCALED means [0, max(|min|, |max|)].
TEST(Fuse, TakesTheRangeOfAScaledQuantize) {
  NetBuilder net(63, -2, 3, {{{"layer", 16, 8}, 0, 5}});
  (*MutableNode(&net.graph, "q")->mutable_attr())["mode"].set_s("SCALED");
  ExpectNearestCodes(net, MustTransform(kFuse, net.graph).graph, 16, "q", 0, 3,
                     {"layer", 16, 8}, 5);
}

TEST(Fuse, LeavesADequantizeOverAnotherRangeAlone) {
  NetBuilder net(63, -1, 1, {{{"logits", 4, 2, /*relu=*/false}, -3, 3}});
  AddNodes("six = float{6}", &net.graph);
  MutableNode(&net.graph, "y")->set_input(2, "six");
  const auto run = MustTransform(kFuse, net.graph);
  EXPECT_EQ(NodeNamed(run.graph, "y").op(), "Dequantize");
}

TEST(Fuse, AFrozenMinimumAboveZeroBehindReluBecomesZero) {
  NetBuilder net(63, 0, 3, {{{"l1", 16, 8}, 0.5f, 5}, {{"l2", 8, 4}, 0, 5}});
  const auto run = MustTransform(kFuse, net.graph);
  EXPECT_EQ(ScalarNamed(run.graph, NodeNamed(run.graph, "l1").input(7)), 0);
  ExpectNearestCodes(net, run.graph, 16, "l1", 0, 5, {"l2", 8, 4}, 5);
}

// QuantizeV2 without narrow_range writes −128s…127s for weights of step s.
TEST(Fuse, RepairsAWeightRangeThatIsNotSymmetric) {
  NetBuilder net(63, -1, 3, {{{"layer", 16, 8}, 0, 5}});
  GraphDef skewed = net.graph;
  const float top = ScalarNamed(net.graph, "layer/weight_max");
  *MutableNode(&skewed, "layer/weight_min") =
      MakeScalarConst("layer/weight_min", -top * 128 / 127);
  const auto run = MustTransform(kFuse, skewed);
  EXPECT_EQ(ScalarNamed(run.graph, NodeNamed(run.graph, "layer").input(5)),
            -top);
  ExpectNearestCodes(net, run.graph, 16, "q", -1, 3, {"layer", 16, 8}, 5);
}

// Dynamic graphs of Requant's quantizer feed the op SCALED codes with min 0.
TEST(Fuse, TakesAScaledInputWithConstantRange) {
  NetBuilder net(63, 0, 3, {{{"layer", 16, 8}, 0, 5}});
  AddNodes("zero = float{0}; three = float{3}", &net.graph);
  NodeDef* matmul = MutableNode(&net.graph, "layer/matmul");
  (*matmul->mutable_attr())["input_quant_mode"].set_s("SCALED");
  matmul->set_input(3, "zero");
  matmul->set_input(4, "three");
  const auto run = MustTransform(kFuse, net.graph);
  EXPECT_EQ(NodeNamed(run.graph, "layer").attr().at("input_quant_mode").s(),
            "SCALED");
  ExpectNearestCodes(net, run.graph, 16, "q", 0, 3, {"layer", 16, 8}, 5);
}

TEST(Fuse, AGraphWithoutQuantizedLayersStaysAsItIs) {
  const GraphDef graph = GraphFromText("a = NoOp; r = Requantize");
  const auto run = MustTransform(kFuse, graph);
  EXPECT_EQ(run.graph.DebugString(), graph.DebugString());
}

TEST(Fuse, RefusesWhatIsNotConstantOrNotOfItsForm) {
  for (const auto& [lines, why] :
       Cases{{"layer/range/frozen_min = RequantizationRange",
              "the output range of \"layer\" is not constant; run "
              "freeze_requantization_ranges first"},
             {"x_min/frozen_min_only = Min",
              "run freeze_min and freeze_max first"},
             {"layer/weights = Placeholder", "the weights of \"layer/matmul\""},
             {"layer/bias = float<3>{1}", "the bias of \"layer/matmul\""},
             {"layer/bias = float<4>{1e9}", "bias 0 of \"layer/matmul\""},
             {"layer/bias = float<4>{nan}", "bias 0 of \"layer/matmul\""},
             {"layer/range/frozen_max = float{0}", "has an empty range"},
             {"layer/range/frozen_max = float{0}", "excluded_nodes"},
             // The output of this Relu layer is never positive.
             {"layer/range/frozen_min = float{-2}; layer/range/frozen_max = "
              "float{-1}",
              "empty range"}}) {
    EXPECT_THAT(TransformError(kFuse, WithNodes(OneLayer(), lines)),
                HasSubstr(why));
  }
}

TEST(Fuse, RefusesAttributesThatTheFusedKernelDoesNotHave) {
  GraphDef graph = OneLayer();
  (*MutableNode(&graph, "layer/matmul")->mutable_attr())["transpose_b"].set_b(
      true);
  EXPECT_THAT(TransformError(kFuse, graph), HasSubstr("transposed"));
  graph = OneLayer();
  (*MutableNode(&graph, "layer")->mutable_attr())["out_type"].set_type(
      tensorflow::DT_QINT8);
  EXPECT_THAT(TransformError(kFuse, graph),
              HasSubstr("\"layer\" has out_type = qint8"));
}

TEST(Fuse, KeepsAMatMulThatSomethingElseReads) {
  GraphDef graph = OneLayer();
  AddNodes("other = Identity(layer/matmul) T=qint32", &graph);
  const auto run = MustTransform(kFuse, graph);
  EXPECT_TRUE(HasNode(run.graph, "layer/matmul"));
  EXPECT_EQ(NodeNamed(run.graph, "layer").op(),
            "QuantizedMatMulWithBiasAndReluAndRequantize");
}

TEST(Fuse, KeepsControlInputs) {
  NetBuilder net(
      63, -1, 1,
      {{{"layer", 4, 4}, 0, 5}, {{"logits", 4, 2, /*relu=*/false}, -3, 3}});
  for (const char* node : {"layer/matmul", "y"}) {
    MutableNode(&net.graph, node)->add_input("^x");
  }
  const auto run = MustTransform(kFuse, net.graph);
  EXPECT_EQ(NodeNamed(run.graph, "layer").input(9), "^x");
  EXPECT_EQ(NodeNamed(run.graph, "y").input(9), "^x");
}

TEST(Fuse, EveryDequantizeThatIsAnOutputKeepsItsName) {
  NetBuilder net(63, -1, 1, {{{"logits", 4, 2, /*relu=*/false}, -3, 3}});
  NodeDef copy = NodeNamed(net.graph, "y");
  copy.set_name("y2");
  *net.graph.add_node() = copy;
  const auto run = MustTransform(kFuse, net.graph, {"x"}, {"y", "y2"});
  EXPECT_EQ(NodeNamed(run.graph, "y2").op(), "Identity");
  const auto outputs =
      MustRunGraph(run.graph, {{"x", net.Input(5, 4)}}, {"y", "y2"});
  EXPECT_EQ(outputs[0].flat<float>()(3), outputs[1].flat<float>()(3));
}

}  // namespace
}  // namespace requant::fuse_quantized_matmul_and_requantize_test
