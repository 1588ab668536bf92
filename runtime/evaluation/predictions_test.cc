#include "runtime/evaluation/predictions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/testing/fuzz_rounds.h"

namespace requant::predictions_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

PredictionsFormat TwoValuesAndALabel() {
  return {PredictionSpec::PROBABILITIES, 2, 1};
}

// Three records.
std::string ThreeRecords() {
  PredictionsEncoder encoder(TwoValuesAndALabel());
  EXPECT_TRUE(encoder.Add({0.25f, 0.75f, 1.f, 0.f}, {1, 0}).ok());
  std::string content = encoder.Take();
  EXPECT_TRUE(encoder.Add({0.5f, 0.5f}, {1}).ok());
  return content + encoder.Finish();
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

}  // namespace
}  // namespace requant::predictions_test
