#include "workflows/report/results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "google/protobuf/struct.pb.h"
#include "workflows/run/run_record.pb.h"
#include "workflows/testing/example_runs.h"
#include "workflows/testing/json_value.h"

namespace requant::results_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

TEST(ResultsJson, HasEveryStageInTheOrderOfTheFile) {
  const RunRecord record = PassedRun();
  const auto json = ParseJson(ResultsJson(record));
  ASSERT_EQ(At(json, "stages").list_value().values_size(), record.stage_size());
  EXPECT_EQ(At(json, "stages/0/name").string_value(), "summarize");
  EXPECT_EQ(At(json, "stages/11/name").string_value(), "fuse");
}

TEST(ResultsJson, NumbersHaveFullPrecision) {
  RunRecord record = PassedRun();
  record.mutable_stage(11)
      ->mutable_verification()
      ->mutable_result()
      ->mutable_scores()
      ->set_accuracy(1.0 / 3);
  const auto json = ParseJson(ResultsJson(record));
  EXPECT_EQ(At(json, "stages/11/figures/accuracy").number_value(), 1.0 / 3);
  EXPECT_EQ(At(json, "stages/11/verification/scores/accuracy").number_value(),
            1.0 / 3);
}

TEST(ResultsJson, HasLayersGatesOperationsAndCommands) {
  const auto json = ParseJson(ResultsJson(PassedRun()));
  EXPECT_EQ(At(json, "stages/11/verification/layers/0/range/1").number_value(),
            0.9624);
  EXPECT_EQ(At(json, "stages/11/verification/gates/1/name").string_value(),
            "min_agreement");
  EXPECT_EQ(At(json, "stages/2/graph/ops/MatMul").number_value(), 4);
  EXPECT_THAT(At(json, "stages/1/work/commands/0").string_value(),
              HasSubstr("requant freeze"));
  EXPECT_EQ(At(json, "stages/12/benchmark/graphs/1/stage").string_value(),
            "fuse");
}

TEST(ResultsJson, WhatIsNotKnownIsNull) {
  const auto json = ParseJson(ResultsJson(OneStageRun()));
  EXPECT_TRUE(At(json, "final").has_null_value());
  EXPECT_TRUE(At(json, "stages/0/verification").has_null_value());
  EXPECT_TRUE(At(json, "stages/0/figures/accuracy").has_null_value());
}

// A layer that is the same as its reference has no noise.
TEST(ResultsJson, InfiniteSignalToNoiseIsNull) {
  RunRecord record = PassedRun();
  record.mutable_stage(11)
      ->mutable_verification()
      ->mutable_result()
      ->mutable_layer(0)
      ->set_signal_to_noise(std::numeric_limits<double>::infinity());
  const auto json = ParseJson(ResultsJson(record));
  EXPECT_TRUE(At(json, "stages/11/verification/layers/0/signal_to_noise_db")
                  .has_null_value());
}

TEST(ResultsJson, TextsThatAreNotUtf8AreStillJson) {
  RunRecord record = OneStageRun();
  record.mutable_stage(0)->set_name("a\xff\"\n");
  const auto json = ParseJson(ResultsJson(record));
  EXPECT_EQ(At(json, "stages/0/name").string_value(), "a\xef\xbf\xbd\"\n");
}

TEST(ResultsJson, IsTheSameForTheSameRecord) {
  EXPECT_EQ(ResultsJson(PassedRun()), ResultsJson(PassedRun()));
}

TEST(ResultsJson, OutcomesHaveNames) {
  EXPECT_EQ(At(ParseJson(ResultsJson(RefusedRun())), "outcome").string_value(),
            "gate_failed");
  EXPECT_EQ(
      At(ParseJson(ResultsJson(InterruptedRun())), "outcome").string_value(),
      "interrupted");
}

std::vector<std::vector<std::string>> Lines(const std::string& csv) {
  std::vector<std::vector<std::string>> lines;
  for (const std::string& line : std::vector<std::string>(
           absl::StrSplit(csv, "\r\n", absl::SkipEmpty()))) {
    lines.push_back(absl::StrSplit(line, ','));
  }
  return lines;
}

TEST(ResultsCsv, HasALinePerStageWithAFieldPerColumn) {
  const auto lines = Lines(ResultsCsv(PassedRun()));
  ASSERT_THAT(lines, SizeIs(PassedRun().stage_size() + 1));
  for (const auto& line : lines) EXPECT_THAT(line, SizeIs(lines[0].size()));
}

TEST(ResultsCsv, NumbersHaveFullPrecision) {
  const auto lines = Lines(ResultsCsv(PassedRun()));
  const auto column = std::find(lines[0].begin(), lines[0].end(), "accuracy") -
                      lines[0].begin();
  ASSERT_LT(column, lines[0].size());
  EXPECT_EQ(lines[12][column], "0.75946");
  EXPECT_EQ(lines[1][column], "");
}

TEST(ResultsCsv, QuotesTextsThatNeedIt) {
  RunRecord record = OneStageRun();
  record.mutable_stage(0)->set_name("a,\"b\"\nc");
  EXPECT_THAT(ResultsCsv(record),
              HasSubstr("\r\n\"a,\"\"b\"\"\nc\",freeze,failed,"));
}

}  // namespace
}  // namespace requant::results_test
