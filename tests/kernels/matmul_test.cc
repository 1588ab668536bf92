// Tests which combinations of input mode, input range and bias give the right
// outputs in the ops QuantizedMatMulWithBias…, and which give garbage without
// an error.

#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "absl/strings/match.h"
#include "base/process/machine.h"
#include "tests/kernels/int8_layer.h"

namespace requant::matmul_test {
namespace {

// This allows half a step for rounding and a little for float arithmetic.
constexpr double kHalfStep = 0.52;

// Returns what the op would give if its arithmetic were exact.
std::vector<double> Expected(const std::string& op, const Int8Layer& layer) {
  const std::vector<double> outputs = ExactOutputs(layer);
  // AndRequantize has no Relu in its name, but its quint8 has no negatives.
  return absl::StrContains(op, "Relu") || op == kWithRequantize
             ? WithoutNegatives(outputs)
             : outputs;
}

// The coding of an op's input and the bias that goes with it.
struct Input {
  std::string name;
  std::string mode;
  float min;
  BiasKind bias;
  bool right = true;
};

const Input kInputs[] = {
    {"MinFirstFromZero", "MIN_FIRST", 0, BiasKind::kFloat},
    {"MinFirstFromZeroQuantizedBias", "MIN_FIRST", 0, BiasKind::kQuantized},
    {"MinFirstFromBelowZeroFloatBias", "MIN_FIRST", -1.5, BiasKind::kFloat,
     false},
    {"MinFirstFromBelowZeroQuantizedBiasWithZeroPoint", "MIN_FIRST", -1.5,
     BiasKind::kQuantizedWithZeroPoint},
    {"ScaledFloatBias", "SCALED", 0, BiasKind::kFloat},
    {"ScaledQuantizedBias", "SCALED", 0, BiasKind::kQuantized},
};

class MatMulTest
    : public testing::TestWithParam<std::tuple<const char*, Input>> {};

TEST_P(MatMulTest, IsRightOrGarbageAsKnown) {
  const auto& [op, input] = GetParam();
  if (std::string(op) == kWithRelu && input.bias != BiasKind::kFloat) {
    GTEST_SKIP() << "AndRelu takes a float bias only";
  }
  const Int8Layer layer = RandomLayer(input.min, 2.5);
  ASSERT_OK_AND_ASSIGN(const auto outputs,
                       RunLayer(layer, {op, input.mode, input.bias,
                                        Largest(ExactOutputs(layer))}));
  const double steps =
      LargestDifference(outputs.values, Expected(op, layer)) / outputs.step;
  if (input.right) {
    EXPECT_LE(steps, kHalfStep);
  } else {
    EXPECT_GT(steps, 100) << "TensorFlow now does this right: the transforms "
                             "need not avoid it any more";
  }
}

INSTANTIATE_TEST_SUITE_P(, MatMulTest,
                         testing::Combine(testing::ValuesIn(kMatMuls),
                                          testing::ValuesIn(kInputs)),
                         [](const auto& info) {
                           return absl::StrCat(std::get<0>(info.param), "_",
                                               std::get<1>(info.param).name);
                         });

// clip(rint(max(sum + bias, 0) * input scale * weight scale / output scale)).
TEST(FusedLayer, FollowsItsFormulaInEveryOutput) {
  const Int8Layer layer = RandomLayer(-1.5, 2.5);
  // The range is cut to a third, so that some outputs are clipped.
  const Int8MatMul matmul = {kWithReluAndRequantize, "MIN_FIRST",
                             BiasKind::kQuantizedWithZeroPoint,
                             Largest(ExactOutputs(layer)) / 3};
  ASSERT_OK_AND_ASSIGN(const auto outputs, RunLayer(layer, matmul));
  const double scale =
      layer.SumScale() / (static_cast<float>(matmul.output_max) / 255.0);
  const std::vector<int> bias = QuantizedBias(layer, matmul.bias);
  std::vector<int> expected;
  for (int i = 0; i < layer.rows; ++i) {
    for (int j = 0; j < layer.columns; ++j) {
      int sum = bias[j];
      for (int k = 0; k < layer.depth; ++k) {
        sum += layer.codes[i * layer.depth + k] *
               layer.weights[k * layer.columns + j];
      }
      expected.push_back(std::clamp<int>(std::nearbyint(sum * scale), 0, 255));
    }
  }
  EXPECT_EQ(outputs.codes, expected);
}

TEST(FusedLayer, SaturatesAtAFrozenMaxOfSixAsRelu6Does) {
  const Int8Layer layer = RandomLayer(0, 2.5);
  std::vector<double> expected = Expected(kWithReluAndRequantize, layer);
  ASSERT_GT(Largest(expected), 7);
  for (double& value : expected) value = std::min(value, 6.0);
  ASSERT_OK_AND_ASSIGN(const auto outputs,
                       RunLayer(layer, {kWithReluAndRequantize, "MIN_FIRST",
                                        BiasKind::kFloat, 6}));
  EXPECT_LE(LargestDifference(outputs.values, expected),
            kHalfStep * outputs.step);
}

TEST(FusedLayer, TakesTheLargerEndForTheScaleOfScaledInput) {
  const Int8Layer layer = RandomLayer(0, 2.5);
  Int8MatMul matmul = {kWithDequantize, "SCALED"};
  matmul.input_range = {-2.5, 1};
  ASSERT_OK_AND_ASSIGN(const auto outputs, RunLayer(layer, matmul));
  EXPECT_LE(LargestDifference(outputs.values, ExactOutputs(layer)),
            kHalfStep * outputs.step);
}

// This is worse than a refusal: the attribute has no effect.
TEST(FusedLayer, TakesSquareTransposedWeightsAsIfTheyWereNotTransposed) {
  Int8Layer layer = RandomLayer(0, 2.5);
  layer.depth = layer.columns;
  layer.codes.resize(layer.rows * layer.depth);
  layer.weights.resize(layer.depth * layer.columns);
  Int8MatMul matmul;
  matmul.transpose_b = true;
  ASSERT_OK_AND_ASSIGN(const auto outputs, RunLayer(layer, matmul));
  EXPECT_LE(LargestDifference(outputs.values, ExactOutputs(layer)),
            outputs.step);
}

// CPUs without VNNI add adjacent uint8 × int8 products in pairs in 16 bits,
// which saturate. oneDNN is restricted to AVX2, so that any CPU shows this.
class SaturationTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    // This must precede the opening of TensorFlow's library with oneDNN in it.
    setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
  }

  void SetUp() override {
    if (!ProbeCpu().avx2.works) GTEST_SKIP() << "this CPU has no AVX2";
  }

  // Returns a layer whose inputs are 255 and whose weights alternate.
  static Int8Layer PairsOf(int even, int odd) {
    Int8Layer layer = RandomLayer(0, 2.5);
    layer.codes.assign(layer.codes.size(), 255);
    for (int i = 0; i < layer.weights.size(); ++i) {
      layer.weights[i] = i / layer.columns % 2 == 0 ? even : odd;
    }
    return layer;
  }

  // Returns the kernel's deviation from the exact outputs, as a share of the
  // largest output.
  static double Error(const Int8Layer& layer) {
    const auto outputs = RunLayer(layer, {});
    EXPECT_OK(outputs);
    if (!outputs.ok()) return 1;
    const std::vector<double> exact = ExactOutputs(layer);
    return LargestDifference(outputs->values, exact) / Largest(exact);
  }

  static constexpr double kExact = 1e-5;
};

TEST_F(SaturationTest, LosesOutputsOfWeightsUpTo127AndKeepsThoseUpTo64) {
  EXPECT_GT(Error(RandomLayer(0, 2.5, 127)), 0.01);
  EXPECT_LE(Error(RandomLayer(0, 2.5, 64)), kExact);
}

// 255 · 128 is the largest multiple of 255 below 2^15.
TEST_F(SaturationTest, KeepsPairsThatAddUpTo128AndLosesThoseThatAddUpTo129) {
  using Pairs = std::vector<std::pair<int, int>>;
  for (const auto& [even, odd] :
       Pairs{{64, 64}, {127, 1}, {127, -127}, {100, 28}}) {
    EXPECT_LE(Error(PairsOf(even, odd)), kExact) << even;
  }
  for (const auto& [even, odd] : Pairs{{127, 2}, {65, 64}}) {
    EXPECT_GT(Error(PairsOf(even, odd)), 1e-3) << even;
  }
}

TEST_F(SaturationTest, KeepsTwoRowsOf127ThatAreNotInOnePair) {
  Int8Layer layer = PairsOf(0, 0);
  for (int j = 0; j < layer.columns; ++j) {
    layer.weights[1 * layer.columns + j] = 127;
    layer.weights[2 * layer.columns + j] = 127;
  }
  EXPECT_LE(Error(layer), kExact);
}

}  // namespace
}  // namespace requant::matmul_test
