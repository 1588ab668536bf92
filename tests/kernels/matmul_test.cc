// The ops QuantizedMatMulWithBias…: which combinations of input mode, input
// range and bias give the right outputs, which give garbage without an error,
// and what is refused.

#include <algorithm>
#include <cmath>
#include <csignal>
#include <tuple>

#include "absl/strings/match.h"
#include "graph/testing/testing.h"
#include "tests/kernels/int8_layer.h"
#include "tests/kernels/legacy_matmul.h"

namespace requant::matmul_test {
namespace {

using testing::AnyOf;

const char* const kOps[] = {kWithBias, kWithRelu, kWithReluAndRequantize,
                            kWithRequantize, kWithDequantize};

// Half a step for rounding, and a little for the kernels' float arithmetic.
constexpr double kHalfStep = 0.52;

std::vector<double> WithoutNegatives(std::vector<double> values) {
  for (double& value : values) value = std::max(value, 0.0);
  return values;
}

// What the op should give, were its arithmetic exact.
std::vector<double> Expected(const std::string& op, const Int8Layer& layer) {
  const std::vector<double> outputs = ExactOutputs(layer);
  // AndRequantize has no Relu in its name, but its quint8 has no negatives.
  return absl::StrContains(op, "Relu") || op == kWithRequantize
             ? WithoutNegatives(outputs)
             : outputs;
}

enum class Verdict { kRight, kGarbage };

struct Combination {
  std::string name;
  float input_min;
  std::string mode;
  enum { kFloatBias, kQuantizedBias, kBiasWithZeroPoint } bias;
  Verdict verdict;
};

const Combination kCombinations[] = {
    {"MinFirstFromZero", 0, "MIN_FIRST", Combination::kFloatBias,
     Verdict::kRight},
    {"MinFirstFromZeroQuantizedBias", 0, "MIN_FIRST",
     Combination::kQuantizedBias, Verdict::kRight},
    {"MinFirstFromBelowZeroFloatBias", -1.5, "MIN_FIRST",
     Combination::kFloatBias, Verdict::kGarbage},
    {"MinFirstFromBelowZeroQuantizedBiasWithZeroPoint", -1.5, "MIN_FIRST",
     Combination::kBiasWithZeroPoint, Verdict::kRight},
    {"ScaledFloatBias", 0, "SCALED", Combination::kFloatBias, Verdict::kRight},
    {"ScaledQuantizedBias", 0, "SCALED", Combination::kQuantizedBias,
     Verdict::kRight},
};

class LegacyMatMulTest
    : public testing::TestWithParam<std::tuple<const char*, Combination>> {};

TEST_P(LegacyMatMulTest, IsRightOrGarbageAsKnown) {
  const auto& [op, combination] = GetParam();
  const Int8Layer layer = RandomLayer(combination.input_min, 2.5);
  LegacyMatMul matmul;
  matmul.op = op;
  matmul.mode = combination.mode;
  matmul.output_max = Largest(ExactOutputs(layer));
  if (combination.bias == Combination::kQuantizedBias) {
    matmul.quantized_bias = QuantizedBias(layer);
  }
  if (combination.bias == Combination::kBiasWithZeroPoint) {
    matmul.quantized_bias = QuantizedBiasWithZeroPoint(layer);
  }
  ASSERT_OK_AND_ASSIGN(const auto outputs, RunLayer(layer, matmul));
  const double steps =
      LargestDifference(outputs.values, Expected(op, layer)) / outputs.step;
  if (combination.verdict == Verdict::kRight) {
    EXPECT_LE(steps, kHalfStep);
  } else {
    EXPECT_GT(steps, 100) << "TensorFlow now does this right: the transforms "
                             "need not avoid it any more";
  }
}

std::vector<std::tuple<const char*, Combination>> OpsAndCombinations() {
  std::vector<std::tuple<const char*, Combination>> all;
  for (const char* op : kOps) {
    for (const Combination& combination : kCombinations) {
      // AndRelu takes a float bias only.
      if (op != std::string(kWithRelu) ||
          combination.bias == Combination::kFloatBias) {
        all.emplace_back(op, combination);
      }
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(, LegacyMatMulTest,
                         testing::ValuesIn(OpsAndCombinations()),
                         [](const auto& info) {
                           return absl::StrCat(std::get<0>(info.param), "_",
                                               std::get<1>(info.param).name);
                         });

LegacyMatMul Fused(const Int8Layer& layer, const std::string& op) {
  LegacyMatMul matmul;
  matmul.op = op;
  matmul.output_max = Largest(ExactOutputs(layer));
  return matmul;
}

// clip(rint(max(sum + bias, 0) * input scale * weight scale / output scale)).
TEST(FusedLayer, FollowsItsFormulaInEveryOutput) {
  const Int8Layer layer = RandomLayer(-1.5, 2.5);
  LegacyMatMul matmul = Fused(layer, kWithReluAndRequantize);
  // So that some outputs are clipped.
  matmul.output_max /= 3;
  matmul.quantized_bias = QuantizedBiasWithZeroPoint(layer);
  ASSERT_OK_AND_ASSIGN(const auto outputs, RunLayer(layer, matmul));
  const double scale =
      layer.SumScale() / (static_cast<float>(matmul.output_max) / 255.0);
  std::vector<int> expected;
  for (int i = 0; i < layer.rows; ++i) {
    for (int j = 0; j < layer.columns; ++j) {
      int sum = matmul.quantized_bias[j];
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
  LegacyMatMul matmul = Fused(layer, kWithReluAndRequantize);
  ASSERT_GT(matmul.output_max, 7);
  matmul.output_max = 6;
  ASSERT_OK_AND_ASSIGN(const auto outputs, RunLayer(layer, matmul));
  std::vector<double> expected = Expected(kWithReluAndRequantize, layer);
  for (double& value : expected) value = std::min(value, 6.0);
  EXPECT_LE(LargestDifference(outputs.values, expected),
            kHalfStep * outputs.step);
}

TEST(FusedLayer, TakesTheLargerEndForTheScaleOfScaledInput) {
  const Int8Layer layer = RandomLayer(0, 2.5);
  LegacyMatMul matmul = Fused(layer, kWithDequantize);
  matmul.mode = "SCALED";
  matmul.own_range = true;
  matmul.min_a = -2.5;
  matmul.max_a = 1;
  ASSERT_OK_AND_ASSIGN(const auto outputs, RunLayer(layer, matmul));
  EXPECT_LE(LargestDifference(outputs.values, ExactOutputs(layer)),
            kHalfStep * outputs.step);
}

TEST(FusedLayer, HasNoZeroPointWhateverTheFrozenMin) {
  const Int8Layer layer = RandomLayer(0, 2.5);
  LegacyMatMul matmul = Fused(layer, kWithRequantize);
  matmul.output_min = -2 * matmul.output_max;
  ASSERT_OK_AND_ASSIGN(const auto outputs, RunLayer(layer, matmul));
  // The larger of the two ends gives the scale, and negatives become 0.
  EXPECT_NEAR(outputs.step, 2 * matmul.output_max / 255, 1e-6);
  EXPECT_LE(LargestDifference(outputs.values, Expected(kWithRequantize, layer)),
            kHalfStep * outputs.step);
}

class RefusalTest : public testing::TestWithParam<const char*> {
 protected:
  RefusalTest() : layer_(RandomLayer(0, 2.5)) {
    matmul_ = Fused(layer_, GetParam());
  }

  absl::Status Status() { return RunLayer(layer_, matmul_).status(); }

  Int8Layer layer_;
  LegacyMatMul matmul_;
};

TEST_P(RefusalTest, HasNoKernelForSignedInput) {
  matmul_.input_type = tensorflow::DT_QINT8;
  EXPECT_THAT(Status().message(), HasSubstr("No OpKernel was registered"));
}

TEST_P(RefusalTest, HasNoKernelForSignedOutput) {
  // AndDequantize refuses it as its attribute's value.
  matmul_.output_type = tensorflow::DT_QINT8;
  EXPECT_THAT(Status().message(),
              AnyOf(HasSubstr("No OpKernel was registered"),
                    HasSubstr("not in the list of allowed values")));
}

TEST_P(RefusalTest, FailsOnTransposedWeightsThatAreNotSquare) {
  matmul_.transpose_b = true;
  EXPECT_EQ(Status().code(), absl::StatusCode::kAborted);
}

INSTANTIATE_TEST_SUITE_P(LegacyMatMul, RefusalTest, testing::ValuesIn(kOps),
                         [](const auto& info) { return info.param; });

// Worse than a refusal: the attribute has no effect.
TEST(LegacyMatMul, TakesSquareTransposedWeightsAsIfTheyWereNotTransposed) {
  Int8Layer layer = RandomLayer(0, 2.5);
  layer.depth = layer.columns;
  layer.codes.resize(layer.rows * layer.depth);
  layer.weights.resize(layer.depth * layer.columns);
  LegacyMatMul matmul;
  matmul.transpose_b = true;
  ASSERT_OK_AND_ASSIGN(const auto outputs, RunLayer(layer, matmul));
  EXPECT_LE(LargestDifference(outputs.values, ExactOutputs(layer)),
            outputs.step);
}

TEST(LegacyMatMul, RefusesWeightRangesPerColumnWhereItRequantizes) {
  const Int8Layer layer = RandomLayer(0, 2.5);
  for (const char* op : {kWithRequantize, kWithReluAndRequantize}) {
    LegacyMatMul matmul = Fused(layer, op);
    matmul.range_per_column = true;
    EXPECT_THAT(RunLayer(layer, matmul),
                FailsWith(HasSubstr("must be rank 0")));
  }
}

// The others end the process.
TEST(LegacyMatMulDeathTest, AbortsOnWeightRangesPerColumnElsewhere) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const Int8Layer layer = RandomLayer(0, 2.5);
  for (const char* op : {kWithBias, kWithRelu, kWithDequantize}) {
    LegacyMatMul matmul = Fused(layer, op);
    matmul.range_per_column = true;
    EXPECT_EXIT(RunLayer(layer, matmul).status().IgnoreError(),
                testing::KilledBySignal(SIGABRT), "Check failed");
  }
}

}  // namespace
}  // namespace requant::matmul_test
