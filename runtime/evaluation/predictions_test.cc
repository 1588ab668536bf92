#include "runtime/evaluation/predictions.h"

#include <random>

#include "base/testing/fuzz_rounds.h"
#include "base/testing/testing.h"

namespace requant::predictions_test {
namespace {

PredictionFormat Probability() {
  PredictionFormat format;
  format.kind = PredictionSpec::PROBABILITY;
  format.values_per_record = 1;
  return format;
}

// Returns a file with the probability of class 1 for three records whose labels
// are 1, 0, 1.
std::string ThreeRecords() {
  PredictionsEncoder encoder({PredictionSpec::PROBABILITY, 1, 1});
  encoder.Add({0.75f, 0.5f}, {1, 0});
  encoder.Add({0.25f}, {1});
  return encoder.Finish();
}

absl::StatusOr<StoredBaseline> Parsed(const std::string& content) {
  return StoredBaseline::Parse(content, "stored.predictions");
}

StoredBaseline StoredRecords() { return *Parsed(ThreeRecords()); }

TEST(StoredBaseline, HoldsSeveralValuesAndNoLabels) {
  PredictionsEncoder encoder({PredictionSpec::PROBABILITIES, 2, 0});
  encoder.Add({0.25f, 0.75f, 1.f, 0.f}, {});
  ASSERT_OK_AND_ASSIGN(StoredBaseline baseline, Parsed(encoder.Finish()));
  EXPECT_EQ(*baseline.Take({}, 0, 1, {}), 1);
  EXPECT_EQ(*baseline.Take({}, 1, 2, {}), 1);
  EXPECT_THAT(baseline.values(), ElementsAre(1.f, 0.f));
  EXPECT_EQ(baseline.Result(), std::nullopt);
}

TEST(StoredBaseline, MayBeOfNoRecordAtAll) {
  ASSERT_OK_AND_ASSIGN(
      StoredBaseline baseline,
      Parsed(PredictionsEncoder({PredictionSpec::PROBABILITY, 1, 1}).Finish()));
  EXPECT_EQ(*baseline.Take(Probability(), 0, 1, {1}), 0);
}

TEST(PredictionsEncoder, GivesTheSameFileInParts) {
  PredictionsEncoder encoder({PredictionSpec::PROBABILITY, 1, 1});
  encoder.Add({0.75f, 0.5f, 0.25f}, {1, 0, 1});
  EXPECT_EQ(encoder.Finish(), ThreeRecords());
}

TEST(StoredBaseline, RefusesAFileThatWasCutAnywhere) {
  const std::string whole = ThreeRecords();
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(Parsed(whole.substr(0, size)).ok()) << size;
  }
}

TEST(StoredBaseline, RefusesAFileWithAnyBitChanged) {
  const std::string whole = ThreeRecords();
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    EXPECT_FALSE(Parsed(damaged).ok()) << bit;
  }
}

TEST(StoredBaseline, SaysWhatIsWrongWithAFile) {
  const std::string whole = ThreeRecords();
  std::string damaged = whole, unknown = whole;
  damaged[40] ^= 1;
  unknown[8] = 99;
  for (const auto& [content, message] :
       std::vector<std::pair<std::string, std::string>>{
           {"something else", "stored.predictions is no file of predictions"},
           {whole.substr(0, 20), "it was cut"},
           {whole.substr(0, whole.size() - 3),
            "its length is not that of its records"},
           {damaged, "its checksum"},
           {unknown, "of an unknown kind 99"}}) {
    EXPECT_THAT(Parsed(content), FailsWith(HasSubstr(message)));
  }
  EXPECT_THAT(StoredBaseline::Read("/no/such.predictions"),
              FailsWith(HasSubstr("/no/such.predictions")));
}

// Sizes that a hostile file claims are checked against its length.
TEST(StoredBaseline, SurvivesAnyBytes) {
  std::mt19937_64 random(1);
  const std::string whole = ThreeRecords();
  for (int round = 0; round < FuzzRounds(2000); ++round) {
    std::string content = whole;
    for (int changes = random() % 12; changes >= 0; --changes) {
      content[8 + random() % (content.size() - 8)] =
          random() % 2 == 0 ? '\xff' : static_cast<char>(random());
    }
    content.resize(8 + random() % (content.size() - 7));
    auto baseline = Parsed(content);
    if (baseline.ok()) (void)baseline->Take(Probability(), 0, 9, {});
  }
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
      baseline.Take(Probability(), 101, 2, {0, 0}),
      FailsWith(HasSubstr(
          "stored.predictions are of other data: the records differ from "
          "record 102 (counted from 0) on, whose label is 0 and was 1")));
}

TEST(StoredBaseline, RefusesPredictionsOfAnotherFormat) {
  StoredBaseline baseline = StoredRecords();
  PredictionFormat two_values = Probability();
  two_values.values_per_record = 2;
  EXPECT_THAT(baseline.Take({}, 0, 1, {1}),
              FailsWith(HasSubstr(
                  "are PROBABILITY, those of the graph PROBABILITIES")));
  EXPECT_THAT(
      baseline.Take(two_values, 0, 1, {1}),
      FailsWith(HasSubstr("have 1 values per record, those of the graph 2")));
  EXPECT_THAT(baseline.Take(Probability(), 0, 1, {}),
              FailsWith(HasSubstr(
                  "data with 1 labels per record, where these have 0")));
}

}  // namespace
}  // namespace requant::predictions_test
