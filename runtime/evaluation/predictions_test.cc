#include "runtime/evaluation/predictions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/testing/fuzz_rounds.h"

namespace requant::predictions_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

PredictionsFormat TwoValuesAndALabel() {
  return {PredictionSpec::PROBABILITIES, 2, 1};
}

// Returns a file of three records.
std::string ThreeRecords() {
  PredictionsEncoder encoder(TwoValuesAndALabel());
  EXPECT_TRUE(encoder.Add({0.25f, 0.75f, 1.f, 0.f}, {1, 0}).ok());
  EXPECT_TRUE(encoder.Add({0.5f, 0.5f}, {1}).ok());
  return encoder.Finish();
}

std::string ErrorOf(const std::string& content) {
  const auto predictions = Predictions::Parse(content, "some.predictions");
  EXPECT_FALSE(predictions.ok());
  return std::string(predictions.status().message());
}

TEST(Predictions, ComeBackAsTheyWere) {
  const auto predictions = Predictions::Parse(ThreeRecords(), "p");
  ASSERT_TRUE(predictions.ok()) << predictions.status();
  EXPECT_EQ(predictions->records(), 3);
  EXPECT_EQ(predictions->format().kind, PredictionSpec::PROBABILITIES);
  EXPECT_EQ(predictions->format().values_per_record, 2);
  EXPECT_EQ(predictions->format().labels_per_record, 1);
  std::vector<float> values;
  std::vector<double> labels;
  predictions->Get(1, 2, &values, &labels);
  EXPECT_THAT(values, ElementsAre(1, 0, 0.5f, 0.5f));
  EXPECT_THAT(labels, ElementsAre(0, 1));
}

TEST(Predictions, HoldRecordsWithoutLabels) {
  PredictionsEncoder encoder({PredictionSpec::PROBABILITY, 1, 0});
  ASSERT_TRUE(encoder.Add({0.25f, 0.5f}, {}).ok());
  const auto predictions = Predictions::Parse(encoder.Finish(), "p");
  ASSERT_TRUE(predictions.ok()) << predictions.status();
  std::vector<float> values;
  std::vector<double> labels = {7};
  predictions->Get(0, 2, &values, &labels);
  EXPECT_THAT(values, ElementsAre(0.25f, 0.5f));
  EXPECT_THAT(labels, IsEmpty());
}

TEST(Predictions, MayBeOfNoRecordAtAll) {
  PredictionsEncoder encoder(TwoValuesAndALabel());
  const auto predictions = Predictions::Parse(encoder.Finish(), "p");
  ASSERT_TRUE(predictions.ok()) << predictions.status();
  EXPECT_EQ(predictions->records(), 0);
}

TEST(PredictionsEncoder, RefusesValuesThatAreNotThoseOfTheLabels) {
  PredictionsEncoder encoder(TwoValuesAndALabel());
  EXPECT_FALSE(encoder.Add({0.5f, 0.5f, 0.5f}, {1}).ok());
  EXPECT_FALSE(encoder.Add({0.5f, 0.5f}, {1, 0}).ok());
  const auto predictions = Predictions::Parse(encoder.Finish(), "p");
  ASSERT_TRUE(predictions.ok()) << predictions.status();
  EXPECT_EQ(predictions->records(), 0);
}

TEST(PredictionsEncoder, GivesTheSameFileInParts) {
  PredictionsEncoder encoder(TwoValuesAndALabel());
  ASSERT_TRUE(
      encoder.Add({0.25f, 0.75f, 1.f, 0.f, 0.5f, 0.5f}, {1, 0, 1}).ok());
  EXPECT_EQ(encoder.Finish(), ThreeRecords());
}

TEST(Predictions, CutAnywhereAreRefused) {
  const std::string whole = ThreeRecords();
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(Predictions::Parse(whole.substr(0, size), "p").ok()) << size;
  }
}

TEST(Predictions, WithAnyBitChangedAreRefused) {
  const std::string whole = ThreeRecords();
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    EXPECT_FALSE(Predictions::Parse(damaged, "p").ok()) << bit;
  }
}

TEST(Predictions, SayWhatIsWrongWithAFile) {
  EXPECT_THAT(ErrorOf("something else"),
              HasSubstr("some.predictions is no file of predictions"));
  const std::string whole = ThreeRecords();
  EXPECT_THAT(ErrorOf(whole.substr(0, 20)), HasSubstr("it was cut"));
  EXPECT_THAT(ErrorOf(whole.substr(0, whole.size() - 3)),
              HasSubstr("its length is not that of its records"));
  std::string damaged = whole;
  damaged[40] ^= 1;
  EXPECT_THAT(ErrorOf(damaged), HasSubstr("its checksum"));
  damaged = whole;
  damaged[8] = 99;
  EXPECT_THAT(ErrorOf(damaged), HasSubstr("of an unknown kind 99"));
}

// Sizes that a hostile file claims are held against its length.
TEST(Predictions, SurviveAnyBytes) {
  std::mt19937_64 random(1);
  const std::string whole = ThreeRecords();
  for (int round = 0; round < FuzzRounds(2000); ++round) {
    std::string content = whole;
    for (int changes = random() % 12; changes >= 0; --changes) {
      content[8 + random() % (content.size() - 8)] =
          random() % 2 == 0 ? '\xff' : static_cast<char>(random());
    }
    content.resize(8 + random() % (content.size() - 7));
    const auto predictions = Predictions::Parse(content, "p");
    if (!predictions.ok()) continue;
    std::vector<float> values;
    std::vector<double> labels;
    predictions->Get(0, predictions->records(), &values, &labels);
  }
}

TEST(Predictions, ThatAreMissingAreNamed) {
  EXPECT_THAT(Predictions::Read("/no/such.predictions").status().message(),
              HasSubstr("/no/such.predictions"));
}

// Returns the probability of class 1 for three records with labels 1, 0, 1.
StoredBaseline StoredRecords() {
  PredictionsEncoder encoder({PredictionSpec::PROBABILITY, 1, 1});
  EXPECT_TRUE(encoder.Add({0.75f, 0.5f, 0.25f}, {1, 0, 1}).ok());
  absl::StatusOr<Predictions> predictions =
      Predictions::Parse(encoder.Finish(), "p");
  EXPECT_TRUE(predictions.ok()) << predictions.status();
  return StoredBaseline(*std::move(predictions), "stored.predictions");
}

PredictionFormat Probability() {
  PredictionFormat format;
  format.kind = PredictionSpec::PROBABILITY;
  format.values_per_record = 1;
  return format;
}

TEST(StoredBaseline, GivesTheRecordsOneBatchAfterAnother) {
  StoredBaseline baseline = StoredRecords();
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
  StoredBaseline baseline = StoredRecords();
  EXPECT_EQ(*baseline.Take(Probability(), 0, 2, {1, 0}), 2);
  EXPECT_EQ(*baseline.Take(Probability(), 2, 2, {1, 1}), 1);
  EXPECT_EQ(*baseline.Take(Probability(), 4, 2, {1, 1}), 0);
  EXPECT_EQ(baseline.Result()->records(), 3);
}

TEST(StoredBaseline, RefusesOtherRecords) {
  StoredBaseline baseline = StoredRecords();
  EXPECT_EQ(*baseline.Take(Probability(), 100, 1, {1}), 1);
  EXPECT_THAT(
      baseline.Take(Probability(), 101, 2, {0, 0}).status().message(),
      HasSubstr("stored.predictions are of other data: the records differ from "
                "record 102 on, whose label is 0 and was 1"));
}

TEST(StoredBaseline, RefusesPredictionsOfAnotherFormat) {
  StoredBaseline baseline = StoredRecords();
  PredictionFormat format;
  EXPECT_THAT(baseline.Take(format, 0, 1, {1}).status().message(),
              HasSubstr("are PROBABILITY, those of the graph PROBABILITIES"));
  format = Probability();
  format.values_per_record = 2;
  EXPECT_THAT(baseline.Take(format, 0, 1, {1}).status().message(),
              HasSubstr("have 1 values per record, those of the graph 2"));
}

TEST(StoredBaseline, RefusesDataWithoutTheLabelsItHas) {
  EXPECT_THAT(StoredRecords().Take(Probability(), 0, 1, {}).status().message(),
              HasSubstr("data with 1 labels per record, where these have 0"));
}

}  // namespace
}  // namespace requant::predictions_test
