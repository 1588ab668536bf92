#include "transforms/layers/quantized_weights.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>

#include "absl/strings/substitute.h"
#include "graph/const_node.h"
#include "graph/testing/testing.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"

namespace requant::quantized_weights_test {
namespace {

using tensorflow::DataType;
using tensorflow::TensorShape;

// Returns weights. If `flat`, they are uniform, so that many pairs are too
// large at 127 levels; otherwise they are normal, as in a trained layer.
Tensor RandomMatrix(int64_t rows, int64_t columns, bool flat = false) {
  std::mt19937 random(rows * 1000 + columns);
  std::normal_distribution<float> normal(0, 0.05f);
  std::uniform_real_distribution<float> uniform(-0.2f, 0.2f);
  Tensor matrix(tensorflow::DT_FLOAT, {rows, columns});
  auto values = matrix.flat<float>();
  for (int64_t i = 0; i < values.size(); ++i) {
    values(i) = flat ? uniform(random) : normal(random);
  }
  return matrix;
}

int Code(const QuantizedWeights& weights, int64_t row, int64_t column) {
  return weights.codes.matrix<tensorflow::qint8>()(row, column).value;
}

// Returns all codes row by row.
std::vector<int> Codes(const QuantizedWeights& weights) {
  std::vector<int> codes;
  for (auto code : ValuesOf<tensorflow::qint8>(weights.codes)) {
    codes.push_back(code.value);
  }
  return codes;
}

int LargestPairSum(const QuantizedWeights& weights) {
  int largest = 0;
  for (int64_t row = 0; row + 1 < weights.codes.dim_size(0); ++row) {
    for (int64_t j = 0; j < weights.codes.dim_size(1); ++j) {
      largest = std::max(
          largest, std::abs(Code(weights, row, j) + Code(weights, row + 1, j)));
    }
  }
  return largest;
}

double RelativeError(const Tensor& weights, const QuantizedWeights& result) {
  double error = 0, norm = 0;
  for (int64_t row = 0; row < weights.dim_size(0); ++row) {
    for (int64_t j = 0; j < weights.dim_size(1); ++j) {
      const double w = weights.matrix<float>()(row, j);
      const double got = Code(result, row, j) * (result.range / 127.0);
      error += (w - got) * (w - got);
      norm += w * w;
    }
  }
  return std::sqrt(error / norm);
}

TEST(WeightRuleOf, IsByWhetherTheTargetSumsExactly) {
  for (const char* target : {"any", "avx2", "avx512"}) {
    EXPECT_EQ(*WeightRuleOf(target), WeightRule::kPairsFitInt16) << target;
  }
  for (const char* target : {"vnni", "avx_vnni", "amx"}) {
    EXPECT_EQ(*WeightRuleOf(target), WeightRule::kAnyCode) << target;
  }
  EXPECT_THAT(WeightRuleOf("sse"),
              FailsWith(HasSubstr("no target \"sse\"; there are any, avx2")));
}

TEST(QuantizeWeights, AnyCodeIsTheNearestOf127Levels) {
  const Tensor weights = RandomMatrix(7, 9);
  const QuantizedWeights result =
      QuantizeWeights(weights, WeightRule::kAnyCode);
  float largest = 0;
  for (int i = 0; i < 63; ++i) {
    largest = std::max(largest, std::fabs(weights.flat<float>()(i)));
  }
  EXPECT_EQ(result.range, largest);
  for (int i = 0; i < 63; ++i) {
    EXPECT_EQ(result.codes.flat<tensorflow::qint8>()(i).value,
              std::rint(weights.flat<float>()(i) * (127 / largest)));
  }
}

// tests/kernels/matmul_test.cc shows that then no sum saturates.
TEST(QuantizeWeights, NoTwoNeighboursExceedTheSafeSum) {
  for (const bool flat : {false, true}) {
    for (const int rows : {1, 2, 3, 64, 65}) {
      const Tensor weights = RandomMatrix(rows, 33, flat);
      for (const int levels : {64, 67, 100, 127}) {
        EXPECT_LE(LargestPairSum(QuantizeWeights(
                      weights, WeightRule::kPairsFitInt16, levels)),
                  kMaxPairSum);
      }
    }
  }
}

TEST(QuantizeWeights, ALoweredPairIsTheNearestAllowedOne) {
  for (const float sign : {1.0f, -1.0f}) {
    const Tensor weights =
        TensorOf<float>({2, 3}, {127 * sign, 100 * sign, -127 * sign,  //
                                 127 * sign, 60 * sign, 127 * sign});
    const QuantizedWeights result =
        QuantizeWeights(weights, WeightRule::kPairsFitInt16, 127);
    EXPECT_THAT(Codes(result), ElementsAre(64 * sign, 84 * sign, -127 * sign,
                                           64 * sign, 44 * sign, 127 * sign));
    EXPECT_EQ(result.lowered, 2);
  }
}

TEST(QuantizeWeights, ACodeIsNeverLoweredPastItsNeighboursNeed) {
  // The second code stays as the first pair left it.
  const QuantizedWeights result = QuantizeWeights(
      TensorOf<float>({3, 1}, {127, 127, 70}), WeightRule::kPairsFitInt16, 127);
  EXPECT_THAT(Codes(result), Each(64));
}

TEST(QuantizeWeights, ThereAreAsManyLevelsAsTheLargestPairAllows) {
  const auto levels = [](const std::vector<float>& column) {
    const TensorShape shape({static_cast<int64_t>(column.size()), 1});
    return QuantizeWeights(TensorOf(shape, column), WeightRule::kPairsFitInt16)
        .levels;
  };
  EXPECT_EQ(levels({1, 1}), 64);
  EXPECT_EQ(levels({1, 0.5}), 85);
  EXPECT_EQ(levels({-1, -0.5}), 85);
  EXPECT_EQ(levels({1, -1}), 127);
  EXPECT_EQ(levels({1, 0, 1}), 127);
  EXPECT_EQ(levels({1}), 127);
}

TEST(QuantizeWeights, SafePairsCostNoMoreThan64Levels) {
  for (const bool flat : {false, true}) {
    const Tensor weights = RandomMatrix(101, 40, flat);
    const QuantizedWeights best =
        QuantizeWeights(weights, WeightRule::kPairsFitInt16);
    const QuantizedWeights simple =
        QuantizeWeights(weights, WeightRule::kPairsFitInt16, kPairSafeLevels);
    EXPECT_EQ(simple.lowered, 0);
    EXPECT_LE(best.relative_error, simple.relative_error);
    if (!flat) {
      EXPECT_LT(best.relative_error, 0.9 * simple.relative_error);
    }
  }
}

TEST(QuantizeWeights, ReportsItsError) {
  for (const WeightRule rule :
       {WeightRule::kAnyCode, WeightRule::kPairsFitInt16}) {
    const Tensor weights = RandomMatrix(51, 20, /*flat=*/true);
    const QuantizedWeights result = QuantizeWeights(weights, rule);
    EXPECT_NEAR(result.relative_error, RelativeError(weights, result), 1e-6);
  }
}

// Returns placeholders "x0", "x1", … -> QuantizeV2 "q0", "q1", …, which
// therefore run in the kernel that models use.
GraphDef QuantizeGraph(const CodeFormula& how, int count) {
  GraphDef graph;
  *graph.add_node() = MakeScalarConst("min", how.min);
  *graph.add_node() = MakeScalarConst("max", how.max);
  for (int i = 0; i < count; ++i) {
    AddNodes(
        absl::Substitute(R"(
      x$0 = Placeholder dtype=float
      q$0 = QuantizeV2(x$0, min, max) T=$1 mode='$2' round_mode='$3'
    )",
                         i, tensorflow::DataTypeString(how.type),
                         how.scaled ? "SCALED" : "MIN_FIRST",
                         how.scaled ? "HALF_TO_EVEN" : "HALF_AWAY_FROM_ZERO"),
        &graph);
  }
  return graph;
}

// Returns values inside and outside the range, at and next to the midpoint of
// two codes, and zeros of both signs.
Tensor HardValues(const CodeFormula& formula, const TensorShape& shape) {
  std::mt19937 random(20261116);
  const float width = formula.max - formula.min;
  std::uniform_real_distribution<float> anywhere(formula.min - width / 4,
                                                 formula.max + width / 4);
  std::uniform_int_distribution<int> code(-130, 260);
  const float step = formula.scaled && formula.type == tensorflow::DT_QINT8
                         ? formula.max / 127.5f
                         : (formula.scaled ? formula.max : width) / 255;
  Tensor values(tensorflow::DT_FLOAT, shape);
  auto flat = values.flat<float>();
  for (int64_t i = 0; i < flat.size(); ++i) {
    const float middle = (formula.scaled ? 0 : formula.min) +
                         (static_cast<float>(code(random)) + 0.5f) * step;
    switch (i % 6) {
      case 0:
      case 1:
        flat(i) = anywhere(random);
        break;
      case 2:
        flat(i) = middle;
        break;
      case 3:
        flat(i) = std::nextafter(middle, formula.max);
        break;
      case 4:
        flat(i) = std::nextafter(middle, formula.min);
        break;
      default:
        flat(i) = i % 12 < 6 ? 0.0f : -0.0f;
    }
  }
  return values;
}

constexpr std::pair<float, float> kRanges[] = {
    {-1.3f, 2.7f},         {0.0f, 1.0f}, {-0.21f, 0.1f},  {-0.5f, 0.5f},
    {-0.31415927f, 0.29f}, {0.5f, 3.0f}, {-1e-3f, 1e-3f}, {-7e4f, 3e5f}};

std::vector<CodeFormula> Quantizations() {
  std::vector<CodeFormula> all;
  for (const DataType type : {tensorflow::DT_QUINT8, tensorflow::DT_QINT8}) {
    for (const bool scaled : {false, true}) {
      for (const auto& [min, max] : kRanges) {
        all.push_back({type, scaled, min, max});
      }
    }
  }
  return all;
}

// Returns the formula for the range that the kernel itself says it used.
CodeFormula KernelFormula(const CodeFormula& how) {
  const auto range = MustRunGraph(QuantizeGraph(how, 1),
                                  {{"x0", Tensor(tensorflow::DT_FLOAT, {1})}},
                                  {"q0:1", "q0:2"});
  return {how.type, how.scaled, range[0].scalar<float>()(),
          range[1].scalar<float>()()};
}

TEST(QuantizedCodes, AreThoseOfTheKernelAtRunTime) {
  // oneDNN chooses its implementation by the shape.
  const std::vector<TensorShape> shapes = {
      {1},        {13},       {1, 13},    {3, 17},         {512, 13},
      {100, 845}, {4096, 32}, {40, 3, 5}, {2, 3, 4, 5, 2}, {0, 13}};
  for (const CodeFormula& how : Quantizations()) {
    const CodeFormula formula = KernelFormula(how);
    std::vector<std::pair<std::string, Tensor>> feeds;
    std::vector<std::string> fetches;
    for (size_t i = 0; i < shapes.size(); ++i) {
      feeds.emplace_back(absl::StrCat("x", i), HardValues(formula, shapes[i]));
      fetches.push_back(absl::StrCat("q", i));
    }
    ASSERT_OK_AND_ASSIGN(
        const auto run,
        RunGraph(QuantizeGraph(how, shapes.size()), feeds, fetches));
    for (size_t i = 0; i < shapes.size(); ++i) {
      const Tensor codes = QuantizedCodes(formula, feeds[i].second);
      ASSERT_EQ(codes.dtype(), run[i].dtype());
      EXPECT_EQ(codes.tensor_data(), run[i].tensor_data())
          << tensorflow::DataTypeString(how.type) << " scaled " << how.scaled
          << " [" << how.min << ", " << how.max << "] "
          << shapes[i].DebugString();
    }
  }
}

TEST(QuantizedCodes, RoundHalfToEvenAndClip) {
  const CodeFormula formula = {tensorflow::DT_QUINT8, false, -5, 250};
  const Tensor codes = QuantizedCodes(
      formula, TensorOf<float>({6}, {0.5f, 1.5f, -4.5f, -9, 249.4f, 1000}));
  const int expected[] = {6, 6, 0, 0, 254, 255};
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(codes.flat<tensorflow::quint8>()(i).value, expected[i]) << i;
  }
}

TEST(HasScale, IsFalseForAnEmptyRange) {
  EXPECT_TRUE(HasScale({tensorflow::DT_QUINT8, false, 0, 1e-3f}));
  EXPECT_FALSE(HasScale({tensorflow::DT_QUINT8, false, 0, 0}));
  EXPECT_FALSE(HasScale({tensorflow::DT_QUINT8, true, 0, 0}));
  EXPECT_FALSE(HasScale({tensorflow::DT_QUINT8, false, 0, 1e-40f}));
}

}  // namespace
}  // namespace requant::quantized_weights_test
