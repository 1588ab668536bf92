#include "transforms/eightbit/shared_inputs.h"

#include <cmath>
#include <random>

#include "absl/strings/match.h"
#include "absl/types/span.h"
#include "ranges/channel_moments.h"
#include "ranges/range_table.h"
#include "transforms/layers/calibration_tensors.h"
#include "transforms/layers/quantized_layer.h"
#include "transforms/testing/testing.h"

namespace requant::shared_inputs_test {
namespace {

using Feeds = std::vector<std::pair<std::string, Tensor>>;

constexpr int kColumns = 6;
constexpr int kUnits = 8;
constexpr int kRecords = 500;

// Returns `count` numbers, written as the values of a Const.
std::string RandomValues(int count, int seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> value(-1, 1);
  std::string text;
  for (int i = 0; i < count; ++i) {
    absl::StrAppend(&text, i > 0 ? "," : "", value(random));
  }
  return text;
}

std::string RandomConst(const std::string& name, int rows, int columns,
                        int seed) {
  return absl::StrCat(name, " = float<", rows, ",", columns, ">{",
                      RandomValues(rows * columns, seed), "}\n");
}

// Returns three steps of a loop, unrolled: h' = tanh(x·w + h·u + b).
GraphDef UnrolledLoop() {
  std::string text = absl::StrCat(RandomConst("w", kColumns, kUnits, 1),
                                  RandomConst("u", kUnits, kUnits, 2),
                                  "b = float<8>{", RandomValues(kUnits, 3),
                                  "}\n", "h0 = Placeholder dtype=float\n");
  for (int step = 1; step <= 3; ++step) {
    absl::StrAppend(&text, "x", step, " = Placeholder dtype=float\n",   //
                    "xw", step, " = MatMul(x", step, ", w) T=float\n",  //
                    "hu", step, " = MatMul(h", step - 1, ", u) T=float\n",
                    "hub", step, " = BiasAdd(hu", step, ", b) T=float\n", "sum",
                    step, " = AddV2(xw", step, ", hub", step,
                    ") T=float\n",  //
                    "h", step, " = Tanh(sum", step, ") T=float\n");
  }
  return GraphFromText(text);
}

// Returns two towers, of which the second gives larger numbers, and one head
// for both.
GraphDef TwoTowers(const std::string& second = "Relu") {
  return GraphFromText(absl::StrCat(RandomConst("w1", kColumns, kUnits, 1),
                                    RandomConst("w2", kColumns, kUnits, 2),
                                    RandomConst("v", kUnits, 2, 3),
                                    R"(
    x1 = Placeholder dtype=float; x2 = Placeholder dtype=float
    m1 = MatMul(x1, w1) T=float; r1 = Relu(m1) T=float
    m2 = MatMul(x2, w2) T=float; r2 = )",
                                    second, R"((m2) T=float
    head1 = MatMul(r1, v) T=float; head2 = MatMul(r2, v) T=float
    both = Sub(head1, head2) T=float
  )"));
}

// Returns records in which the later inputs have the larger numbers.
Feeds Records(const GraphDef& graph, int seed) {
  Feeds feeds;
  float scale = 1;
  for (const std::string& name : NodesOf(graph, "Placeholder")) {
    std::mt19937 random(++seed);
    std::normal_distribution<float> normal(0, scale);
    Tensor tensor(tensorflow::DT_FLOAT,
                  {kRecords, absl::StartsWith(name, "x") ? kColumns : kUnits});
    auto flat = tensor.flat<float>();
    for (int64_t i = 0; i < flat.size(); ++i) flat(i) = normal(random);
    feeds.emplace_back(name, tensor);
    scale *= 2;
  }
  return feeds;
}

Tensor Fetch(const GraphDef& graph, const Feeds& feeds,
             const std::string& name) {
  for (const auto& [fed, tensor] : feeds) {
    if (fed == name) return tensor;
  }
  return MustRunGraph(graph, feeds, {name})[0];
}

RangeTable Calibrate(GraphDef graph) {
  const Feeds feeds = Records(graph, 7);
  RangeTable table;
  const GraphIndex index = GraphIndex::Create(&graph).value();
  for (const CalibrationTensor& observed : FindCalibrationTensors(index, {})) {
    const Tensor tensor = Fetch(graph, feeds, observed.node);
    const absl::Span<const float> values(tensor.flat<float>().data(),
                                         tensor.NumElements());
    const int64_t channels = tensor.dim_size(1);
    RangeEntry& entry = table.FindOrAdd(observed.node);
    entry.records = kRecords;
    entry.AddRange(*std::min_element(values.begin(), values.end()),
                   *std::max_element(values.begin(), values.end()), {});
    entry.histogram.emplace();
    entry.histogram->Add(values);
    entry.channel_mins.assign(values.begin(), values.begin() + channels);
    entry.channel_maxs = entry.channel_mins;
    for (size_t i = 0; i < values.size(); ++i) {
      float& min = entry.channel_mins[i % channels];
      float& max = entry.channel_maxs[i % channels];
      min = std::min(min, values[i]);
      max = std::max(max, values[i]);
    }
    entry.moments = ChannelMoments::Of(values, channels);
  }
  return table;
}

GraphDef Quantize(const GraphDef& graph, const std::string& output) {
  const std::string path = WriteTestFile(
      "shared.ranges", SerializeRangeTable(Calibrate(graph)).value());
  return MustTransform(
             absl::StrCat("quantize_static(ranges_file=\"", path, "\")"), graph,
             {}, {output})
      .graph;
}

// Returns the root mean squared difference as a share of the root mean square.
double RelativeError(const GraphDef& graph, const GraphDef& quantized,
                     const std::string& output) {
  const Feeds feeds = Records(graph, 70);
  const std::vector<float> expected = ValuesOf(Fetch(graph, feeds, output));
  const std::vector<float> actual = ValuesOf(Fetch(quantized, feeds, output));
  EXPECT_EQ(expected.size(), actual.size());
  double error = 0, squares = 0;
  for (size_t i = 0; i < std::min(expected.size(), actual.size()); ++i) {
    error += (expected[i] - actual[i]) * (expected[i] - actual[i]);
    squares += expected[i] * expected[i];
  }
  return std::sqrt(error / squares);
}

std::vector<std::string> CodesOfWeights(const GraphDef& graph) {
  std::vector<std::string> names;
  for (const std::string& name : NodesOf(graph, "Const")) {
    if (absl::StrContains(name, "_qint8_const")) names.push_back(name);
  }
  return names;
}

TEST(SharedInputs, GiveAllStepsOfAnUnrolledLoopTheSameCodes) {
  const GraphDef graph = UnrolledLoop();
  const GraphDef quantized = Quantize(graph, "h3");
  EXPECT_THAT(NodesOf(quantized, kFusedFloat), SizeIs(6));
  EXPECT_THAT(CodesOfWeights(quantized),
              UnorderedElementsAre("w_qint8_const", "u_qint8_const"));
  EXPECT_EQ(NodeNamed(quantized, "hub1").input(kBias),
            NodeNamed(quantized, "hub3").input(kBias));
  EXPECT_LT(RelativeError(graph, quantized, "h3"), 0.05);
}

TEST(SharedInputs, GiveOutputsOfLayersOneRange) {
  const GraphDef graph = TwoTowers();
  const GraphDef quantized = Quantize(graph, "both");
  EXPECT_THAT(CodesOfWeights(quantized),
              UnorderedElementsAre("w1_qint8_const", "w2_qint8_const",
                                   "v_qint8_const"));
  const auto max_of = [&](const std::string& layer) {
    const NodeDef& node = NodeNamed(quantized, layer + "_eightbit_requantize");
    return ScalarNamed(quantized, node.input(kInputs + 1));
  };
  EXPECT_EQ(max_of("m1"), max_of("m2"));
  EXPECT_LT(RelativeError(graph, quantized, "both"), 0.05);
}

TEST(SharedInputs, AreApartIfOneComesWithCodesAndTheOtherNot) {
  const GraphDef graph = TwoTowers("Neg");
  const GraphDef quantized = Quantize(graph, "both");
  EXPECT_THAT(CodesOfWeights(quantized), SizeIs(4));
  EXPECT_LT(RelativeError(graph, quantized, "both"), 0.05);
}

TEST(SharedInputs, LeaveARelu6ItsSixOnlyIfAllOfTheGroupEndThere) {
  for (const auto& [second, all] : std::vector<std::pair<std::string, bool>>{
           {"Relu", false}, {"Relu6", true}}) {
    GraphDef graph = TwoTowers(second);
    MutableNode(&graph, "r1")->set_op("Relu6");
    const GraphIndex index = GraphIndex::Create(&graph).value();
    const FloatLayers found = FindFloatLayers(index);
    const SharedInputs shared = FindSharedInputs(found.layers);
    ASSERT_THAT(shared.groups, SizeIs(1));
    EXPECT_THAT(shared.groups[0].tensors, ElementsAre("r1:0", "r2:0"));
    EXPECT_THAT(shared.groups[0].layers, SizeIs(1));
    EXPECT_THAT(shared.groups[0].readers, SizeIs(2));
    EXPECT_EQ(shared.groups[0].all_relu6, all);
    EXPECT_EQ(shared.Find("x1:0"), nullptr);
  }
}

}  // namespace
}  // namespace requant::shared_inputs_test
