// Tests what transforms rely on in QuantizeV2, Dequantize, RequantizationRange
// and Requantize, and where two kernels of one op disagree. The tests of
// quantize_embeddings show that QuantizeV2 quantizes as tables are quantized.

#include <cmath>
#include <numeric>
#include <random>

#include "absl/strings/substitute.h"
#include "graph/const_node.h"
#include "tests/kernels/int8_layer.h"

namespace requant::quantize_test {
namespace {

constexpr int kCount = 1 << 16;
constexpr float kMin = -1.37f;
constexpr float kMax = 2.91f;

// Returns values, some of which are beyond `min` and kMax.
std::vector<float> RandomValues(float min) {
  std::mt19937 random(2);
  std::vector<float> values;
  for (int i = 0; i < kCount; ++i) {
    const double share = random() / 0x1p32;
    values.push_back(min + (share * 1.1 - 0.05) * (kMax - min));
  }
  return values;
}

// A QuantizeV2 between `min` and kMax.
struct Quantize {
  std::string type;
  std::string mode;
  float min;
  bool narrow_range = false;
  // Whether the input is a constant, not fed.
  bool constant = false;
};

const Quantize kMinFirst = {"quint8", "MIN_FIRST", kMin};
const Quantize kSymmetric = {"qint8", "SCALED", -kMax, true};

Quantize OfConstant(Quantize quantize) {
  quantize.constant = true;
  return quantize;
}

struct Quantized {
  std::vector<int> codes;
  float min;
  float max;
  // The errors, in steps, of the values that are in range.
  std::vector<double> errors;
};

Quantized RunQuantize(const Quantize& quantize) {
  const std::vector<float> values = RandomValues(quantize.min);
  const Tensor x = TensorOf<float>({kCount}, values);
  GraphDef graph = GraphFromText(absl::Substitute(
      R"(q = QuantizeV2(x, min, max) T=$0 mode='$1' narrow_range=$2
             round_mode='$3'
         back = Dequantize(q, q:1, q:2) T=$0 mode='$1' narrow_range=$2)",
      quantize.type, quantize.mode, quantize.narrow_range,
      quantize.mode == "SCALED" ? "HALF_TO_EVEN" : "HALF_AWAY_FROM_ZERO"));
  *graph.add_node() = MakeScalarConst("min", quantize.min);
  *graph.add_node() = MakeScalarConst("max", kMax);
  std::vector<std::pair<std::string, Tensor>> feeds;
  if (quantize.constant) {
    *graph.add_node() = MakeConst("x", x);
  } else {
    AddNodes("x = Placeholder dtype=float", &graph);
    feeds = {{"x", x}};
  }
  const auto outputs = MustRunGraph(graph, feeds, {"q", "q:1", "q:2", "back"});
  Quantized quantized = {
      Codes(outputs[0]), ValuesOf(outputs[1])[0], ValuesOf(outputs[2])[0], {}};
  const std::vector<float> back = ValuesOf(outputs[3]);
  const double step =
      (kMax - quantize.min) / (quantize.narrow_range ? 254 : 255);
  for (int i = 0; i < kCount; ++i) {
    if (values[i] < quantize.min || values[i] > kMax) continue;
    quantized.errors.push_back((back[i] - values[i]) / step);
  }
  return quantized;
}

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / values.size();
}

double LargestMagnitude(const std::vector<double>& values) {
  return LargestDifference(values, std::vector<double>(values.size(), 0));
}

// For this reason, tables are never quantized by running QuantizeV2 on them.
TEST(QuantizeMinFirst, DiffersByOneCodeBetweenItsTwoKernels) {
  const std::vector<int> eigen = RunQuantize(OfConstant(kMinFirst)).codes;
  const std::vector<int> one_dnn = RunQuantize(kMinFirst).codes;
  int differing = 0;
  for (int i = 0; i < kCount; ++i) {
    ASSERT_LE(std::abs(eigen[i] - one_dnn[i]), 1);
    differing += eigen[i] != one_dnn[i];
  }
  EXPECT_GT(differing, kCount / 100)
      << "TensorFlow's two kernels agree now: constants may be folded";
}

TEST(QuantizeAndDequantize, IsBiasedForMinFirst) {
  const Quantized quantized = RunQuantize(kMinFirst);
  EXPECT_GT(std::abs(Mean(quantized.errors)), 0.1)
      << "TensorFlow now does this right: the transforms need not avoid it any "
         "more";
  EXPECT_LE(LargestMagnitude(quantized.errors), 1.01);
}

TEST(QuantizeAndDequantize, IsRightForScaledInANarrowRange) {
  for (const Quantize& quantize : {kSymmetric, OfConstant(kSymmetric)}) {
    const Quantized quantized = RunQuantize(quantize);
    EXPECT_LE(LargestMagnitude(quantized.errors), 0.501);
    EXPECT_LE(std::abs(Mean(quantized.errors)), 0.01);
    EXPECT_EQ(quantized.min, -kMax);
    EXPECT_EQ(quantized.max, kMax);
  }
}

// MatMul kernels use max/127 as the scale, so a range that starts at code -128
// makes every weight too large by a factor of 128/127.
TEST(QuantizeScaled, WritesALopsidedRangeUnlessItIsNarrow) {
  const Quantized quantized =
      RunQuantize(OfConstant({"qint8", "SCALED", -kMax}));
  EXPECT_NE(quantized.min, -quantized.max);
}

// The unit of sums such as a matmul gives.
constexpr double kUnit = 1e-4;

std::vector<int> RandomSums(int min, int max) {
  std::mt19937 random(3);
  std::vector<int> sums = {min, max};
  while (sums.size() < 4096) {
    sums.push_back(min + static_cast<int>(random() % (max - min + 1)));
  }
  return sums;
}

// Runs the nodes of `lines`, which read "sums", "sums_min" and "sums_max".
std::vector<Tensor> RunOnSums(const std::vector<int>& sums,
                              const std::string& lines,
                              const std::vector<std::string>& fetches) {
  constexpr float kSumRange = 0x1p31 * kUnit;
  GraphDef graph =
      GraphFromText(absl::StrCat("sums = Placeholder dtype=qint32\n", lines));
  *graph.add_node() = MakeScalarConst("sums_min", -kSumRange);
  *graph.add_node() = MakeScalarConst("sums_max", kSumRange);
  return MustRunGraph(
      graph,
      {{"sums", CodeTensor(tensorflow::DT_QINT32,
                           {static_cast<int64_t>(sums.size())}, sums)}},
      fetches);
}

TEST(RequantizationRange, IsThatOfTheSumsAndOfZeroIfTheyAreAllPositive) {
  struct Case {
    int min, max, wanted_min, wanted_max;
  };
  for (const Case& sums :
       {Case{-60000, 100000, -60000, 100000}, Case{1000, 100000, 0, 100000},
        Case{-5000, -1000, -5000, -1000}}) {
    const auto range =
        RunOnSums(RandomSums(sums.min, sums.max),
                  "range = RequantizationRange(sums, sums_min, sums_max) "
                  "Tinput=qint32",
                  {"range", "range:1"});
    // The kernel adds half a unit.
    EXPECT_NEAR(ValuesOf(range[0])[0], sums.wanted_min * kUnit, 0.51 * kUnit);
    EXPECT_NEAR(ValuesOf(range[1])[0], sums.wanted_max * kUnit, 0.51 * kUnit);
  }
}

// min + code * (max - min) / 255 is within half a step of the sum.
TEST(Requantize, IsRightForNegativeSumsToo) {
  const std::vector<int> sums = RandomSums(-60000, 100000);
  const auto outputs =
      RunOnSums(sums,
                "min = float{-6}; max = float{10}\n"
                "codes = Requantize(sums, sums_min, sums_max, min, max) "
                "Tinput=qint32 out_type=quint8",
                {"codes", "codes:1", "codes:2"});
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

}  // namespace
}  // namespace requant::quantize_test
