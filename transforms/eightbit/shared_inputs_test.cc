#include "transforms/eightbit/shared_inputs.h"

#include <cmath>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
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

// Returns six steps of a loop, unrolled: h' = tanh(x·w + h·u + b).
GraphDef UnrolledLoop() {
  std::string text = absl::StrCat(RandomConst("w", kColumns, kUnits, 1),
                                  RandomConst("u", kUnits, kUnits, 2),
                                  "b = float<8>{", RandomValues(kUnits, 3),
                                  "}\n", "h0 = Placeholder dtype=float\n");
  for (int step = 1; step <= 6; ++step) {
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

// Returns towers, of which each gives larger numbers than the one before, and
// one head for all. All but the first tower end with `op`.
GraphDef Towers(const std::string& op = "Relu", int towers = 5) {
  std::string text = RandomConst("v", kUnits, 2, 30);
  std::vector<std::string> heads;
  for (int i = 1; i <= towers; ++i) {
    absl::StrAppend(&text,
                    RandomConst(absl::StrCat("w", i), kColumns, kUnits, i), "x",
                    i, " = Placeholder dtype=float\n",                  //
                    "m", i, " = MatMul(x", i, ", w", i, ") T=float\n",  //
                    "r", i, " = ", i == 1 ? "Relu" : op, "(m", i,
                    ") T=float\n",  //
                    "head", i, " = MatMul(r", i, ", v) T=float\n");
    heads.push_back(absl::StrCat("head", i));
  }
  return GraphFromText(absl::StrCat(
      text, "all = AddN(", absl::StrJoin(heads, ", "), ") T=float N=", towers));
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
    scale *= 1.25f;
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
  const GraphDef quantized = Quantize(graph, "h6");
  EXPECT_THAT(NodesOf(quantized, kFusedFloat), SizeIs(12));
  EXPECT_THAT(CodesOfWeights(quantized),
              UnorderedElementsAre("w_qint8_const", "u_qint8_const"));
  EXPECT_EQ(NodeNamed(quantized, "hub1").input(kBias),
            NodeNamed(quantized, "hub6").input(kBias));
  EXPECT_LT(RelativeError(graph, quantized, "h6"), 0.05);
}

TEST(SharedInputs, GiveOutputsOfLayersOneRange) {
  const GraphDef graph = Towers();
  const GraphDef quantized = Quantize(graph, "all");
  EXPECT_THAT(CodesOfWeights(quantized), SizeIs(5 + 1));
  const auto max_of = [&](const std::string& layer) {
    const NodeDef& node = NodeNamed(quantized, layer + "_eightbit_requantize");
    return ScalarNamed(quantized, node.input(kInputs + 1));
  };
  EXPECT_EQ(max_of("m1"), max_of("m5"));
  EXPECT_LT(RelativeError(graph, quantized, "all"), 0.05);
}

TEST(SharedInputs, AreApartIfOneComesWithCodesAndTheOtherNot) {
  const GraphDef graph = Towers("Neg");
  const GraphDef quantized = Quantize(graph, "all");
  EXPECT_THAT(CodesOfWeights(quantized), SizeIs(5 + 2));
  EXPECT_LT(RelativeError(graph, quantized, "all"), 0.05);
}

TEST(SharedInputs, KeepRangesOfTheirOwnIfThereAreFew) {
  const GraphDef quantized = Quantize(Towers("Relu", 4), "all");
  EXPECT_THAT(CodesOfWeights(quantized), SizeIs(4 + 4));
}

TEST(SharedInputs, LeaveARelu6ItsSixOnlyIfAllOfTheGroupEndThere) {
  for (const auto& [op, all] : std::vector<std::pair<std::string, bool>>{
           {"Relu", false}, {"Relu6", true}}) {
    GraphDef graph = Towers(op);
    MutableNode(&graph, "r1")->set_op("Relu6");
    const GraphIndex index = GraphIndex::Create(&graph).value();
    const FloatLayers found = FindFloatLayers(index);
    const SharedInputs shared = FindSharedInputs(found.layers);
    ASSERT_THAT(shared.groups, SizeIs(1));
    EXPECT_THAT(shared.groups[0].tensors,
                ElementsAre("r1:0", "r2:0", "r3:0", "r4:0", "r5:0"));
    EXPECT_THAT(shared.groups[0].layers, SizeIs(1));
    EXPECT_THAT(shared.groups[0].readers, SizeIs(5));
    EXPECT_EQ(shared.groups[0].all_relu6, all);
    EXPECT_EQ(shared.Find("x1:0"), nullptr);
  }
}

}  // namespace
}  // namespace requant::shared_inputs_test
