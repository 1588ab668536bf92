#include "runtime/statistics/metrics.h"

#include <cmath>
#include <limits>
#include <random>

#include "base/testing/testing.h"

namespace requant::metrics_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

PredictionFormat Probabilities(int64_t classes) {
  return {PredictionSpec::PROBABILITIES, classes, 0.5};
}

PredictionFormat Scores(int64_t classes) {
  return {PredictionSpec::SCORES, classes, 0.5};
}

PredictionFormat Probability(double threshold = 0.5) {
  return {PredictionSpec::PROBABILITY, 1, threshold};
}

PredictionFormat Value(int64_t values = 1) {
  return {PredictionSpec::VALUE, values, 0.5};
}

requant::Scores MetricsOf(const PredictionFormat& format,
                          const std::vector<float>& predictions,
                          const std::vector<double>& labels) {
  MetricAccumulator accumulator(format);
  EXPECT_OK(accumulator.Add(0, predictions, labels));
  return accumulator.Result();
}

// Returns the result of adding these to an empty accumulator.
absl::Status Added(const PredictionFormat& format, int64_t first_record,
                   const std::vector<float>& predictions,
                   const std::vector<double>& labels) {
  MetricAccumulator accumulator(format);
  const absl::Status status =
      accumulator.Add(first_record, predictions, labels);
  // Nothing of a batch with an error counts.
  EXPECT_EQ(accumulator.Result().records() == 0, !status.ok());
  return status;
}

TEST(PredictedClass, IsTheFirstOfTheLargestOrNoneIfAValueIsNan) {
  EXPECT_EQ(PredictedClass(Scores(3), {1, 3, 2}), 1);
  EXPECT_EQ(PredictedClass(Scores(3), {1, 2, 2}), 1);
  EXPECT_EQ(PredictedClass(Scores(3), {-kInfinity, -5, -kInfinity}), 1);
  EXPECT_EQ(PredictedClass(Scores(2), {NAN, 1}), kNoClass);
  EXPECT_EQ(PredictedClass(Scores(2), {1, NAN}), kNoClass);
  EXPECT_EQ(PredictedClass(Probability(), {NAN}), kNoClass);
}

TEST(PredictedClass, IsOneFromTheThresholdOn) {
  EXPECT_EQ(PredictedClass(Probability(), {0.5f}), 1);
  EXPECT_EQ(PredictedClass(Probability(), {std::nextafter(0.5f, 0.0f)}), 0);
  EXPECT_EQ(PredictedClass(Probability(0.25), {0.3f}), 1);
}

TEST(ClassOneProbability, IsTheSoftmaxOfScores) {
  EXPECT_DOUBLE_EQ(ClassOneProbability(Scores(2), {1, 1}), 0.5);
  EXPECT_DOUBLE_EQ(ClassOneProbability(Scores(2), {0, 2}),
                   1 / (1 + std::exp(-2.0)));
  EXPECT_EQ(ClassOneProbability(Scores(2), {3e38f, -3e38f}), 0);
  EXPECT_EQ(ClassOneProbability(Scores(2), {kInfinity, kInfinity}), 0.5);
  EXPECT_EQ(ClassOneProbability(Probabilities(2), {0.25f, 0.75f}), 0.75);
  EXPECT_EQ(ClassOneProbability(Probability(), {0.75f}), 0.75);
}

TEST(MetricAccumulator, CountsCorrectPredictions) {
  const requant::Scores metrics = MetricsOf(Probabilities(2),
                                            {0.9f, 0.1f,  //
                                             0.2f, 0.8f,  //
                                             0.6f, 0.4f,  //
                                             0.5f, 0.5f},
                                            {0, 1, 1, 0});
  EXPECT_EQ(metrics.records(), 4);
  EXPECT_EQ(metrics.correct(), 3);
  EXPECT_EQ(metrics.accuracy(), 0.75);
}

TEST(MetricAccumulator, HasNoFiguresWithoutRecords) {
  const requant::Scores metrics = MetricsOf(Probabilities(2), {}, {});
  EXPECT_TRUE(metrics.has_correct());
  EXPECT_EQ(metrics.correct(), 0);
  EXPECT_FALSE(metrics.has_accuracy());
  EXPECT_FALSE(metrics.has_auc());
  EXPECT_FALSE(metrics.has_log_loss());
  EXPECT_FALSE(MetricsOf(Value(), {}, {}).has_rmse());
}

TEST(MetricAccumulator, CountsNanAsWrongAndSaysSo) {
  const requant::Scores metrics =
      MetricsOf(Probabilities(2), {NAN, 0.1f, 0.2f, 0.8f}, {0, 1});
  EXPECT_EQ(metrics.correct(), 1);
  EXPECT_EQ(metrics.nan_records(), 1);
  EXPECT_TRUE(metrics.has_auc());
  EXPECT_EQ(metrics.auc(), 0);
  EXPECT_NEAR(metrics.log_loss(), (-std::log(1e-15) - std::log(0.8)) / 2, 1e-7);
}

TEST(MetricAccumulator, RanksAllBinaryFormatsAlike) {
  const std::vector<double> labels = {0, 1, 0, 1, 1};
  EXPECT_DOUBLE_EQ(
      MetricsOf(Probability(), {0.1f, 0.4f, 0.5f, 0.6f, 0.5f}, labels).auc(),
      4.5 / 6);
  EXPECT_DOUBLE_EQ(
      MetricsOf(Probabilities(2),
                {0.9f, 0.1f, 0.6f, 0.4f, 0.5f, 0.5f, 0.4f, 0.6f, 0.5f, 0.5f},
                labels)
          .auc(),
      4.5 / 6);
  // Only the difference of the scores counts.
  EXPECT_DOUBLE_EQ(
      MetricsOf(Scores(2), {9, 1, 0, -1, 5, 5, 1, 4, 7, 7}, labels).auc(),
      4.5 / 6);
}

TEST(MetricAccumulator, HasAucOfTwoClassesOnly) {
  EXPECT_FALSE(MetricsOf(Probabilities(3), {0.2f, 0.3f, 0.5f}, {1}).has_auc());
}

// The expected values are from scikit-learn's log_loss and SciPy's log_softmax.
TEST(MetricAccumulator, HasTheLogLossOfEachFormat) {
  EXPECT_NEAR(
      MetricsOf(Probability(), {0.1f, 0.8f, 0.3f}, {0, 1, 1}).log_loss(),
      0.5108256237659907, 1e-7);
  EXPECT_NEAR(
      MetricsOf(Probabilities(3), {0.2f, 0.3f, 0.5f, 0.7f, 0.2f, 0.1f}, {2, 0})
          .log_loss(),
      0.5249110622493389, 1e-7);
  EXPECT_NEAR(MetricsOf(Scores(3), {1, 2, 3}, {0}).log_loss(),
              2.4076059644443806, 1e-14);
  EXPECT_NEAR(MetricsOf(Scores(3), {1, 2, 3}, {2}).log_loss(),
              0.4076059644443804, 1e-14);
}

TEST(MetricAccumulator, BoundsTheLogLossOfOneMistake) {
  const double most = -std::log(1e-15);
  EXPECT_DOUBLE_EQ(MetricsOf(Probability(), {1}, {0}).log_loss(), most);
  EXPECT_DOUBLE_EQ(MetricsOf(Probability(), {0}, {1}).log_loss(), most);
  EXPECT_DOUBLE_EQ(MetricsOf(Probabilities(2), {1, 0}, {1}).log_loss(), most);
  EXPECT_DOUBLE_EQ(MetricsOf(Scores(2), {3e38f, -3e38f}, {1}).log_loss(), most);
  EXPECT_DOUBLE_EQ(MetricsOf(Scores(2), {kInfinity, 0}, {1}).log_loss(), most);
  EXPECT_NEAR(MetricsOf(Scores(2), {kInfinity, 0}, {0}).log_loss(), 0, 1e-14);
  EXPECT_NEAR(MetricsOf(Scores(2), {kInfinity, kInfinity}, {0}).log_loss(),
              std::log(2), 1e-14);
}

TEST(MetricAccumulator, HasNoLogLossOfWhatIsNoProbability) {
  const requant::Scores metrics =
      MetricsOf(Probabilities(2), {-3, 4, 0.5f, 0.5f, 0, kInfinity}, {1, 0, 1});
  EXPECT_FALSE(metrics.has_log_loss());
  EXPECT_EQ(metrics.improbable_records(), 2);
  EXPECT_EQ(metrics.infinite_records(), 1);
  EXPECT_EQ(metrics.correct(), 3);
  EXPECT_EQ(MetricsOf(Scores(2), {-3, 4}, {1}).improbable_records(), 0);
  EXPECT_EQ(MetricsOf(Probability(), {1.00001f}, {1}).improbable_records(), 0);
}

// The reference sums stored data in long double, in two passes.
TEST(MetricAccumulator, KeepsItsDigitsOverManyRecords) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> uniform(0.01f, 0.99f);
  std::vector<float> predictions;
  std::vector<double> labels;
  for (int i = 0; i < 300000; ++i) {
    predictions.push_back(uniform(random));
    labels.push_back(static_cast<double>(random() % 2));
  }
  long double loss = 0;
  long double squares = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    const long double probability = predictions[i];
    loss -= std::log(labels[i] == 1 ? probability : 1 - probability);
    squares += (probability - labels[i]) * (probability - labels[i]);
  }
  EXPECT_DOUBLE_EQ(MetricsOf(Probability(), predictions, labels).log_loss(),
                   static_cast<double>(loss / labels.size()));
  EXPECT_DOUBLE_EQ(MetricsOf(Value(), predictions, labels).rmse(),
                   static_cast<double>(std::sqrt(squares / labels.size())));
}

TEST(MetricAccumulator, TakesRmseOverAllValues) {
  const requant::Scores metrics =
      MetricsOf(Value(2), {1, 2, 3, 4}, {1, 2, 3, 0});
  EXPECT_EQ(metrics.rmse(), 2);
  EXPECT_EQ(metrics.records(), 2);
  EXPECT_FALSE(metrics.has_correct());
  EXPECT_FALSE(metrics.has_accuracy());
}

TEST(MetricAccumulator, HasARmseOfNanWhenAPredictionIs) {
  const requant::Scores metrics = MetricsOf(Value(), {1, NAN}, {1, 2});
  EXPECT_TRUE(std::isnan(metrics.rmse()));
  EXPECT_EQ(metrics.nan_records(), 1);
}

TEST(MetricAccumulator, NamesTheRecordOfABadLabel) {
  const std::vector<float> predictions = {0.5f, 0.5f, 0.5f, 0.5f};
  EXPECT_THAT(
      Added(Probabilities(2), 1000, predictions, {1, 7}),
      FailsWith("the label of record 1001 (counting from 0 over all files) is "
                "7; the prediction has 2 classes, so labels must be whole "
                "numbers from 0 to 1"));
  for (const double label : {-1.0, 0.5, 2.0, 1e300, static_cast<double>(NAN)}) {
    EXPECT_THAT(Added(Probabilities(2), 5, predictions, {0, label}),
                FailsWith(testing::HasSubstr("the label of record 6 (")));
  }
  EXPECT_THAT(
      Added(Value(2), 5, predictions, {0, 1, NAN, 0}),
      FailsWith("the label of record 6 (counting from 0 over all files) is "
                "nan, not a finite number"));
}

TEST(MetricAccumulator, RefusesLabelsOfAnotherNumber) {
  EXPECT_THAT(Added(Probabilities(2), 0, {0, 1, 0, 1}, {1}),
              FailsWith("a batch has predictions for 2 records but 1 labels; "
                        "expected 1 label per record"));
}

}  // namespace
}  // namespace requant::metrics_test
