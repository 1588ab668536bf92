// QuantizeV2, Dequantize, RequantizationRange and Requantize: the formulas that
// transforms write constants by, and where two kernels of one op disagree.

#include <algorithm>
#include <cmath>
#include <random>

#include "absl/strings/substitute.h"
#include "tests/kernels/int8_layer.h"

// This file is compiled with -ffp-contract=off: the formulas round every
// product and every sum to a float.

namespace requant::quantize_test {
namespace {

constexpr int kCount = 1 << 16;
constexpr float kMin = -1.37f;
constexpr float kMax = 2.91f;

// Returns values of which some are beyond kMin and kMax.
std::vector<float> RandomValues(float min = kMin, float max = kMax) {
  std::mt19937 random(2);
  std::vector<float> values;
  for (int i = 0; i < kCount; ++i) {
    const double share = random() / 0x1p32;
    values.push_back(min + (share * 1.1 - 0.05) * (max - min));
  }
  return values;
}

struct Quantize {
  std::string type = "quint8";
  std::string mode = "MIN_FIRST";
  bool narrow_range = false;
  float min = kMin;
  float max = kMax;
  // Whether the input is a constant, not fed.
  bool constant = false;
};

const Quantize kFromZero = {"quint8", "SCALED", false, 0};
const Quantize kSymmetric = {"qint8", "SCALED", true, -kMax};

Quantize Constant(Quantize quantize, bool constant = true) {
  quantize.constant = constant;
  return quantize;
}

void AddQuantize(const std::vector<float>& values, const Quantize& quantize,
                 KernelGraph* graph) {
  const Tensor x =
      TensorOf<float>({static_cast<int64_t>(values.size())}, values);
  quantize.constant ? graph->Constant("x", x) : graph->Feed("x", x);
  graph->Constant("min", quantize.min);
  graph->Constant("max", quantize.max);
  graph->Add(absl::Substitute(
      R"(q = QuantizeV2(x, min, max) T=$0 mode='$1' narrow_range=$2
             round_mode='$3'
         back = Dequantize(q, q:1, q:2) T=$0 mode='$1' narrow_range=$2)",
      quantize.type, quantize.mode, quantize.narrow_range,
      quantize.mode == "SCALED" ? "HALF_TO_EVEN" : "HALF_AWAY_FROM_ZERO"));
}

struct Quantized {
  std::vector<int> codes;
  float min = 0;
  float max = 0;
};

Quantized RunQuantize(const std::vector<float>& values,
                      const Quantize& quantize) {
  KernelGraph graph;
  AddQuantize(values, quantize, &graph);
  const auto outputs = graph.Run({"q", "q:1", "q:2"});
  EXPECT_OK(outputs);
  if (!outputs.ok()) return {};
  return {Codes((*outputs)[0]), ValuesOf((*outputs)[1])[0],
          ValuesOf((*outputs)[2])[0]};
}

int OneDnnMinFirst(float value) {
  const float scale = 255.0f / (kMax - kMin);
  const float shifted = value * scale + -kMin * scale;
  return std::clamp<int>(std::nearbyint(shifted), 0, 255);
}

int EigenMinFirst(float value) {
  const float scale = 255.0f / (kMax - kMin);
  const float clipped = std::clamp(value, kMin, kMax);
  return std::clamp<int>(std::round(clipped * scale) - std::round(kMin * scale),
                         0, 255);
}

// Returns the codes that `formula` gives.
template <typename Formula>
std::vector<int> Each(const std::vector<float>& values, Formula formula) {
  std::vector<int> codes;
  for (float value : values) codes.push_back(formula(value));
  return codes;
}

TEST(QuantizeMinFirst, FollowsTheOneDnnFormulaWhenFed) {
  const std::vector<float> values = RandomValues();
  const Quantized quantized = RunQuantize(values, {});
  EXPECT_EQ(quantized.codes, Each(values, OneDnnMinFirst));
  EXPECT_EQ(quantized.min, kMin);
  EXPECT_EQ(quantized.max, kMax);
}

TEST(QuantizeMinFirst, FollowsTheEigenFormulaOnAConstant) {
  const std::vector<float> values = RandomValues();
  EXPECT_EQ(RunQuantize(values, Constant({})).codes,
            Each(values, EigenMinFirst));
}

// The reason for which a table is never quantized by running QuantizeV2 on it.
TEST(QuantizeMinFirst, DiffersByOneCodeBetweenItsTwoKernels) {
  const std::vector<float> values = RandomValues();
  const std::vector<int> eigen = RunQuantize(values, Constant({})).codes;
  const std::vector<int> one_dnn = RunQuantize(values, {}).codes;
  int differing = 0;
  for (int i = 0; i < kCount; ++i) {
    ASSERT_LE(std::abs(eigen[i] - one_dnn[i]), 1);
    differing += eigen[i] != one_dnn[i];
  }
  EXPECT_GT(differing, kCount / 100)
      << "TensorFlow's two kernels agree now: constants may be folded";
}

TEST(QuantizeScaled, IsTheSameByBothKernels) {
  const std::vector<float> values = RandomValues(0, kMax);
  const std::vector<int> fed = RunQuantize(values, kFromZero).codes;
  EXPECT_EQ(fed, RunQuantize(values, Constant(kFromZero)).codes);
  EXPECT_EQ(fed, Each(values, [](float value) {
              return std::clamp<int>(std::nearbyint(value * (255.0f / kMax)), 0,
                                     255);
            }));
}

TEST(QuantizeScaled, MakesSymmetricWeightsInANarrowRange) {
  const std::vector<float> values = RandomValues(-kMax, kMax);
  for (bool constant : {false, true}) {
    const Quantized quantized =
        RunQuantize(values, Constant(kSymmetric, constant));
    EXPECT_EQ(quantized.codes, Each(values, [](float value) {
                return std::clamp<int>(std::nearbyint(value * (127.0f / kMax)),
                                       -127, 127);
              }));
    EXPECT_EQ(quantized.min, -kMax);
    EXPECT_EQ(quantized.max, kMax);
  }
}

// MatMul kernels take max/127 for the scale, so a range that ends at -128 makes
// every weight 128/127 too large.
TEST(QuantizeScaled, WritesALopsidedRangeUnlessItIsNarrow) {
  Quantize quantize = Constant(kSymmetric);
  quantize.narrow_range = false;
  const Quantized quantized = RunQuantize(RandomValues(-kMax, kMax), quantize);
  EXPECT_NE(quantized.min, -quantized.max);
}

// Values through a QuantizeV2 and back, as errors in steps.
std::vector<double> QuantizeAndBack(const std::vector<float>& values,
                                    const Quantize& quantize, double step) {
  KernelGraph graph;
  AddQuantize(values, quantize, &graph);
  const auto outputs = graph.Run({"back"});
  EXPECT_OK(outputs);
  if (!outputs.ok()) return {};
  const std::vector<float> back = ValuesOf((*outputs)[0]);
  std::vector<double> errors;
  for (int i = 0; i < values.size(); ++i) {
    if (values[i] < quantize.min || values[i] > quantize.max) continue;
    errors.push_back((back[i] - values[i]) / step);
  }
  return errors;
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) sum += value;
  return sum / values.size();
}

double LargestMagnitude(const std::vector<double>& values) {
  return LargestDifference(values, std::vector<double>(values.size(), 0));
}

TEST(QuantizeAndDequantize, IsRightForScaledInANarrowRange) {
  const std::vector<double> errors =
      QuantizeAndBack(RandomValues(-kMax, kMax), kSymmetric, kMax / 127);
  EXPECT_LE(LargestMagnitude(errors), 0.501);
  EXPECT_LE(std::abs(Mean(errors)), 0.01);
}

TEST(QuantizeAndDequantize, IsBiasedForMinFirst) {
  const std::vector<double> errors =
      QuantizeAndBack(RandomValues(), {}, (kMax - kMin) / 255);
  EXPECT_GT(std::abs(Mean(errors)), 0.1)
      << "TensorFlow now does this right: the transforms need not avoid it any "
         "more";
  EXPECT_LE(LargestMagnitude(errors), 1.01);
}

// So that the codes' range is the one that comes out, not the one that went in.
TEST(QuantizeMinFirst, WidensItsRangeToZeroAndToAHundredth) {
  struct Case {
    float min, max, widened_min, widened_max;
  };
  for (const Case& range :
       {Case{0.5f, 2, 0, 2}, Case{-2, -0.5f, -2, 0}, Case{0, 0, 0, 0.01f},
        Case{1, 1, 0, 1}, Case{0, 1e-5f, 0, 0.01f}}) {
    for (bool constant : {false, true}) {
      const Quantized quantized = RunQuantize(
          {range.widened_min, range.widened_max},
          {"quint8", "MIN_FIRST", false, range.min, range.max, constant});
      EXPECT_EQ(quantized.min, range.widened_min) << range.min;
      EXPECT_EQ(quantized.max, range.widened_max) << range.max;
      EXPECT_THAT(quantized.codes, ElementsAre(0, 255));
    }
  }
}

// Sums as a matmul gives them, each worth kUnit.
constexpr double kUnit = 1e-4;
constexpr float kSumRange = 0x1p31 * kUnit;

std::vector<int> RandomSums(int min, int max) {
  std::mt19937 random(3);
  std::vector<int> sums = {min, max};
  while (sums.size() < 4096) {
    sums.push_back(min + static_cast<int>(random() % (max - min + 1)));
  }
  return sums;
}

// Adds "sums", "sums_min" and "sums_max" and the nodes of `lines`, and runs it.
absl::StatusOr<std::vector<Tensor>> RunOnSums(
    const std::vector<int>& sums, const std::string& lines,
    const std::vector<std::string>& fetches) {
  KernelGraph graph;
  graph.Feed("sums", CodeTensor(tensorflow::DT_QINT32,
                                {static_cast<int64_t>(sums.size())}, sums));
  graph.Constant("sums_min", -kSumRange);
  graph.Constant("sums_max", kSumRange);
  graph.Add(lines);
  return graph.Run(fetches);
}

TEST(RequantizationRange, IsThatOfTheSumsAndOfZeroIfTheyAreAllPositive) {
  struct Case {
    int min, max, wanted_min, wanted_max;
  };
  for (const Case& sums :
       {Case{-60000, 100000, -60000, 100000}, Case{1000, 100000, 0, 100000},
        Case{-5000, -1000, -5000, -1000}}) {
    ASSERT_OK_AND_ASSIGN(
        const auto range,
        RunOnSums(RandomSums(sums.min, sums.max),
                  "range = RequantizationRange(sums, sums_min, sums_max) "
                  "Tinput=qint32",
                  {"range", "range:1"}));
    // The kernel adds half a unit.
    EXPECT_NEAR(ValuesOf(range[0])[0], sums.wanted_min * kUnit, 0.51 * kUnit);
    EXPECT_NEAR(ValuesOf(range[1])[0], sums.wanted_max * kUnit, 0.51 * kUnit);
  }
}

// min + code * (max - min) / 255 is within half a step of the sum.
TEST(Requantize, IsRightForNegativeSumsToo) {
  const std::vector<int> sums = RandomSums(-60000, 100000);
  ASSERT_OK_AND_ASSIGN(
      const auto outputs,
      RunOnSums(sums,
                "min = float{-6}; max = float{10}\n"
                "codes = Requantize(sums, sums_min, sums_max, min, max) "
                "Tinput=qint32 out_type=quint8",
                {"codes", "codes:1", "codes:2"}));
  EXPECT_EQ(ValuesOf(outputs[1])[0], -6);
  EXPECT_EQ(ValuesOf(outputs[2])[0], 10);
  const std::vector<int> codes = Codes(outputs[0]);
  const double step = 16.0 / 255;
  std::vector<double> errors;
  for (int i = 0; i < sums.size(); ++i) {
    errors.push_back((codes[i] * step - 6 - sums[i] * kUnit) / step);
  }
  EXPECT_LE(LargestMagnitude(errors), 0.501);
}

absl::StatusOr<std::vector<Tensor>> DequantizeSums(const std::vector<int>& sums,
                                                   const std::string& mode) {
  return RunOnSums(
      sums,
      absl::Substitute(
          "y = Dequantize(sums, sums_min, sums_max) T=qint32 mode='$0'", mode),
      {"y"});
}

TEST(DequantizeSums, HasNoKernelForScaled) {
  EXPECT_THAT(DequantizeSums(RandomSums(-9, 9), "SCALED"),
              FailsWith(HasSubstr("OpKernel")));
}

TEST(DequantizeSums, IsRightForMinFirst) {
  const std::vector<int> sums = RandomSums(-60000, 100000);
  ASSERT_OK_AND_ASSIGN(const auto outputs, DequantizeSums(sums, "MIN_FIRST"));
  const std::vector<float> values = ValuesOf(outputs[0]);
  for (int i = 0; i < sums.size(); ++i) {
    ASSERT_NEAR(values[i], sums[i] * kUnit, 1e-5) << sums[i];
  }
}

}  // namespace
}  // namespace requant::quantize_test
