// Layers that the int8 kernels do right only when they are fed in a certain
// way: dynamic ranges below zero, one range per block of the input, and columns
// too wide for one.

#include <cmath>
#include <random>

#include "absl/strings/str_join.h"
#include "absl/strings/substitute.h"
#include "tests/kernels/int8_layer.h"

namespace requant::layer_tricks_test {
namespace {

std::vector<float> RandomFloats(int count, float min, float max, int seed) {
  std::mt19937 random(seed);
  std::vector<float> values;
  for (int i = 0; i < count; ++i) {
    values.push_back(min + random() / 0x1p32 * (max - min));
  }
  return values;
}

std::string QuantizeLine(const std::string& name, const std::string& inputs) {
  return absl::StrCat(name, " = QuantizeV2(", inputs,
                      ") T=quint8 mode='MIN_FIRST'\n");
}

// Joins columns of codes as "codes".
std::string ConcatLines(const std::vector<std::string>& inputs) {
  return absl::Substitute(
      "axis = int32{1}\ncodes = ConcatV2($0, axis) T=quint8 N=$1\n",
      absl::StrJoin(inputs, ", "), inputs.size());
}

// Adds the layer's weights, and its matmul as "y", as SCALED with the input
// "codes" from 0 to `max_a`.
void AddLayer(const std::string& op, const Int8Layer& layer,
              const std::string& bias, const std::string& max_a,
              KernelGraph* graph) {
  graph->Constant("b", CodeTensor(tensorflow::DT_QINT8,
                                  {layer.depth, layer.columns}, layer.weights));
  graph->Constant("bias", TensorOf<float>({layer.columns}, layer.bias));
  graph->Constant("min_b", -layer.weight_max);
  graph->Constant("max_b", layer.weight_max);
  const bool to_float = op == kWithDequantize;
  graph->Add(absl::Substitute(
      R"(min_a = float{0}
         one = float{1}
         y = $0(codes, b, $1, min_a, $2, min_b, max_b$3) T1=quint8 T2=qint8
             input_quant_mode='SCALED' $4)",
      op, bias, max_a, to_float ? ", min_a, one" : "",
      to_float ? "Toutput=float Tbias=float" : "Toutput=qint32"));
}

// Builds a layer whose input range is found in each batch: the codes have the
// batch's minimum for zero, the matmul gets a range from 0 to max - min, and
// the bias has what the minimum adds to each column.
void BuildDynamicLayer(const Int8Layer& layer, const Tensor& x,
                       KernelGraph* graph) {
  graph->Feed("x", x);
  std::vector<float> sums;
  for (int sum : ColumnSums(layer)) sums.push_back(sum * layer.WeightScale());
  graph->Constant("sums", TensorOf<float>({layer.columns}, sums));
  graph->Add(R"(axes = int32<2>{0,1}
                min = Min(x, axes) T=float
                max = Max(x, axes) T=float)");
  graph->Add(QuantizeLine("codes", "x, min, max"));
  graph->Add(R"(width = Sub(codes:2, codes:1) T=float
                shift = Mul(sums, codes:1) T=float
                shifted_bias = AddV2(bias, shift) T=float)");
  AddLayer(kWithRelu, layer, "shifted_bias", "width", graph);
}

// Returns the error of the qint32 outputs on the codes, in units.
double ErrorOfDynamicLayer(Int8Layer layer, KernelGraph* graph) {
  const auto outputs =
      graph->Run({"codes", "codes:1", "codes:2", "y", "y:1", "y:2"});
  EXPECT_OK(outputs);
  if (!outputs.ok()) return INFINITY;
  layer.codes = Codes((*outputs)[0]);
  layer.input_min = ValuesOf((*outputs)[1])[0];
  layer.input_max = ValuesOf((*outputs)[2])[0];
  std::vector<double> values;
  for (int code : Codes((*outputs)[3])) {
    values.push_back(code * (ValuesOf((*outputs)[5])[0] / 0x1p31));
  }
  return LargestDifference(values, WithoutNegatives(ExactOutputs(layer))) /
         layer.SumScale();
}

TEST(DynamicLayer, IsRightForNegativeInputs) {
  const Int8Layer layer = RandomLayer(0, 1);
  const int count = layer.rows * layer.depth;
  KernelGraph graph;
  BuildDynamicLayer(layer,
                    TensorOf<float>({layer.rows, layer.depth},
                                    RandomFloats(count, -1.5, 2.5, 4)),
                    &graph);
  EXPECT_LE(ErrorOfDynamicLayer(layer, &graph), 0.55);
}

// The range that the matmul gets is the same, the bias is another.
TEST(DynamicLayer, IsRightForTheNextBatchOfTheSameWidth) {
  const Int8Layer layer = RandomLayer(0, 1);
  std::vector<float> x = RandomFloats(layer.rows * layer.depth, -1, 3, 4);
  x[0] = -1;
  x[1] = 3;
  KernelGraph graph;
  BuildDynamicLayer(layer, TensorOf<float>({layer.rows, layer.depth}, x),
                    &graph);
  EXPECT_LE(ErrorOfDynamicLayer(layer, &graph), 0.55);
  for (float& value : x) value -= 2;
  graph.FeedAnew("x", TensorOf<float>({layer.rows, layer.depth}, x));
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

// Returns the float layer's outputs for inputs that these codes stand for.
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
    graph.Feed(x, TensorOf<float>({layer.rows, kBlockDepth},
                                  RandomFloats(layer.rows * kBlockDepth,
                                               kBlockMin[i], kBlockMax[i], 5)));
    graph.Constant(x + "_min", kBlockMin[i]);
    graph.Constant(x + "_max", kBlockMax[i]);
    graph.Add(QuantizeLine(absl::StrCat("codes", i),
                           absl::Substitute("$0, $0_min, $0_max", x)));
  }
  graph.Add(ConcatLines({"codes0", "codes1"}));
  graph.Constant("max_a", layer.input_max);
  AddLayer(kWithDequantize, layer, "bias", "max_a", &graph);
  ASSERT_OK_AND_ASSIGN(const auto outputs, graph.Run({"y", "codes"}));
  const std::vector<float> values = ValuesOf(outputs[0]);
  EXPECT_LE(LargestDifference(std::vector<double>(values.begin(), values.end()),
                              FloatOutputs(folded, Codes(outputs[1]))),
            layer.SumScale());
}

// A column of eight times the range that one code can resolve finely.
TEST(WideColumn, IsFineWhenSplitIntoSaturatingColumns) {
  constexpr int kRows = 64;
  constexpr int kPieces = 8;
  const std::vector<float> x = RandomFloats(kRows, 0, kPieces, 9);
  KernelGraph graph;
  graph.Feed("x", TensorOf<float>({kRows, 1}, x));
  graph.Add("zero = float{0}; fine_max = float{1}");
  std::vector<std::string> pieces;
  for (int i = 0; i < kPieces; ++i) {
    pieces.push_back(absl::StrCat("codes_", i));
    graph.Add(absl::Substitute(
        "start_$0 = float{$0}\npiece_$0 = Sub(x, start_$0) T=float", i));
    graph.Add(QuantizeLine(pieces.back(),
                           absl::StrCat("piece_", i, ", zero, fine_max")));
  }
  graph.Add(ConcatLines(pieces));
  Int8Layer layer;
  layer.depth = kPieces;
  layer.columns = 1;
  layer.weights.assign(kPieces, 60);
  layer.bias = {0.25};
  AddLayer(kWithDequantize, layer, "bias", "fine_max", &graph);
  ASSERT_OK_AND_ASSIGN(const auto outputs, graph.Run({"y"}));
  const std::vector<float> values = ValuesOf(outputs[0]);
  const double weight = 60 * layer.WeightScale();
  for (int i = 0; i < kRows; ++i) {
    // Half of the fine step, though the range is eight times as wide.
    EXPECT_NEAR(values[i], x[i] * weight + 0.25,
                0.51 * layer.InputScale() * weight);
  }
}

}  // namespace
}  // namespace requant::layer_tricks_test
