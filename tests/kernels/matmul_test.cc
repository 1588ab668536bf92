// The ops QuantizedMatMulWithBias… and _QuantizedMatMul: which combinations of
// input mode, input range, weights and bias give the right outputs, which give
// garbage without an error, and what is refused.

#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <tuple>

#include "absl/strings/match.h"
#include "base/process/machine.h"
#include "base/status_macros.h"
#include "tests/kernels/int8_layer.h"

namespace requant::matmul_test {
namespace {

using tensorflow::DataType;
using tensorflow::DT_FLOAT;
using tensorflow::DT_QINT32;
using tensorflow::DT_QINT8;
using tensorflow::DT_QUINT8;
using testing::AnyOf;

const char* const kOps[] = {kWithBias, kWithRelu, kWithReluAndRequantize,
                            kWithRequantize, kWithDequantize};

// Half a step for rounding, and a little for the kernels' float arithmetic.
constexpr double kHalfStep = 0.52;
constexpr char kMended[] =
    "TensorFlow now does this right: the transforms need not avoid it any more";

// Returns what the op should give, were its arithmetic exact.
std::vector<double> Expected(const std::string& op, const Int8Layer& layer) {
  const std::vector<double> outputs = ExactOutputs(layer);
  // AndRequantize has no Relu in its name, but its quint8 has no negatives.
  return absl::StrContains(op, "Relu") || op == kWithRequantize
             ? WithoutNegatives(outputs)
             : outputs;
}

// The input of an op: its codes and their range, and the bias that goes with
// it.
struct Beginning {
  std::string name;
  DataType type;
  std::string mode;
  float min;
  BiasKind bias;
  bool right = true;
};

const Beginning kLegacyBeginnings[] = {
    {"MinFirstFromZero", DT_QUINT8, "MIN_FIRST", 0, BiasKind::kFloat},
    {"MinFirstFromZeroQuantizedBias", DT_QUINT8, "MIN_FIRST", 0,
     BiasKind::kQuantized},
    {"MinFirstFromBelowZeroFloatBias", DT_QUINT8, "MIN_FIRST", -1.5,
     BiasKind::kFloat, false},
    {"MinFirstFromBelowZeroQuantizedBiasWithZeroPoint", DT_QUINT8, "MIN_FIRST",
     -1.5, BiasKind::kQuantizedWithZeroPoint},
    {"ScaledFloatBias", DT_QUINT8, "SCALED", 0, BiasKind::kFloat},
    {"ScaledQuantizedBias", DT_QUINT8, "SCALED", 0, BiasKind::kQuantized},
};

class LegacyMatMulTest
    : public testing::TestWithParam<std::tuple<const char*, Beginning>> {};

TEST_P(LegacyMatMulTest, IsRightOrGarbageAsKnown) {
  const auto& [op, beginning] = GetParam();
  const Int8Layer layer = RandomLayer(beginning.min, 2.5);
  Int8MatMul matmul = {op, beginning.mode, beginning.bias};
  matmul.output_max = Largest(ExactOutputs(layer));
  ASSERT_OK_AND_ASSIGN(const auto outputs, RunLayer(layer, matmul));
  const double steps =
      LargestDifference(outputs.values, Expected(op, layer)) / outputs.step;
  if (beginning.right) {
    EXPECT_LE(steps, kHalfStep);
  } else {
    EXPECT_GT(steps, 100) << kMended;
  }
}

std::vector<LegacyMatMulTest::ParamType> OpsAndBeginnings() {
  std::vector<LegacyMatMulTest::ParamType> all;
  for (const char* op : kOps) {
    for (const Beginning& beginning : kLegacyBeginnings) {
      // AndRelu takes a float bias only.
      if (std::string(op) != kWithRelu || beginning.bias == BiasKind::kFloat) {
        all.emplace_back(op, beginning);
      }
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(, LegacyMatMulTest,
                         testing::ValuesIn(OpsAndBeginnings()),
                         [](const auto& info) {
                           return absl::StrCat(std::get<0>(info.param), "_",
                                               std::get<1>(info.param).name);
                         });

Int8MatMul Fused(const Int8Layer& layer, const std::string& op) {
  Int8MatMul matmul = {op};
  matmul.output_max = Largest(ExactOutputs(layer));
  return matmul;
}

// clip(rint(max(sum + bias, 0) * input scale * weight scale / output scale)).
TEST(FusedLayer, FollowsItsFormulaInEveryOutput) {
  const Int8Layer layer = RandomLayer(-1.5, 2.5);
  Int8MatMul matmul = Fused(layer, kWithReluAndRequantize);
  // So that some outputs are clipped.
  matmul.output_max /= 3;
  matmul.bias = BiasKind::kQuantizedWithZeroPoint;
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
  Int8MatMul matmul = Fused(layer, kWithReluAndRequantize);
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
  Int8MatMul matmul = Fused(layer, kWithDequantize);
  matmul.mode = "SCALED";
  matmul.input_range = {-2.5, 1};
  ASSERT_OK_AND_ASSIGN(const auto outputs, RunLayer(layer, matmul));
  EXPECT_LE(LargestDifference(outputs.values, ExactOutputs(layer)),
            kHalfStep * outputs.step);
}

TEST(FusedLayer, HasNoZeroPointWhateverTheFrozenMin) {
  const Int8Layer layer = RandomLayer(0, 2.5);
  Int8MatMul matmul = Fused(layer, kWithRequantize);
  matmul.output_min = -2 * matmul.output_max;
  ASSERT_OK_AND_ASSIGN(const auto outputs, RunLayer(layer, matmul));
  // The larger of the two ends gives the scale, and negatives become 0.
  EXPECT_NEAR(outputs.step, 2 * matmul.output_max / 255, 1e-6);
  EXPECT_LE(LargestDifference(outputs.values, Expected(kWithRequantize, layer)),
            kHalfStep * outputs.step);
}

class RefusalTest : public testing::TestWithParam<const char*> {
 protected:
  absl::Status Status() { return RunLayer(layer_, matmul_).status(); }

  const Int8Layer layer_ = RandomLayer(0, 2.5);
  Int8MatMul matmul_ = Fused(layer_, GetParam());
};

TEST_P(RefusalTest, HasNoKernelForSignedInput) {
  matmul_.input_type = DT_QINT8;
  EXPECT_THAT(Status(), FailsWith(HasSubstr("No OpKernel was registered")));
}

TEST_P(RefusalTest, HasNoKernelForSignedOutput) {
  // AndDequantize refuses it as its attribute's value.
  matmul_.output_type = DT_QINT8;
  EXPECT_THAT(Status(),
              FailsWith(AnyOf(HasSubstr("No OpKernel was registered"),
                              HasSubstr("not in the list of allowed values"))));
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
  Int8MatMul matmul;
  matmul.transpose_b = true;
  ASSERT_OK_AND_ASSIGN(const auto outputs, RunLayer(layer, matmul));
  EXPECT_LE(LargestDifference(outputs.values, ExactOutputs(layer)),
            outputs.step);
}

TEST(LegacyMatMul, RefusesWeightRangesPerColumnWhereItRequantizes) {
  const Int8Layer layer = RandomLayer(0, 2.5);
  for (const char* op : {kWithRequantize, kWithReluAndRequantize}) {
    Int8MatMul matmul = Fused(layer, op);
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
    Int8MatMul matmul = Fused(layer, op);
    matmul.range_per_column = true;
    EXPECT_EXIT(RunLayer(layer, matmul).status().IgnoreError(),
                testing::KilledBySignal(SIGABRT), "Check failed");
  }
}

// _QuantizedMatMul does more than the others, more slowly, and some of it
// wrong.

const Beginning kFloatBiasBeginnings[] = {
    {"MinFirst", DT_QUINT8, "MIN_FIRST", 0, BiasKind::kFloat},
    {"MinFirstBelowZero", DT_QUINT8, "MIN_FIRST", -1.5, BiasKind::kFloat},
    {"Scaled", DT_QUINT8, "SCALED", 0, BiasKind::kFloat},
    {"SignedScaled", DT_QINT8, "SCALED", -2.5, BiasKind::kFloat},
};
const Beginning kQuantizedBiasBeginnings[] = {
    {"MinFirstQuantizedBias", DT_QUINT8, "MIN_FIRST", 0, BiasKind::kQuantized},
    {"MinFirstBelowZeroBiasWithZeroPoint", DT_QUINT8, "MIN_FIRST", -1.5,
     BiasKind::kQuantizedWithZeroPoint},
};
const Beginning kWrongBeginnings[] = {
    {"ScaledQuantizedBias", DT_QUINT8, "SCALED", 0, BiasKind::kQuantized},
    {"SignedMinFirst", DT_QINT8, "MIN_FIRST", -1.5, BiasKind::kFloat},
};

// What follows the matmul and its bias.
struct Ending {
  std::string name;
  std::string fused_ops;
  DataType output_type;
  std::string output_mode = "SCALED";
};

const Ending kEndings[] = {
    {"ReluRequantizeToQuint8", ",'Relu','Requantize'", DT_QUINT8},
    {"RequantizeToQint8", ",'Requantize'", DT_QINT8},
    {"RequantizeToQuint8MinFirst", ",'Requantize'", DT_QUINT8, "MIN_FIRST"},
    {"Dequantize", ",'Dequantize'", DT_FLOAT},
    {"ReluDequantize", ",'Relu','Dequantize'", DT_FLOAT},
};
const Ending kSums = {"Sums", "", DT_QINT32};

enum class Weights { kPlain, kTransposed, kRangePerColumn };
constexpr const char* kWeightsNames[] = {"", "_Transposed", "_RangePerColumn"};

using NewMatMulCase = std::tuple<Beginning, Weights, Ending>;

Int8Layer LayerFor(const Beginning& beginning, Weights weights) {
  Int8Layer layer = RandomLayer(beginning.min, 2.5);
  if (beginning.type == DT_QINT8) {
    for (int& code : layer.codes) code = std::max(code - 128, -127);
  }
  for (int j = 0; weights == Weights::kRangePerColumn && j < layer.columns;
       ++j) {
    layer.column_factors.push_back(0.5f + j * 0.02f);
  }
  return layer;
}

std::vector<double> ExpectedFor(const Beginning& beginning,
                                const Int8Layer& layer) {
  if (beginning.type == DT_QUINT8) return ExactOutputs(layer);
  return beginning.mode == "SCALED"
             ? ExactOutputs(layer, 0, layer.input_max / 127.0)
             : ExactOutputs(layer, layer.input_min + 128 * layer.InputScale(),
                            layer.InputScale());
}

Int8MatMul NewMatMul(const NewMatMulCase& row) {
  const auto& [beginning, weights, ending] = row;
  Int8MatMul matmul = {kNewMatMul, beginning.mode, beginning.bias};
  matmul.input_type = beginning.type;
  matmul.transpose_b = matmul.transposed_weights =
      weights == Weights::kTransposed;
  matmul.range_per_column = weights == Weights::kRangePerColumn;
  matmul.fused_ops = ending.fused_ops;
  matmul.output_type = ending.output_type;
  matmul.output_mode = ending.output_mode;
  return matmul;
}

// Returns the largest error, in steps of the output or units of the sums.
absl::StatusOr<double> Error(const NewMatMulCase& row) {
  const auto& [beginning, weights, ending] = row;
  const Int8Layer layer = LayerFor(beginning, weights);
  std::vector<double> expected = ExpectedFor(beginning, layer);
  if (absl::StrContains(ending.fused_ops, "Relu")) {
    expected = WithoutNegatives(expected);
  }
  Int8MatMul matmul = NewMatMul(row);
  matmul.output_min = Smallest(expected);
  matmul.output_max = Largest(expected);
  REQUANT_ASSIGN_OR_RETURN(const auto outputs, RunLayer(layer, matmul));
  return LargestDifference(outputs.values, expected) / outputs.step;
}

std::string Name(const testing::TestParamInfo<NewMatMulCase>& info) {
  const auto& [beginning, weights, ending] = info.param;
  return absl::StrCat(beginning.name, kWeightsNames[static_cast<int>(weights)],
                      "_", ending.name);
}

class RightTest : public testing::TestWithParam<NewMatMulCase> {};

TEST_P(RightTest, IsWithinHalfAStep) {
  ASSERT_OK_AND_ASSIGN(const auto error, Error(GetParam()));
  EXPECT_LE(error, kHalfStep);
}

INSTANTIATE_TEST_SUITE_P(
    FloatBias, RightTest,
    testing::Combine(testing::ValuesIn(kFloatBiasBeginnings),
                     testing::Values(Weights::kPlain, Weights::kTransposed,
                                     Weights::kRangePerColumn),
                     testing::ValuesIn(kEndings)),
    Name);
INSTANTIATE_TEST_SUITE_P(
    QuantizedBias, RightTest,
    testing::Combine(testing::ValuesIn(kQuantizedBiasBeginnings),
                     testing::Values(Weights::kPlain),
                     testing::ValuesIn(kEndings)),
    Name);

class WrongTest : public testing::TestWithParam<NewMatMulCase> {};

TEST_P(WrongTest, IsManyStepsOffWithoutAnError) {
  ASSERT_OK_AND_ASSIGN(const auto error, Error(GetParam()));
  EXPECT_GT(error, 50) << kMended;
}

INSTANTIATE_TEST_SUITE_P(Inputs, WrongTest,
                         testing::Combine(testing::ValuesIn(kWrongBeginnings),
                                          testing::Values(Weights::kPlain),
                                          testing::ValuesIn(kEndings)),
                         Name);
INSTANTIATE_TEST_SUITE_P(
    Sums, WrongTest,
    testing::Combine(testing::ValuesIn(kFloatBiasBeginnings),
                     testing::Values(Weights::kPlain), testing::Values(kSums)),
    Name);

// The bias that the kernel has prepared for one input range serves for the next
// one if both ends are within 1e-5, however small the range is.
TEST(BiasCache, ServesForAnotherRangeThatIsTinyToo) {
  const Int8MatMul matmul =
      NewMatMul({kFloatBiasBeginnings[1], Weights::kPlain, kEndings[3]});
  Int8Layer layer = LayerFor(kFloatBiasBeginnings[1], Weights::kPlain);
  layer.input_min = -1e-6f;
  layer.input_max = 3e-6f;
  layer.bias.assign(layer.columns, 0);
  KernelGraph graph;
  AddMatMul(layer, matmul, &graph);
  std::vector<double> errors;
  for (float factor : {1, 2, 100000}) {
    layer.input_min *= factor;
    layer.input_max *= factor;
    graph.FeedAnew("min_a", Tensor(layer.input_min));
    graph.FeedAnew("max_a", Tensor(layer.input_max));
    ASSERT_OK_AND_ASSIGN(const auto outputs, RunMatMul(layer, matmul, &graph));
    errors.push_back(LargestDifference(outputs.values, ExactOutputs(layer)) /
                     outputs.step);
  }
  EXPECT_LE(errors[0], kHalfStep);
  EXPECT_GT(errors[1], 1000) << "TensorFlow now tells tiny ranges apart";
  EXPECT_LE(errors[2], kHalfStep);
}

// Sums of uint8 × int8 products on CPUs without VNNI: adjacent products are
// added in pairs in 16 bits, which saturate. oneDNN is made to use AVX2 only,
// so that any CPU shows it.
class SaturationTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    // Before TensorFlow's library, and oneDNN in it, is opened.
    setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
  }

  void SetUp() override {
    if (!ProbeCpu().avx2.works) GTEST_SKIP() << "this CPU has no AVX2";
  }

  // Makes all inputs 255 and lets weights alternate between two values.
  static Int8Layer PairsOf(int even, int odd) {
    Int8Layer layer = RandomLayer(0, 2.5);
    layer.codes.assign(layer.codes.size(), 255);
    for (int i = 0; i < layer.weights.size(); ++i) {
      layer.weights[i] = i / layer.columns % 2 == 0 ? even : odd;
    }
    return layer;
  }

  // Returns how far the kernel is from the exact outputs, as a share of the
  // largest.
  static double Error(const Int8Layer& layer) {
    const auto outputs = RunLayer(layer, {});
    EXPECT_OK(outputs);
    if (!outputs.ok()) return 1;
    const std::vector<double> exact = ExactOutputs(layer);
    return LargestDifference(outputs->values, exact) / Largest(exact);
  }
};

constexpr double kExact = 1e-5;

TEST_F(SaturationTest, LosesOutputsOfWeightsUpTo127) {
  EXPECT_GT(Error(RandomLayer(0, 2.5, 127)), 0.01);
}

TEST_F(SaturationTest, KeepsOutputsOfWeightsUpTo64) {
  EXPECT_LE(Error(RandomLayer(0, 2.5, 64)), kExact);
  EXPECT_LE(Error(PairsOf(64, 64)), kExact);
}

// 255 · 128 is the largest multiple of 255 below 2^15.
TEST_F(SaturationTest, KeepsPairsThatAddUpTo128) {
  EXPECT_LE(Error(PairsOf(127, 1)), kExact);
  EXPECT_LE(Error(PairsOf(127, -127)), kExact);
  EXPECT_LE(Error(PairsOf(100, 28)), kExact);
}

TEST_F(SaturationTest, LosesPairsThatAddUpTo129) {
  EXPECT_GT(Error(PairsOf(127, 2)), 1e-3);
  EXPECT_GT(Error(PairsOf(65, 64)), 1e-3);
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
