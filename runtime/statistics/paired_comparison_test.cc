#include "runtime/statistics/paired_comparison.h"

#include <cmath>
#include <limits>
#include <random>
#include <tuple>

#include "base/testing/testing.h"

namespace requant::paired_comparison_test {
namespace {

using testing::NanSensitiveDoubleEq;
using testing::Pointwise;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr PredictionFormat kProbability = {PredictionSpec::PROBABILITY, 1, 0.5};
constexpr PredictionFormat kTwoProbabilities = {PredictionSpec::PROBABILITIES,
                                                2, 0.5};
constexpr PredictionFormat kTwoScores = {PredictionSpec::SCORES, 2, 0.5};
constexpr PredictionFormat kThreeScores = {PredictionSpec::SCORES, 3, 0.5};
constexpr PredictionFormat kValue = {PredictionSpec::VALUE, 1, 0.5};

Comparison Compare(const PredictionFormat& format,
                   const std::vector<float>& baseline,
                   const std::vector<float>& candidate,
                   const std::vector<double>& labels,
                   int64_t first_record = 0) {
  PairedComparison comparison(format);
  comparison.Add(first_record, baseline, candidate, labels);
  return comparison.Result();
}

void ExpectInterval(const Interval& interval, double low, double high) {
  EXPECT_NEAR(interval.low(), low, 1e-9);
  EXPECT_NEAR(interval.high(), high, 1e-9);
}

// Two tables from the literature on paired proportions (airway reaction before
// and after transplantation, Bentur et al. 2009; response before and after
// consolidation, Cavo et al. 2012). The limits were computed in Python.
TEST(PairedDifferenceInterval, IsThatOfPublishedTables) {
  ExpectInterval(PairedDifferenceInterval(21, 1, 7), -0.508359307,
                 -0.013379824);
  ExpectInterval(PairedDifferenceInterval(161, 6, 16), -0.119498811,
                 -0.003200575);
}

TEST(PairedDifferenceInterval, HasAWidthWhenNoPairDiffers) {
  ExpectInterval(PairedDifferenceInterval(1, 0, 0), -0.923935883, 0.923935883);
  ExpectInterval(PairedDifferenceInterval(100, 0, 0), -0.027174585,
                 0.027174585);
  ExpectInterval(PairedDifferenceInterval(200000, 0, 0), -0.000013859,
                 0.000013859);
  ExpectInterval(PairedDifferenceInterval(0, 0, 0), -1, 1);
}

TEST(PairedDifferenceInterval, StaysBetweenMinusOneAndOne) {
  ExpectInterval(PairedDifferenceInterval(10, 10, 0), 0.520579558, 1);
  ExpectInterval(PairedDifferenceInterval(10, 0, 10), -1, -0.520579558);
}

TEST(PairedDifferenceInterval, ContainsTheObservedDifference) {
  for (int n = 1; n <= 40; ++n) {
    for (int up = 0; up <= n; ++up) {
      for (int down = 0; up + down <= n; ++down) {
        const Interval interval = PairedDifferenceInterval(n, up, down);
        const double observed = static_cast<double>(up - down) / n;
        EXPECT_LE(interval.low(), observed) << n << " " << up << " " << down;
        EXPECT_GE(interval.high(), observed) << n << " " << up << " " << down;
      }
    }
  }
}

struct Chances {
  int records;
  double only_candidate;
  double only_baseline;
};

class CoverageTest : public testing::TestWithParam<Chances> {};

TEST_P(CoverageTest, IsAtLeast94Percent) {
  constexpr int kDraws = 20000;
  const Chances& chances = GetParam();
  std::mt19937_64 random(17);
  std::binomial_distribution<int> up(chances.records, chances.only_candidate);
  int covered = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    const int gained = up(random);
    std::binomial_distribution<int> down(
        chances.records - gained,
        chances.only_baseline / (1 - chances.only_candidate));
    const Interval interval =
        PairedDifferenceInterval(chances.records, gained, down(random));
    const double truth = chances.only_candidate - chances.only_baseline;
    covered += interval.low() <= truth && truth <= interval.high();
  }
  EXPECT_GE(covered, 0.94 * kDraws);
}

INSTANTIATE_TEST_SUITE_P(
    PairedDifferenceInterval, CoverageTest,
    testing::Values(
        // Few records.
        Chances{20, 0.1, 0.1}, Chances{50, 0.02, 0.1}, Chances{50, 0.3, 0.2},
        // Hardly any differing pair.
        Chances{1000, 0.0005, 0.0005}, Chances{10000, 0.0001, 0.0003},
        // Changes that go one way.
        Chances{10000, 0, 0.001}, Chances{200000, 0, 0.0001},
        // Like the recipe's int8 model against fp32.
        Chances{200000, 0.0039, 0.0041}));

// Expected values are SciPy's binomtest(...).proportion_ci(method="wilson").
TEST(ShareInterval, IsWilsons) {
  ExpectInterval(ShareInterval(81, 263), 0.255288520, 0.366209577);
  ExpectInterval(ShareInterval(198420, 200000), 0.991702443, 0.992478653);
  ExpectInterval(ShareInterval(0, 10), 0, 0.277532800);
  ExpectInterval(ShareInterval(10, 10), 0.722467200, 1);
}

TEST(Judge, PassesOnlyWhenTheWholeIntervalIsInside) {
  constexpr double kLimit = -0.5;
  const std::tuple<double, double, Verdict> cases[] = {
      {-0.4, 0.1, Verdict::kPass},
      {-0.5, 0.1, Verdict::kPass},
      {-0.6, 0.1, Verdict::kInconclusive},
      {-0.9, -0.5, Verdict::kInconclusive},
      {-0.9, -0.6, Verdict::kFail}};
  for (const auto& [low, high, verdict] : cases) {
    EXPECT_EQ(JudgeAtLeast(MakeInterval(low, high), kLimit), verdict) << low;
    EXPECT_EQ(JudgeAtMost(MakeInterval(-high, -low), -kLimit), verdict) << low;
  }
}

TEST(Judge, IsInconclusiveOfAnIntervalThatIsMissing) {
  EXPECT_EQ(JudgeFigure({0.5}, 1, false), Verdict::kInconclusive);
  EXPECT_EQ(JudgeFigure({0.5}, 0, true), Verdict::kInconclusive);
  // NaN bounds are inside no limit and beyond none.
  EXPECT_EQ(JudgeAtLeast(MakeInterval(NAN, NAN), 0), Verdict::kInconclusive);
}

TEST(PairedComparison, TakesTheDifferenceFromTheDifferingPairs) {
  // The records are classified right by both, only the baseline (twice), only
  // the candidate, and neither.
  const Comparison comparison =
      Compare(kProbability, {0.9f, 0.9f, 0.1f, 0.1f, 0.9f},
              {0.8f, 0.1f, 0.9f, 0.9f, 0.8f}, {1, 1, 0, 1, 0});
  const AccuracyDifference& accuracy = comparison.accuracy();
  EXPECT_EQ(accuracy.baseline_correct(), 3);
  EXPECT_EQ(accuracy.candidate_correct(), 2);
  EXPECT_EQ(accuracy.only_baseline_correct(), 2);
  EXPECT_EQ(accuracy.only_candidate_correct(), 1);
  EXPECT_DOUBLE_EQ(accuracy.points(), -20);
  const Interval interval = PairedDifferenceInterval(5, 1, 2);
  EXPECT_DOUBLE_EQ(accuracy.interval().low(), 100 * interval.low());
  EXPECT_DOUBLE_EQ(accuracy.interval().high(), 100 * interval.high());
}

TEST(PairedComparison, CountsAgreementByPredictedClass) {
  const Comparison comparison = Compare(
      kTwoProbabilities, {0.9f, 0.1f, 0.4f, 0.6f, 0.4f, 0.6f, NAN, 0.5f},
      {0.6f, 0.4f, 0.1f, 0.9f, 0.6f, 0.4f, NAN, 0.5f}, {});
  EXPECT_EQ(comparison.agreement().records(), 2);
  EXPECT_EQ(comparison.agreement().share(), 0.5);
  EXPECT_FALSE(comparison.has_accuracy());
}

TEST(PairedComparison, MeasuresTheChangeOfAllValues) {
  const Comparison comparison =
      Compare(kThreeScores, {0, 0, 0, 1, 1, 1}, {0, 1, -2, 1, 1, 7}, {}, 100);
  EXPECT_DOUBLE_EQ(comparison.output_change().mean(), 1.5);
  EXPECT_EQ(comparison.output_change().max(), 6);
  EXPECT_EQ(comparison.output_change().max_record(), 101);
  EXPECT_FALSE(comparison.has_class_1_change());
}

TEST(PairedComparison, GivesItsFiguresAsEstimates) {
  const Comparison nothing;
  for (const auto figure :
       {AccuracyGain, AgreementShare, MeanOutputChange, MaxOutputChange, Mse}) {
    EXPECT_FALSE(figure(nothing).has_value());
  }
  const Comparison comparison =
      Compare(kThreeScores, {0, 0, 0, 1, 1, 1}, {0, 1, -2, 1, 1, 7}, {}, 100);
  EXPECT_DOUBLE_EQ(MeanOutputChange(comparison)->value, 1.5);
  EXPECT_FALSE(MeanOutputChange(comparison)->interval.has_value());
  EXPECT_EQ(MaxOutputChange(comparison)->value, 6);
  EXPECT_EQ(MaxOutputChange(comparison)->record, 101);
  EXPECT_EQ(AgreementShare(comparison)->interval->high(),
            comparison.agreement().interval().high());
}

TEST(PairedComparison, MeasuresSquaredChangesOfAllValues) {
  const Comparison comparison =
      Compare(kThreeScores, {0, 0, 0, 1, NAN, 1}, {0, 1, -2, 1, 1, 7}, {}, 100);
  // The means are 5 thirds and, without the value that is NaN, 36 halves.
  EXPECT_DOUBLE_EQ(comparison.squared_change().mean(), (5 / 3.0 + 18) / 2);
  EXPECT_EQ(comparison.squared_change().max(), 36);
}

TEST(JudgeMse, PassesEqualOutputsAtZero) {
  const std::vector<float> values(60, 0.5f);
  const auto judged = [&](const std::vector<float>& other, double limit) {
    return JudgeFigure(*Mse(Compare(kTwoScores, values, other, {})), limit,
                       false);
  };
  EXPECT_EQ(judged(values, 0), Verdict::kPass);
  std::vector<float> other = values;
  for (float& value : other) value += 0.25f;
  EXPECT_EQ(judged(other, 0.06), Verdict::kFail);
  other[0] = NAN;
  EXPECT_EQ(judged(other, 1), Verdict::kFail);
}

TEST(PairedComparison, NamesTheFirstRecordOfTheLargestChange) {
  EXPECT_EQ(Compare(kValue, {0, 0, 0}, {0.5f, 1, 1}, {}, 40)
                .output_change()
                .max_record(),
            41);
  EXPECT_EQ(
      Compare(kValue, {0, 0}, {0, 0}, {}, 40).output_change().max_record(), 40);
}

TEST(PairedComparison, MeasuresScoresAsProbabilitiesToo) {
  const Comparison comparison = Compare(kTwoScores, {0, 0}, {-1, 1}, {});
  EXPECT_EQ(comparison.output_change().mean(), 1);
  EXPECT_DOUBLE_EQ(comparison.class_1_change().mean(),
                   1 / (1 + std::exp(-2.0)) - 0.5);
}

// The expected values are from NumPy.
TEST(PairedComparison, GivesTheMeanChangeAnInterval) {
  std::vector<float> baseline(40, 0);
  std::vector<float> candidate;
  for (int i = 0; i < 40; ++i) {
    candidate.push_back(0.01f * static_cast<float>(i % 2 == 0 ? i : -i));
  }
  const Comparison comparison = Compare(kValue, baseline, candidate, {});
  EXPECT_NEAR(comparison.output_change().mean(), 0.195, 1e-7);
  EXPECT_NEAR(comparison.output_change().interval().low(), 0.158771580, 1e-7);
  EXPECT_NEAR(comparison.output_change().interval().high(), 0.231228420, 1e-7);
}

TEST(PairedComparison, KnowsNoSpreadOfFewRecords) {
  const std::vector<float> values(29, 0.5f);
  const Comparison comparison = Compare(kProbability, values, values, {});
  EXPECT_FALSE(comparison.output_change().has_interval());
  EXPECT_EQ(JudgeFigure(*MeanOutputChange(comparison), 0.01, false),
            Verdict::kInconclusive);
}

TEST(PairedComparison, CountsWhatIsNotFiniteApart) {
  const Comparison comparison =
      Compare(kValue, {1, NAN, 1, kInfinity, 1},
              {1.5f, NAN, -kInfinity, kInfinity, NAN}, {}, 10);
  EXPECT_EQ(comparison.baseline_non_finite().nan(), 1);
  EXPECT_EQ(comparison.baseline_non_finite().infinite(), 1);
  EXPECT_EQ(comparison.baseline_non_finite().first_record(), 11);
  EXPECT_EQ(comparison.candidate_non_finite().nan(), 2);
  EXPECT_EQ(comparison.candidate_non_finite().infinite(), 2);
  EXPECT_EQ(comparison.lost_values(), 2);
  EXPECT_EQ(comparison.output_change().mean(), 0.5);
  EXPECT_EQ(JudgeFigure(*MeanOutputChange(comparison), 100, false),
            Verdict::kFail);
}

TEST(PairedComparison, HasNoChangeWithoutFiniteValues) {
  EXPECT_FALSE(Compare(kValue, {NAN}, {1}, {}).has_output_change());
}

TEST(PairedComparison, JudgesByTheIntervals) {
  // Of 10000 records, the candidate loses 100 and gains 20.
  std::vector<float> baseline;
  std::vector<float> candidate;
  for (int i = 0; i < 10000; ++i) {
    baseline.push_back(i < 20 ? 0.25f : 0.75f);
    candidate.push_back(i >= 9900 ? 0.25f : 0.75f);
  }
  const Comparison comparison =
      Compare(kProbability, baseline, candidate, std::vector<double>(10000, 1));
  EXPECT_DOUBLE_EQ(comparison.accuracy().points(), -0.8);
  struct Limits {
    std::optional<Estimate> (*figure)(const Comparison&);
    bool at_least;
    double pass, inconclusive, fail;
  };
  for (const Limits& test :
       {Limits{AccuracyGain, true, -1.5, -0.8, -0.5},
        Limits{AgreementShare, true, 0.98, 0.988, 0.995},
        Limits{MeanOutputChange, false, 0.01, 0.006, 0.004}}) {
    const auto judged = [&](double limit) {
      return JudgeFigure(*test.figure(comparison), limit, test.at_least);
    };
    EXPECT_EQ(judged(test.pass), Verdict::kPass);
    EXPECT_EQ(judged(test.inconclusive), Verdict::kInconclusive);
    EXPECT_EQ(judged(test.fail), Verdict::kFail);
  }
  // The largest change needs no interval.
  EXPECT_EQ(JudgeFigure(*MaxOutputChange(comparison), 0.5, false),
            Verdict::kPass);
  EXPECT_EQ(JudgeFigure(*MaxOutputChange(comparison), 0.49, false),
            Verdict::kFail);
}

TEST(PairedComparison, GoesOnOverBatches) {
  PairedComparison comparison(kProbability);
  comparison.Add(0, {0.9f}, {0.8f}, {1});
  comparison.Add(1, {0.9f}, {0.3f}, {1});
  const Comparison result = comparison.Result();
  EXPECT_EQ(result.records(), 2);
  EXPECT_EQ(result.accuracy().points(), -50);
  EXPECT_EQ(result.output_change().max_record(), 1);
}

// Returns values, mean squared error, largest difference, cosine, rows,
// agreeing rows, lost values, and values that are never finite.
std::vector<double> Figures(const OutputDifference& difference) {
  const OutputDifferenceMessage found = difference.Result();
  return {static_cast<double>(found.values()),
          found.mse(),
          found.max(),
          found.cosine(),
          static_cast<double>(found.rows()),
          static_cast<double>(found.agreeing_rows()),
          static_cast<double>(found.lost_values()),
          static_cast<double>(found.never_finite_values())};
}

struct DifferenceCase {
  std::vector<float> first, other;
  int64_t row;
  std::vector<double> figures;
};

TEST(OutputDifference, IsExactlyThatOfTheValues) {
  constexpr float kInf = kInfinity;
  const DifferenceCase cases[] = {
      {{1, -2, 3, 4}, {1, -2, 3, 4}, 2, {4, 0, 0, 1, 2, 2, 0, 0}},
      // Single values do not form rows.
      {{1, 2}, {1, 2}, 1, {2, 0, 0, 1, 0, 0, 0, 0}},
      {{0, 0}, {0, 0}, 2, {2, 0, 0, 1, 1, 1, 0, 0}},
      {{0, 0}, {1, 0}, 2, {2, 0.5, 1, 0, 1, 1, 0, 0}},
      // Some values are finite in only one.
      {{1, NAN, kInf, 3}, {2, NAN, 0, NAN}, 4, {1, 1, 1, 1, 1, 0, 2, 1}},
      // No value is ever finite, so no figure is known.
      {{NAN, NAN}, {NAN, NAN}, 2, {0, NAN, NAN, NAN, 1, 0, 0, 2}},
      {{kInf, kInf}, {kInf, kInf}, 2, {0, NAN, NAN, NAN, 1, 0, 0, 2}},
      {{-kInf, -kInf}, {-kInf, -kInf}, 2, {0, NAN, NAN, NAN, 1, 0, 0, 2}},
      // Values that are not finite in different ways are lost.
      {{kInf, NAN}, {-kInf, kInf}, 1, {0, NAN, NAN, NAN, 0, 0, 2, 0}},
      {{-kInf}, {NAN}, 1, {0, NAN, NAN, NAN, 0, 0, 1, 0}},
      // Masked values are the same infinity in both.
      {{-kInf, 2, 1}, {-kInf, 2, 1}, 3, {2, 0, 0, 1, 1, 1, 0, 1}},
  };
  for (const DifferenceCase& test : cases) {
    OutputDifference difference;
    difference.Add(test.first, test.other, test.row);
    EXPECT_THAT(Figures(difference),
                Pointwise(NanSensitiveDoubleEq(), test.figures));
    if (difference.Result().mse() == 0) {
      EXPECT_EQ(difference.Result().cosine(), 1);
    }
  }
}

TEST(OutputDifference, IsThatOfAllBatchesTogether) {
  OutputDifference difference;
  difference.Add({1, 0}, {0, 1}, 2);
  difference.Add({2, 0}, {2, 0}, 2);
  EXPECT_THAT(Figures(difference), ElementsAre(4, 0.5, 1, 0.8, 2, 1, 0, 0));
}

}  // namespace
}  // namespace requant::paired_comparison_test
