#include "runtime/evaluation/stored_baseline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace requant::stored_baseline_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The probability of class 1 for three records with labels 1, 0, 1.
StoredBaseline ThreeRecords() {
  PredictionsEncoder encoder({PredictionSpec::PROBABILITY, 1, 1});
  EXPECT_TRUE(encoder.Add({0.75f, 0.5f, 0.25f}, {1, 0, 1}).ok());
  absl::StatusOr<Predictions> predictions =
      Predictions::Parse(encoder.Finish(), "p");
  EXPECT_TRUE(predictions.ok()) << predictions.status();
  return StoredBaseline(*std::move(predictions), "stored.predictions");
}

PredictionFormat Probability() {
  PredictionFormat format;
  format.kind = PredictionKind::kProbability;
  format.values_per_record = 1;
  return format;
}

TEST(StoredBaseline, GivesTheRecordsOneBatchAfterAnother) {
  StoredBaseline baseline = ThreeRecords();
  EXPECT_EQ(*baseline.Take(Probability(), 0, 2, {1, 0}), 2);
  EXPECT_THAT(baseline.values(), ElementsAre(0.75f, 0.5f));
  EXPECT_EQ(*baseline.Take(Probability(), 2, 1, {1}), 1);
  EXPECT_THAT(baseline.values(), ElementsAre(0.25f));
  const std::optional<Scores> metrics = baseline.Result();
  ASSERT_TRUE(metrics.has_value());
  EXPECT_EQ(metrics->records(), 3);
  EXPECT_EQ(metrics->correct(), 1);
}

TEST(StoredBaseline, EndsWithItsOwnRecords) {
  StoredBaseline baseline = ThreeRecords();
  EXPECT_EQ(*baseline.Take(Probability(), 0, 2, {1, 0}), 2);
  EXPECT_EQ(*baseline.Take(Probability(), 2, 2, {1, 1}), 1);
  EXPECT_EQ(*baseline.Take(Probability(), 4, 2, {1, 1}), 0);
  EXPECT_EQ(baseline.Result()->records(), 3);
}

TEST(StoredBaseline, RefusesOtherRecords) {
  StoredBaseline baseline = ThreeRecords();
  EXPECT_EQ(*baseline.Take(Probability(), 100, 1, {1}), 1);
  EXPECT_THAT(
      baseline.Take(Probability(), 101, 2, {0, 0}).status().message(),
      HasSubstr("stored.predictions are of other data: the records differ from "
                "record 102 on, whose label is 0 and was 1"));
}

TEST(StoredBaseline, RefusesPredictionsOfAnotherFormat) {
  StoredBaseline baseline = ThreeRecords();
  PredictionFormat format;
  EXPECT_THAT(baseline.Take(format, 0, 1, {1}).status().message(),
              HasSubstr("are PROBABILITY, those of the graph PROBABILITIES"));
  format = Probability();
  format.values_per_record = 2;
  EXPECT_THAT(baseline.Take(format, 0, 1, {1}).status().message(),
              HasSubstr("have 1 values per record, those of the graph 2"));
}

TEST(StoredBaseline, RefusesDataWithoutTheLabelsItHas) {
  EXPECT_THAT(ThreeRecords().Take(Probability(), 0, 1, {}).status().message(),
              HasSubstr("data with 1 labels per record, where these have 0"));
}

}  // namespace
}  // namespace requant::stored_baseline_test
