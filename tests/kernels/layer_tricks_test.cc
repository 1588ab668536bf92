// Layers that the int8 kernels do right only when they are fed in a certain
// way: dynamic ranges below zero, one range per block of the input, and columns
// too wide for one.

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/kernels/int8_layer.h"
#include "tests/kernels/kernel_graph.h"

namespace requant::layer_tricks_test {
namespace {

const AttributeText kQuint8 = {"T", "type: DT_QUINT8"};
const AttributeText kMinFirst = {"mode", "s: 'MIN_FIRST'"};

std::vector<float> RandomFloats(int count, float min, float max, int seed) {
  std::mt19937 random(seed);
  std::vector<float> values;
  for (int i = 0; i < count; ++i) {
    values.push_back(min + random() / 0x1p32 * (max - min));
  }
  return values;
}

std::string AddQuantize(const std::string& name, const std::string& input,
                        const std::string& min, const std::string& max,
                        KernelGraph* graph) {
  return graph->Add(name, "QuantizeV2", {input, min, max},
                    {kQuint8, kMinFirst});
}

// Of columns.
void AddConcat(const std::string& name, std::vector<std::string> inputs,
               KernelGraph* graph) {
  const std::string count = absl::StrCat("i: ", inputs.size());
  inputs.push_back(graph->Constant(name + "_axis", IntTensor({}, {1})));
  graph->Add(name, "ConcatV2", inputs, {kQuint8, {"N", count}});
}

// The layer's matmul named "y" with codes from `codes`, as SCALED.
void AddLayer(const std::string& op, const Int8Layer& layer,
              const std::string& codes, const std::string& bias,
              const std::string& max_a, KernelGraph* graph) {
  const bool to_float = op == "QuantizedMatMulWithBiasAndDequantize";
  std::vector<std::string> inputs = {
      codes,
      graph->Constant(
          "b", CodeTensor(tensorflow::DT_QINT8, {layer.depth, layer.columns},
                          layer.weights)),
      bias,
      graph->Constant("min_a", 0),
      max_a,
      graph->Constant("min_b", -layer.weight_max),
      graph->Constant("max_b", layer.weight_max)};
  std::vector<AttributeText> attributes = {
      {"T1", "type: DT_QUINT8"},
      {"T2", "type: DT_QINT8"},
      {"Toutput", to_float ? "type: DT_FLOAT" : "type: DT_QINT32"},
      {"input_quant_mode", "s: 'SCALED'"}};
  if (to_float) {
    attributes.emplace_back("Tbias", "type: DT_FLOAT");
    inputs.push_back(graph->Constant("min_out", 0));
    inputs.push_back(graph->Constant("max_out", 1));
  }
  graph->Add("y", op, inputs, attributes);
}

// A layer whose input range is found in each batch: the codes have the batch's
// minimum for zero, the matmul is told a range from 0 to max - min, and the
// bias has what the minimum adds to each column.
void BuildDynamicLayer(const Int8Layer& layer, const Tensor& x,
                       KernelGraph* graph) {
  graph->Feed("x", x);
  graph->Constant("axes", IntTensor({2}, {0, 1}));
  for (const char* op : {"Min", "Max"}) {
    graph->Add(op, op, {"x", "axes"}, {kFloat});
  }
  AddQuantize("codes", "x", "Min", "Max", graph);
  std::vector<float> sums;
  for (int sum : ColumnSums(layer)) sums.push_back(sum * layer.WeightScale());
  graph->Constant("sums", FloatTensor({layer.columns}, sums));
  graph->Constant("bias", FloatTensor({layer.columns}, layer.bias));
  graph->Add("width", "Sub", {"codes:2", "codes:1"}, {kFloat});
  graph->Add("shift", "Mul", {"sums", "codes:1"}, {kFloat});
  graph->Add("shifted_bias", "AddV2", {"bias", "shift"}, {kFloat});
  AddLayer("QuantizedMatMulWithBiasAndRelu", layer, "codes", "shifted_bias",
           "width", graph);
}

// The graph's qint32 outputs against exact arithmetic on the codes, in units.
double ErrorOfDynamicLayer(Int8Layer layer, KernelGraph* graph) {
  const auto outputs =
      graph->Run({"codes", "codes:1", "codes:2", "y", "y:1", "y:2"});
  EXPECT_OK(outputs);
  if (!outputs.ok()) return INFINITY;
  layer.codes = Codes((*outputs)[0]);
  layer.input_min = Floats((*outputs)[1])[0];
  layer.input_max = Floats((*outputs)[2])[0];
  std::vector<double> expected = ExactOutputs(layer);
  for (double& value : expected) value = std::max(value, 0.0);
  std::vector<double> values;
  for (int code : Codes((*outputs)[3])) {
    values.push_back(code * (Floats((*outputs)[5])[0] / 0x1p31));
  }
  return LargestDifference(values, expected) / layer.SumScale();
}

TEST(DynamicLayer, IsRightForNegativeInputs) {
  const Int8Layer layer = RandomLayer(0, 1);
  const int count = layer.rows * layer.depth;
  KernelGraph graph;
  BuildDynamicLayer(
      layer,
      FloatTensor({layer.rows, layer.depth}, RandomFloats(count, -1.5, 2.5, 4)),
      &graph);
  EXPECT_LE(ErrorOfDynamicLayer(layer, &graph), 0.55);
}

// The range that the matmul is told is the same, the bias is another.
TEST(DynamicLayer, IsRightForTheNextBatchOfTheSameWidth) {
  const Int8Layer layer = RandomLayer(0, 1);
  std::vector<float> x = RandomFloats(layer.rows * layer.depth, -1, 3, 4);
  x[0] = -1;
  x[1] = 3;
  KernelGraph graph;
  BuildDynamicLayer(layer, FloatTensor({layer.rows, layer.depth}, x), &graph);
  EXPECT_LE(ErrorOfDynamicLayer(layer, &graph), 0.55);
  for (float& value : x) value -= 2;
  graph.FeedAnew("x", FloatTensor({layer.rows, layer.depth}, x));
  EXPECT_LE(ErrorOfDynamicLayer(layer, &graph), 0.55);
}

// An input of two blocks, each quantized in a range of its own.
constexpr int kBlockDepth = 64;
constexpr float kBlockMin[2] = {-0.5, 0};
constexpr float kBlockMax[2] = {0.5, 4};

double BlockScale(int block) {
  return (kBlockMax[block] - kBlockMin[block]) / 255;
}

// One layer that reads both blocks' codes at the scale of the second. Its
// weights are those of a float layer, with what makes up for a block's scale
// folded into rows, and for its zero point into the bias.
struct FoldedLayer {
  Int8Layer layer;
  // What the weight codes stand for in the float layer, and its bias.
  std::vector<double> weights;
  std::vector<float> bias;
};

FoldedLayer RandomFoldedLayer() {
  FoldedLayer folded;
  folded.layer = RandomLayer(0, 255 * BlockScale(1));
  folded.bias = folded.layer.bias;
  std::vector<double> bias(folded.bias.begin(), folded.bias.end());
  for (int i = 0; i < folded.layer.weights.size(); ++i) {
    const int block = i / (kBlockDepth * folded.layer.columns);
    const double weight = folded.layer.weights[i] * folded.layer.WeightScale();
    const double zero_point = -kBlockMin[block] / BlockScale(block);
    bias[i % folded.layer.columns] -= BlockScale(1) * zero_point * weight;
    folded.weights.push_back(weight * BlockScale(1) / BlockScale(block));
  }
  folded.layer.bias.assign(bias.begin(), bias.end());
  return folded;
}

// The float layer's outputs for inputs that these codes stand for.
std::vector<double> FloatOutputs(const FoldedLayer& folded,
                                 const std::vector<int>& codes) {
  const Int8Layer& layer = folded.layer;
  std::vector<double> outputs;
  for (int i = 0; i < layer.rows; ++i) {
    for (int j = 0; j < layer.columns; ++j) {
      double sum = folded.bias[j];
      for (int k = 0; k < layer.depth; ++k) {
        const int block = k / kBlockDepth;
        const double x =
            kBlockMin[block] + codes[i * layer.depth + k] * BlockScale(block);
        sum += x * folded.weights[k * layer.columns + j];
      }
      outputs.push_back(sum);
    }
  }
  return outputs;
}

TEST(BlockRanges, AreRightWhenFoldedIntoOneMatMul) {
  const FoldedLayer folded = RandomFoldedLayer();
  const Int8Layer& layer = folded.layer;
  KernelGraph graph;
  for (int i : {0, 1}) {
    const std::string x = absl::StrCat("x", i);
    graph.Feed(x, FloatTensor({layer.rows, kBlockDepth},
                              RandomFloats(layer.rows * kBlockDepth,
                                           kBlockMin[i], kBlockMax[i], 5)));
    AddQuantize(absl::StrCat("codes", i), x,
                graph.Constant(x + "_min", kBlockMin[i]),
                graph.Constant(x + "_max", kBlockMax[i]), &graph);
  }
  AddConcat("codes", {"codes0", "codes1"}, &graph);
  AddLayer("QuantizedMatMulWithBiasAndDequantize", layer, "codes",
           graph.Constant("bias", FloatTensor({layer.columns}, layer.bias)),
           graph.Constant("max_a", layer.input_max), &graph);
  ASSERT_OK_AND_ASSIGN(const auto outputs, graph.Run({"y", "codes"}));
  const std::vector<float> values = Floats(outputs[0]);
  EXPECT_LE(LargestDifference(std::vector<double>(values.begin(), values.end()),
                              FloatOutputs(folded, Codes(outputs[1]))),
            layer.SumScale());
}

// A column of eight times the range that one code can tell apart finely.
TEST(WideColumn, IsFineWhenSplitIntoSaturatingColumns) {
  constexpr int kRows = 64;
  constexpr int kPieces = 8;
  constexpr float kFineMax = 1;
  const std::vector<float> x = RandomFloats(kRows, 0, kPieces * kFineMax, 9);
  KernelGraph graph;
  graph.Feed("x", FloatTensor({kRows, 1}, x));
  graph.Constant("zero", 0);
  graph.Constant("fine_max", kFineMax);
  std::vector<std::string> pieces;
  for (int i = 0; i < kPieces; ++i) {
    const std::string piece = absl::StrCat("piece", i);
    graph.Add(piece, "Sub",
              {"x", graph.Constant(piece + "_start", i * kFineMax)}, {kFloat});
    pieces.push_back(
        AddQuantize(piece + "_codes", piece, "zero", "fine_max", &graph));
  }
  AddConcat("codes", pieces, &graph);
  Int8Layer layer;
  layer.depth = kPieces;
  layer.columns = 1;
  layer.input_max = kFineMax;
  layer.weights.assign(kPieces, 60);
  layer.bias = {0.25};
  AddLayer("QuantizedMatMulWithBiasAndDequantize", layer, "codes",
           graph.Constant("bias", FloatTensor({1}, layer.bias)), "fine_max",
           &graph);
  ASSERT_OK_AND_ASSIGN(const auto outputs, graph.Run({"y"}));
  const std::vector<float> values = Floats(outputs[0]);
  const double weight = 60 * layer.WeightScale();
  for (int i = 0; i < kRows; ++i) {
    // Half of the fine step, though the range is eight times as wide.
    EXPECT_NEAR(values[i], x[i] * weight + 0.25,
                0.51 * layer.InputScale() * weight);
  }
}

}  // namespace
}  // namespace requant::layer_tricks_test
