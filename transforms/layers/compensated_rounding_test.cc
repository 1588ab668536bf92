#include "transforms/layers/compensated_rounding.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>

#include "graph/testing/testing.h"

namespace requant::compensated_rounding_test {
namespace {

constexpr PairLimit kLimits[] = {PairLimit::kNone, PairLimit::kNeighbours};

struct Layer {
  int64_t rows;
  int64_t columns;
  std::vector<float> weights;
  std::vector<double> moments;
};

std::vector<double> Identity(int64_t rows) {
  std::vector<double> moments(rows * rows, 0.0);
  for (int64_t i = 0; i < rows; ++i) moments[i * rows + i] = 1;
  return moments;
}

// Returns normally distributed weights, and inputs that mix a few hidden ones.
Layer RandomLayer(int64_t rows, int64_t columns, int hidden = 3) {
  std::mt19937 random(rows * 1000 + columns);
  std::normal_distribution<double> normal;
  Layer layer{rows, columns, std::vector<float>(rows * columns),
              Identity(rows)};
  for (float& weight : layer.weights) weight = 0.1f * normal(random);
  for (int64_t i = 0; i < rows; ++i) layer.moments[i * rows + i] = 0.05;
  std::vector<double> mixture(rows);
  for (int h = 0; h < hidden; ++h) {
    for (double& factor : mixture) factor = normal(random);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < rows; ++j) {
        layer.moments[i * rows + j] += mixture[i] * mixture[j];
      }
    }
  }
  return layer;
}

absl::StatusOr<CompensatedRounding> RoundLayer(const Layer& layer,
                                               PairLimit limit,
                                               int threads = 1) {
  RoundingOptions options;
  options.pair_limit = limit;
  options.threads = threads;
  return RoundCompensated(layer.weights, layer.rows, layer.columns,
                          layer.moments, options);
}

// Returns tr(D^T H D) from its definition.
double Loss(const Layer& layer, const std::vector<int8_t>& codes, double scale,
            double damping) {
  double loss = 0;
  for (int64_t c = 0; c < layer.columns; ++c) {
    const auto error = [&](int64_t row) {
      const int64_t at = row * layer.columns + c;
      return layer.weights[at] - codes[at] * scale;
    };
    for (int64_t i = 0; i < layer.rows; ++i) {
      loss += damping * error(i) * error(i);
      for (int64_t j = 0; j < layer.rows; ++j) {
        loss += error(i) * layer.moments[i * layer.rows + j] * error(j);
      }
    }
  }
  return loss;
}

std::vector<int8_t> Nearest(const Layer& layer, int levels) {
  float largest = 0;
  for (const float w : layer.weights) largest = std::max(largest, std::fabs(w));
  std::vector<int8_t> codes;
  for (const float w : layer.weights) {
    codes.push_back(std::rint(w * (static_cast<double>(levels) / largest)));
  }
  return codes;
}

int SafeLevels(PairLimit limit) { return limit == PairLimit::kNone ? 127 : 64; }

// Returns the largest |sum| of the codes of two neighbours in a column.
int LargestPairSum(const std::vector<int8_t>& codes, int64_t columns) {
  int largest = 0;
  const int64_t rows = codes.size() / columns;
  for (int64_t row = 0; row + 1 < rows; ++row) {
    for (int64_t c = 0; c < columns; ++c) {
      largest = std::max(largest, std::abs(codes[row * columns + c] +
                                           codes[(row + 1) * columns + c]));
    }
  }
  return largest;
}

TEST(RoundCompensated, ReportsTheLossOfItsCodes) {
  for (const PairLimit limit : kLimits) {
    const Layer layer = RandomLayer(150, 70);
    ASSERT_OK_AND_ASSIGN(const auto result, RoundLayer(layer, limit));
    const double loss = Loss(layer, result.codes, result.scale, result.damping);
    EXPECT_NEAR(result.loss, loss, 1e-3 * loss);
  }
}

TEST(RoundCompensated, ReportsTheLossOfTheNearestCodes) {
  for (const PairLimit limit : kLimits) {
    const Layer layer = RandomLayer(150, 70);
    ASSERT_OK_AND_ASSIGN(const auto result, RoundLayer(layer, limit));
    const int levels = SafeLevels(limit);
    const double loss =
        Loss(layer, Nearest(layer, levels),
             result.scale * result.levels / levels, result.damping);
    EXPECT_NEAR(result.nearest_loss, loss, 1e-3 * loss);
  }
}

TEST(RoundCompensated, OutputsOfCorrelatedInputsAreMuchBetterThanNearest) {
  for (const PairLimit limit : kLimits) {
    ASSERT_OK_AND_ASSIGN(const auto result,
                         RoundLayer(RandomLayer(150, 70), limit));
    EXPECT_LT(result.loss, 0.2 * result.nearest_loss);
  }
}

TEST(RoundCompensated, IsNeverWorseThanNearest) {
  for (const PairLimit limit : kLimits) {
    for (int64_t rows = 1; rows <= 12; ++rows) {
      for (int64_t columns = 1; columns <= 20; ++columns) {
        const Layer layer = RandomLayer(rows, columns);
        ASSERT_OK_AND_ASSIGN(const auto result, RoundLayer(layer, limit));
        EXPECT_LE(result.loss, result.nearest_loss);
        EXPECT_LE(Loss(layer, result.codes, result.scale, result.damping),
                  result.nearest_loss * 1.001 + 1e-12);
      }
    }
  }
}

// Returns the least loss of any codes near the weights, at 127 levels.
double LeastLoss(const Layer& layer, double scale, double damping) {
  const std::vector<int8_t> nearest = Nearest(layer, 127);
  constexpr int kReach = 3, kChoices = 2 * kReach + 1;
  int combinations = 1;
  for (int64_t i = 0; i < layer.rows; ++i) combinations *= kChoices;
  double least = std::numeric_limits<double>::infinity();
  for (int n = 0; n < combinations; ++n) {
    std::vector<int8_t> codes = nearest;
    int rest = n;
    bool inside = true;
    for (int8_t& code : codes) {
      const int moved = code + rest % kChoices - kReach;
      inside &= std::abs(moved) <= 127;
      code = moved;
      rest /= kChoices;
    }
    if (inside) least = std::min(least, Loss(layer, codes, scale, damping));
  }
  return least;
}

// For one column of two or three rows, the greedy codes are nearly the best of
// all, and usually the best.
TEST(RoundCompensated, TinyColumnsAreNearlyOptimal) {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> uniform(-1, 1);
  int optimal = 0;
  constexpr int kColumns = 100;
  for (int i = 0; i < kColumns; ++i) {
    Layer layer = RandomLayer(2 + i % 2, 1, /*hidden=*/1);
    for (float& weight : layer.weights) weight = uniform(random);
    ASSERT_OK_AND_ASSIGN(const auto result,
                         RoundLayer(layer, PairLimit::kNone));
    const double least = LeastLoss(layer, result.scale, result.damping);
    EXPECT_GE(result.loss, 0.999 * least);
    optimal += result.loss <= 1.001 * least;
  }
  EXPECT_GE(optimal, 0.7 * kColumns);
}

// The second row has the same input and compensates for rounding the first.
TEST(RoundCompensated, ADuplicateOfAnInputMakesUpForItsError) {
  const Layer layer{3, 1, {127, 10.4f, 10.4f}, {1, 0, 0, 0, 9, 9, 0, 9, 9}};
  ASSERT_OK_AND_ASSIGN(const auto result, RoundLayer(layer, PairLimit::kNone));
  EXPECT_THAT(result.codes, ElementsAre(127, 10, 11));
  EXPECT_EQ(result.scale, 1);
}

TEST(RoundCompensated, IndependentInputsGetTheNearestCodes) {
  Layer layer = RandomLayer(90, 65);
  layer.moments = Identity(90);
  ASSERT_OK_AND_ASSIGN(const auto result, RoundLayer(layer, PairLimit::kNone));
  EXPECT_EQ(result.codes, Nearest(layer, 127));
  EXPECT_EQ(result.levels, 127);
  EXPECT_EQ(result.clipped, 0);
}

TEST(RoundCompensated, MomentsThatAreAllZeroCountAsTheIdentity) {
  Layer layer = RandomLayer(5, 4);
  layer.moments.assign(25, 0.0);
  ASSERT_OK_AND_ASSIGN(const auto result, RoundLayer(layer, PairLimit::kNone));
  EXPECT_EQ(result.codes, Nearest(layer, 127));
}

TEST(RoundCompensated, AnInputThatNeverVariesGetsTheNearestCodes) {
  Layer layer = RandomLayer(3, 8);
  for (int i = 0; i < 3; ++i) {
    layer.moments[3 + i] = layer.moments[3 * i + 1] = 0;
  }
  ASSERT_OK_AND_ASSIGN(const auto result, RoundLayer(layer, PairLimit::kNone));
  const std::vector<int8_t> nearest = Nearest(layer, 127);
  for (int c = 0; c < 8; ++c) EXPECT_EQ(result.codes[8 + c], nearest[8 + c]);
}

TEST(RoundCompensated, PairsKeepTheirLimit) {
  for (const int64_t rows : {1, 2, 3, 64, 65, 131}) {
    const Layer layer = RandomLayer(rows, 33);
    ASSERT_OK_AND_ASSIGN(const auto result,
                         RoundLayer(layer, PairLimit::kNeighbours));
    EXPECT_LE(LargestPairSum(result.codes, 33), 128);
  }
}

// If few pairs are large, the limit is met by clipping, not by using fewer
// levels.
TEST(RoundCompensated, AClippedCodeIsMadeUpForByOtherRows) {
  Layer layer = RandomLayer(200, 20);
  layer.weights[0] = 0.6f;
  layer.weights[20] = 0.1f;
  ASSERT_OK_AND_ASSIGN(const auto result,
                       RoundLayer(layer, PairLimit::kNeighbours));
  EXPECT_GT(result.levels, 64);
  EXPECT_GT(result.clipped, 0);
  EXPECT_EQ(LargestPairSum(result.codes, 20), 128);
  EXPECT_LT(result.loss, result.nearest_loss);
}

TEST(RoundCompensated, LargePairsEverywhereLowerTheLevels) {
  Layer layer{8, 16, std::vector<float>(128, 1.0f), Identity(8)};
  ASSERT_OK_AND_ASSIGN(const auto result,
                       RoundLayer(layer, PairLimit::kNeighbours));
  EXPECT_EQ(result.levels, 64);
  EXPECT_THAT(result.codes, Each(64));
}

TEST(RoundCompensated, DoesNotDependOnTheNumberOfThreads) {
  for (const PairLimit limit : kLimits) {
    const Layer layer = RandomLayer(301, 203);
    const auto one = RoundLayer(layer, limit, 1);
    const auto three = RoundLayer(layer, limit, 3);
    ASSERT_TRUE(one.ok() && three.ok());
    EXPECT_EQ(one->codes, three->codes);
    EXPECT_EQ(one->levels, three->levels);
    EXPECT_EQ(one->loss, three->loss);
    EXPECT_EQ(one->nearest_loss, three->nearest_loss);
    EXPECT_EQ(one->clipped, three->clipped);
  }
}

// A column's codes depend on the other columns only through the scale.
TEST(RoundCompensated, ColumnsAreIndependent) {
  const Layer layer = RandomLayer(70, 130);
  ASSERT_OK_AND_ASSIGN(const auto whole, RoundLayer(layer, PairLimit::kNone));
  Layer part{70, 2, {}, layer.moments};
  float largest = 0;
  for (const float w : layer.weights) largest = std::max(largest, std::fabs(w));
  for (int row = 0; row < 70; ++row) {
    part.weights.push_back(layer.weights[row * 130 + 128]);
    part.weights.push_back(row == 0 ? largest : 0);
  }
  ASSERT_OK_AND_ASSIGN(const auto alone, RoundLayer(part, PairLimit::kNone));
  for (int row = 0; row < 70; ++row) {
    EXPECT_EQ(alone.codes[row * 2], whole.codes[row * 130 + 128]);
  }
}

TEST(RoundCompensated, UnitsOfTheInputsDoNotMatter) {
  Layer layer = RandomLayer(40, 30);
  const auto result = RoundLayer(layer, PairLimit::kNeighbours);
  for (double& moment : layer.moments) moment *= std::ldexp(1.0, 300);
  const auto large = RoundLayer(layer, PairLimit::kNeighbours);
  ASSERT_TRUE(result.ok() && large.ok());
  EXPECT_EQ(large->codes, result->codes);
}

TEST(RoundCompensated, DampsMoreWhatIsNotQuiteACovariance) {
  const Layer layer{2, 1, {1, 0.3f}, {1, 1.05, 1.05, 1}};
  ASSERT_OK_AND_ASSIGN(const auto result, RoundLayer(layer, PairLimit::kNone));
  EXPECT_DOUBLE_EQ(result.damping, 0.1);
}

TEST(RoundCompensated, RefusesWhatIsNoCovariance) {
  const auto refuses = [](const std::vector<double>& moments, const char* why) {
    EXPECT_THAT(RoundLayer({2, 1, {1, 1}, moments}, PairLimit::kNone),
                FailsWith(HasSubstr(why)));
  };
  refuses({1, 100, 100, 1}, "not positive semidefinite");
  refuses({1, 0, 0, -1}, "input 1 has the variance -1");
  refuses({0, 1, 1, 0}, "no variance");
  refuses({1, 0, std::nan(""), 1}, "inputs 1 and 0 is nan");
  refuses({1e308, 0, 0, 1e308}, "too large");
}

TEST(RoundCompensated, RefusesWeightsWithoutAScale) {
  const auto refuses = [](float weight, const char* why) {
    EXPECT_THAT(RoundLayer({2, 1, {0, weight}, Identity(2)}, PairLimit::kNone),
                FailsWith(HasSubstr(why)));
  };
  refuses(0, "all zero");
  refuses(1e-44f, "too small");
  refuses(std::nanf(""), "is nan");
  refuses(std::numeric_limits<float>::infinity(), "is inf");
}

TEST(RoundCompensated, RefusesSizesThatDoNotFit) {
  const std::vector<float> weights(6, 1.0f);
  const auto refuses = [&](int64_t rows, int64_t columns, size_t moments) {
    const auto result =
        RoundCompensated(weights, rows, columns,
                         std::vector<double>(moments, 1.0), RoundingOptions());
    EXPECT_THAT(result, FailsWith(HasSubstr("has 6 weights and")))
        << rows << " by " << columns;
  };
  refuses(2, 2, 4);
  refuses(2, 3, 9);
  refuses(0, 3, 0);
  refuses(-2, -3, 4);
  refuses(int64_t{1} << 62, 4, 4);
}

}  // namespace
}  // namespace requant::compensated_rounding_test
