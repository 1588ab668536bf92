#include "workflows/display/run_conclusion.h"

#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/message_text.h"
#include "base/testing/golden_cases.h"
#include "google/protobuf/text_format.h"
#include "graph/testing/testing.h"
#include "workflows/report/figures.h"
#include "workflows/run/run_record.pb.h"

namespace requant::run_conclusion_test {
namespace {

// Returns the conclusion of a record or, if its first line is one such as
// "table at 0, 64", its table on terminals of these widths.
std::string Printed(std::string_view input) {
  std::string_view widths;
  if (absl::ConsumePrefix(&input, "table at ")) {
    widths = input.substr(0, input.find('\n'));
    input.remove_prefix(widths.size());
  }
  RunRecord record;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(std::string(input),
                                                            &record));
  std::string printed;
  for (std::string_view width :
       absl::StrSplit(widths, ", ", absl::SkipEmpty())) {
    int columns = 0;
    EXPECT_TRUE(absl::SimpleAtoi(width, &columns));
    absl::StrAppend(&printed, "at ", width, ":\n",
                    RunTable(record, columns, false));
  }
  RunConclusionOptions options;
  options.report = "out/report.html";
  options.resume = record.command();
  if (widths.empty()) printed = RunConclusion(record, options);
  return std::string(absl::StripSuffix(printed, "\n"));
}

TEST(RunConclusion, IsATableAndWhatFollowsFromTheOutcome) {
  CheckGoldenCases("workflows/display/display_cases.txt", Printed);
}

TEST(RunConclusion, TellsOnlyOfAResultHowToServeIt) {
  RunConclusionOptions options;
  options.serving = "Set X=1.";
  RunRecord record;
  record.set_outcome(RunRecord::PASSED);
  EXPECT_THAT(RunConclusion(record, options), HasSubstr("\nSet X=1.\n"));
  record.set_outcome(RunRecord::GATE_FAILED);
  EXPECT_THAT(RunConclusion(record, options), Not(HasSubstr("Set X=1.")));
}

TEST(RunTable, ColoursVerdictsWhenAsked) {
  RunRecord record;
  StageRecord& stage = *record.add_stage();
  stage.mutable_work()->set_state(TaskRecord::DONE);
  stage.mutable_verification()->mutable_work()->set_state(TaskRecord::DONE);
  stage.mutable_verification()->set_verdict(VerificationRecord::FAIL);
  EXPECT_THAT(RunTable(record, 0, true), HasSubstr("\x1b[31mFAIL\x1b[0m\n"));
}

TEST(RunFigures, HaveTheSameDigitsEverywhere) {
  EXPECT_EQ(AccuracyText(0.784551), "78.455 %");
  EXPECT_EQ(PointsText(-0.0541), "-0.054");
  EXPECT_EQ(PointsText(-0.0001), "+0.000");
  EXPECT_EQ(AgreementText(1), "1.0000");
  EXPECT_EQ(ChangeText(0.002134), "0.00213");
  EXPECT_EQ(SecondsText(0.04), "<0.1 s");
  EXPECT_EQ(SecondsText(0.05), "0.1 s");
  EXPECT_EQ(SecondsText(5.44), "5.4 s");
  EXPECT_EQ(SecondsText(59.96), "1:00");
  EXPECT_EQ(SizeText(812), "812 B");
  EXPECT_EQ(SizeText(5000000), "5.00 MB");
  EXPECT_EQ(SizeText(999500), "1.00 MB");
}

}  // namespace
}  // namespace requant::run_conclusion_test
