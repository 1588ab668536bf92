#include "workflows/run/gates.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"

namespace requant::gates_test {
namespace {

// A candidate that is a tenth of a point worse, quite certainly.
constexpr char kResult[] = R"(
  scores { records: 200000 accuracy: 0.784 }
  comparison {
    records: 200000
    accuracy { points: -0.1 interval { low: -0.15 high: -0.05 } }
    agreement { share: 0.99 interval { low: 0.989 high: 0.991 } }
    output_change { mean: 0.005 interval { low: 0.004 high: 0.006 } max: 0.2
                    max_record: 17 }
    squared_change { mean: 0.03 interval { low: 0.02 high: 0.04 } max: 0.04 }
  }
  layer { name: "first" step: 0.1 rms_error: 0.05 worst_channel_shift: -0.2
          signal_to_noise: 40 clipped_share: 0 gain: 0.99
          range { low: 0 high: 3 } observed { low: 1 high: 2 } }
  layer { name: "second" step: 0.01 rms_error: 0.01 worst_channel_shift: 0.005
          signal_to_noise: 30 clipped_share: 0.001 clipped_records: 0.02
          gain: 1.005 range { low: -1 high: 1 } observed { low: -2 high: 2 } }
)";

template <typename Message>
Message Parse(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message));
  return message;
}

std::vector<GateRecord> Judge(const std::string& gates,
                              const std::string& result = kResult) {
  return JudgeGates(Parse<EvaluateResult>(result), Parse<Gates>(gates),
                    nullptr);
}

VerificationRecord::Verdict VerdictOf(const std::string& gates,
                                      const std::string& result = kResult) {
  return Judge(gates, result).at(0).verdict();
}

constexpr auto kPass = VerificationRecord::PASS;
constexpr auto kFail = VerificationRecord::FAIL;
constexpr auto kInconclusive = VerificationRecord::INCONCLUSIVE;

TEST(JudgeGates, HoldsAnIntervalAgainstTheLimit) {
  EXPECT_EQ(VerdictOf("max_accuracy_drop: 0.5"), kPass);
  EXPECT_EQ(VerdictOf("max_accuracy_drop: 0.12"), kInconclusive);
  EXPECT_EQ(VerdictOf("max_accuracy_drop: 0.04"), kFail);
  EXPECT_EQ(VerdictOf("min_agreement: 0.98"), kPass);
  EXPECT_EQ(VerdictOf("min_agreement: 0.9905"), kInconclusive);
  EXPECT_EQ(VerdictOf("min_agreement: 0.999"), kFail);
  EXPECT_EQ(VerdictOf("max_mean_output_change: 0.006"), kPass);
  EXPECT_EQ(VerdictOf("max_mean_output_change: 0.003"), kFail);
}

TEST(JudgeGates, HoldsANumberAgainstTheLimit) {
  EXPECT_EQ(VerdictOf("max_output_change: 0.2"), kPass);
  EXPECT_EQ(VerdictOf("max_output_change: 0.19"), kFail);
}

TEST(JudgeGates, HoldsTheMeanSquaredErrorAgainstTheLimit) {
  EXPECT_EQ(VerdictOf("max_mse: 0.04"), kPass);
  EXPECT_EQ(VerdictOf("max_mse: 0.03"), kInconclusive);
  EXPECT_EQ(VerdictOf("max_mse: 0.01"), kFail);
  EXPECT_EQ(Judge("max_mse: 0.01")[0].sentence(),
            "mean squared error 0.030000 (0.020000 to 0.040000), limit "
            "0.010000: 3.0 times as much");
  // Of the same outputs it is exactly zero.
  EXPECT_EQ(VerdictOf("max_mse: 0", R"(
              comparison {
                output_change { mean: 0 interval {} }
                squared_change { mean: 0 interval {} }
              })"),
            kPass);
}

// The last gate's verdict, of an error that is 0.03, by another stage's.
GateRecord JudgeRelative(double at_most, const std::string& other,
                         const std::string& result = kResult) {
  RelativeMse relative;
  relative.set_stage("fixed");
  relative.set_at_most(at_most);
  const auto reference = Parse<EvaluateResult>(other);
  return JudgeGates(Parse<EvaluateResult>(result), {}, nullptr, false,
                    {&relative, &reference})
      .back();
}

TEST(JudgeGates, HoldsTheErrorAgainstAShareOfAnotherStages) {
  constexpr char kBad[] = "comparison { squared_change { mean: 10 } }";
  EXPECT_EQ(JudgeRelative(0.01, kBad).verdict(), kPass);
  EXPECT_EQ(JudgeRelative(0.003, kBad).verdict(), kInconclusive);
  const GateRecord failed = JudgeRelative(0.001, kBad);
  EXPECT_EQ(failed.verdict(), kFail);
  EXPECT_EQ(failed.name(), "relative_mse");
  EXPECT_EQ(failed.limit(), 0.01);
  EXPECT_EQ(failed.sentence(),
            "mean squared error 0.030000 (0.020000 to 0.040000), limit "
            "0.010000: 3.0 times as much: 0.001 of stage fixed's, 10");
}

TEST(JudgeGates, FailsWithoutTheOtherStagesError) {
  EXPECT_EQ(JudgeRelative(0.01, "").verdict(), kFail);
  EXPECT_EQ(JudgeRelative(0.01, kResult, "").verdict(), kFail);
}

TEST(JudgeGates, JudgesTheWorstLayerInItsOwnSteps) {
  EXPECT_EQ(VerdictOf("max_layer_error: 1"), kPass);
  EXPECT_EQ(VerdictOf("max_layer_error: 0.9"), kFail);
  EXPECT_EQ(Judge("max_layer_error: 0.9")[0].layer(), "second");
  EXPECT_EQ(VerdictOf("max_layer_shift: 2"), kPass);
  EXPECT_EQ(Judge("max_layer_shift: 1.9")[0].layer(), "first");
  EXPECT_EQ(VerdictOf("max_layer_shift: 1.9"), kFail);
  EXPECT_EQ(VerdictOf("min_layer_snr: 30"), kPass);
  EXPECT_EQ(VerdictOf("min_layer_snr: 31"), kFail);
  EXPECT_EQ(VerdictOf("max_layer_clipped: 0.001"), kPass);
  EXPECT_EQ(VerdictOf("max_layer_clipped: 0"), kFail);
  EXPECT_EQ(VerdictOf("max_layer_clipped_records: 0.02"), kPass);
  EXPECT_EQ(VerdictOf("max_layer_clipped_records: 0.01"), kFail);
}

TEST(JudgeGates, TakesAGainOnEitherSideOfOne) {
  EXPECT_EQ(VerdictOf("max_layer_gain_error: 0.011"), kPass);
  EXPECT_EQ(VerdictOf("max_layer_gain_error: 0.009"), kFail);
  EXPECT_EQ(Judge("max_layer_gain_error: 0.009")[0].layer(), "first");
}

TEST(JudgeGates, MeasuresRangesByWhatTheyHoldAndZero) {
  EXPECT_EQ(VerdictOf("max_layer_range_excess: 1.5"), kPass);
  EXPECT_EQ(VerdictOf("max_layer_range_excess: 1.4"), kFail);
  EXPECT_EQ(VerdictOf("max_layer_range_excess: 1.4",
                      "comparison { records: 9 } "
                      "layer { name: \"dead\" range { low: 0 high: 1 } }"),
            kPass);
}

TEST(JudgeGates, KnowsEveryLimitOfTheSchema) {
  Gates gates;
  const google::protobuf::Descriptor* fields = Gates::descriptor();
  for (int i = 0; i < fields->field_count(); ++i) {
    Gates::GetReflection()->SetDouble(&gates, fields->field(i), 1000);
  }
  const std::vector<GateRecord> judged =
      JudgeGates(Parse<EvaluateResult>(kResult), gates, nullptr);
  // And lost_values.
  ASSERT_EQ(judged.size(), fields->field_count() + 1u);
  for (int i = 0; i < fields->field_count(); ++i) {
    EXPECT_EQ(judged[i].name(), fields->field(i)->name());
  }
}

TEST(JudgeGates, LeavesOutWhatIsTakenAway) {
  EXPECT_EQ(Judge("max_accuracy_drop: -1").size(), 1u);
}

TEST(JudgeGates, NanIsBeyondEveryLimit) {
  EvaluateResult result = Parse<EvaluateResult>(kResult);
  result.mutable_layer(0)->set_rms_error(
      std::numeric_limits<double>::quiet_NaN());
  const GateRecord gate =
      JudgeGates(result, Parse<Gates>("max_layer_error: 1000"), nullptr)[0];
  EXPECT_EQ(gate.verdict(), kFail);
  EXPECT_EQ(gate.layer(), "first");
}

TEST(JudgeGates, MissingLayersDoNotPass) {
  EXPECT_EQ(VerdictOf("max_layer_error: 1000", "comparison { records: 9 }"),
            kFail);
  EXPECT_EQ(VerdictOf("max_layer_error: 1000",
                      absl::StrCat(kResult, "unmatched_layer: \"third\"")),
            kFail);
}

// Numbers, and no labels.
constexpr char kNumbers[] = R"(
  comparison { records: 9 output_change { mean: 0.1 max: 0.1 } }
)";

TEST(JudgeGates, WhatCannotBeJudgedFails) {
  EXPECT_EQ(VerdictOf("max_accuracy_drop: 1", kNumbers), kFail);
  EXPECT_EQ(VerdictOf("min_agreement: 0", kNumbers), kFail);
}

TEST(JudgeGates, AccuracyThatNobodyAskedForNeedsNoLabels) {
  const auto result = Parse<EvaluateResult>(kNumbers);
  const auto with_another =
      Parse<Gates>("max_accuracy_drop: 0.5 max_output_change: 1");
  EXPECT_EQ(JudgeGates(result, with_another, nullptr, true)[0].verdict(),
            VerificationRecord::NONE);
  const auto alone = Parse<Gates>("max_accuracy_drop: 0.5");
  EXPECT_EQ(JudgeGates(result, alone, nullptr, true)[0].verdict(), kFail);
}

TEST(JudgeGates, OutputsThatAreNeverFiniteFail) {
  EXPECT_EQ(Judge("", "comparison { records: 9 }").back().verdict(), kFail);
  EXPECT_EQ(VerdictOf("", "scores { records: 9 nan_records: 9 }"), kFail);
  EXPECT_EQ(VerdictOf("", "scores { records: 9 nan_records: 8 }"), kPass);
}

TEST(JudgeGates, LostValuesNeverPass) {
  const std::vector<GateRecord> gates =
      Judge("",
            "comparison { records: 9 lost_values: 2 "
            "candidate_non_finite { nan: 2 first_record: 4 } }");
  ASSERT_EQ(gates.size(), 1u);
  EXPECT_EQ(gates[0].verdict(), kFail);
  EXPECT_NE(gates[0].sentence().find("the first in record 4"),
            std::string::npos);
}

TEST(JudgeGates, NothingIsJudgedWithoutABaseline) {
  EXPECT_TRUE(
      Judge("max_accuracy_drop: 0", "scores { accuracy: 0.5 }").empty());
}

TEST(JudgeGates, PinsAPublishedAccuracy) {
  const EvaluateResult result = Parse<EvaluateResult>(kResult);
  Expect expect = Parse<Expect>("accuracy: 78.41 within: 0.02");
  EXPECT_EQ(JudgeGates(result, {}, &expect).back().verdict(), kPass);
  expect.set_accuracy(78.45);
  const GateRecord missed = JudgeGates(result, {}, &expect).back();
  EXPECT_EQ(missed.verdict(), kFail);
  EXPECT_EQ(missed.sentence(),
            "accuracy 78.4000 %; 78.4500 %, as published or otherwise known, "
            "was expected within 0.02 points");
  EXPECT_EQ(JudgeGates({}, {}, &expect).back().verdict(), kFail);
}

TEST(JudgeGates, SaysByHowMuchAndWhatToTry) {
  const GateRecord gate = Judge("max_mean_output_change: 0.002")[0];
  EXPECT_EQ(gate.sentence(),
            "mean output change 0.00500 (0.00400 to 0.00600), limit 0.00200: "
            "2.5 times as much");
  EXPECT_FALSE(gate.advice().empty());
  EXPECT_TRUE(Judge("max_mean_output_change: 1")[0].advice().empty());
}

TEST(WorstVerdict, IsTheWorst) {
  EXPECT_EQ(WorstVerdict({}), VerificationRecord::NONE);
  EXPECT_EQ(WorstVerdict(Judge("max_accuracy_drop: 0.12")), kInconclusive);
  EXPECT_EQ(WorstVerdict(Judge("max_accuracy_drop: 0.12 min_agreement: 1")),
            kFail);
}

}  // namespace
}  // namespace requant::gates_test
