#include "workflows/run/gates.h"

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/testing/golden_cases.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"
#include "graph/testing/testing.h"

namespace requant::gates_test {
namespace {

// A candidate that is almost certainly worse by a tenth of a point.
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

constexpr auto kPass = VerificationRecord::PASS;
constexpr auto kFail = VerificationRecord::FAIL;
constexpr auto kInconclusive = VerificationRecord::INCONCLUSIVE;

std::vector<GateRecord> Judged(const std::string& gates) {
  return JudgeGates(Parse<EvaluateResult>(kResult), Parse<Gates>(gates),
                    nullptr);
}

// Judges by the lines of a case, such as "gates: max_mse: 0.01".
std::vector<GateRecord> JudgeCase(const std::string& input) {
  Gates gates;
  auto result = Parse<EvaluateResult>(kResult);
  bool accuracy_is_default = false;
  std::optional<Expect> expect;
  RelativeMse relative;
  std::optional<EvaluateResult> other;
  for (const std::string_view line : absl::StrSplit(input, '\n')) {
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    const std::string value(parts.size() > 1 ? parts[1] : "");
    if (parts[0] == "gates") {
      gates = Parse<Gates>(value);
    } else if (parts[0] == "result") {
      result = Parse<EvaluateResult>(value);
    } else if (parts[0] == "more") {
      result.MergeFrom(Parse<EvaluateResult>(value));
    } else if (parts[0] == "expect") {
      expect = Parse<Expect>(value);
    } else if (parts[0] == "relative") {
      relative = Parse<RelativeMse>("stage: 'fixed' at_most: " + value);
    } else if (parts[0] == "other") {
      other = Parse<EvaluateResult>(value == " the same" ? kResult : value);
    } else {
      EXPECT_EQ(line, "accuracy is default");
      accuracy_is_default = true;
    }
  }
  const MseReference reference = {other.has_value() ? &relative : nullptr,
                                  other.has_value() ? &*other : nullptr};
  return JudgeGates(result, gates, expect.has_value() ? &*expect : nullptr,
                    accuracy_is_default, reference);
}

TEST(JudgeGates, HoldsFiguresAgainstLimits) {
  CheckGoldenCases("workflows/run/gate_cases.txt", [](const std::string& in) {
    std::vector<std::string> lines;
    for (const GateRecord& gate : JudgeCase(in)) {
      lines.push_back(absl::StrCat(
          VerificationRecord::Verdict_Name(gate.verdict()), " ", gate.name(),
          " limit ", gate.limit(), ": ", gate.sentence()));
      if (gate.has_advice()) lines.push_back("  " + gate.advice());
    }
    return absl::StrJoin(lines, "\n");
  });
}

TEST(JudgeGates, KnowsEveryLimitOfTheSchema) {
  Gates gates;
  const google::protobuf::Descriptor* fields = Gates::descriptor();
  for (int i = 0; i < fields->field_count(); ++i) {
    Gates::GetReflection()->SetDouble(&gates, fields->field(i), 1000);
  }
  const std::vector<GateRecord> judged =
      JudgeGates(Parse<EvaluateResult>(kResult), gates, nullptr);
  // The additional gate is lost_values.
  ASSERT_EQ(judged.size(), fields->field_count() + 1u);
  for (int i = 0; i < fields->field_count(); ++i) {
    EXPECT_EQ(judged[i].name(), fields->field(i)->name());
  }
}

TEST(WorstVerdict, IsTheWorst) {
  EXPECT_EQ(WorstVerdict({}), VerificationRecord::NONE);
  EXPECT_EQ(WorstVerdict(Judged("max_accuracy_drop: 0.12")), kInconclusive);
  EXPECT_EQ(WorstVerdict(Judged("max_accuracy_drop: 0.12 min_agreement: 1")),
            kFail);
}

// Returns a plan with a baseline's run and a verification of "a" against it.
Plan VerificationOn(const std::string& records, double max_accuracy_drop) {
  Plan plan;
  plan.file.workflow = Parse<Workflow>(absl::StrCat(
      "evaluation { name: 'e' on { records: '", records,
      "' } gates { max_accuracy_drop: ", max_accuracy_drop,
      " } } stage { name: 'a' transform {} verify { evaluation: 'e' } }"));
  plan.verify_task = {1};
  plan.tasks.resize(2);
  plan.tasks[0].kind = Task::Kind::kBaseline;
  plan.tasks[0].evaluation = 0;
  plan.tasks[1].kind = Task::Kind::kVerify;
  plan.tasks[1].stage = 0;
  plan.tasks[1].evaluation = 0;
  plan.tasks[1].inputs = {{"baseline_predictions", 0, "", ""}};
  return plan;
}

// Returns a result that is 0.10 points worse, give or take 0.05.
CachedTask ResultOn(int64_t records) {
  return Parse<CachedTask>(absl::StrCat(
      "evaluation { timing { records: ", records, " } scores { records: ",
      records, " accuracy: 0.784 } comparison { records: ", records,
      " accuracy { points: -0.1 interval { low: -0.15 high: -0.05 } }"
      " output_change { mean: 0.005 interval { low: 0.004 high: 0.006 } } } "
      "}"));
}

const FinishedTask* Nothing(int) { return nullptr; }

std::vector<GateRecord> JudgeOn(const Plan& plan, int task, int64_t records) {
  return JudgeTask(plan, plan.tasks[task], ResultOn(records), Nothing);
}

std::optional<int64_t> Repeat(const Plan& plan, int64_t taken, int64_t limit) {
  return RecordsToRepeatOn(plan, plan.tasks[1], ResultOn(taken), limit,
                           JudgeOn(plan, 1, taken));
}

TEST(JudgeTask, HoldsAVerificationToTheLimitsOfItsWorkflow) {
  const auto verdict = [](double limit) {
    return WorstVerdict(JudgeOn(VerificationOn("100", limit), 1, 100));
  };
  EXPECT_EQ(verdict(0.2), kPass);
  EXPECT_EQ(verdict(0.12), kInconclusive);
  EXPECT_EQ(verdict(0.01), kFail);
  EXPECT_TRUE(JudgeOn(VerificationOn("100", 0.01), 0, 100).empty());
}

TEST(RecordLimit, IsTheEvaluationsForAVerification) {
  const Plan plan = VerificationOn("100", 0.12);
  EXPECT_EQ(RecordLimit(plan, plan.tasks[1]), 100);
  EXPECT_EQ(RecordLimit(plan, plan.tasks[0]), 0);
  const Plan unlimited = VerificationOn("", 0.12);
  EXPECT_EQ(RecordLimit(unlimited, unlimited.tasks[1]), 0);
}

TEST(RecordsToRepeatOn, AreFourTimesAsManyWhenNothingIsCertain) {
  const Plan plan = VerificationOn("100", 0.12);
  EXPECT_EQ(Repeat(plan, 100, 100), 400);
  EXPECT_EQ(Repeat(plan, 400, 400), 1600);
}

TEST(RecordsToRepeatOn, AreNoneWhenTheVerdictIsCertainOrNoRecordIsLeft) {
  EXPECT_EQ(Repeat(VerificationOn("100", 0.2), 100, 100), std::nullopt);
  EXPECT_EQ(Repeat(VerificationOn("100", 0.01), 100, 100), std::nullopt);
  EXPECT_EQ(Repeat(VerificationOn("100", 0.12), 99, 100), std::nullopt);
  EXPECT_EQ(Repeat(VerificationOn("", 0.12), 100, 0), std::nullopt);
}

// The user has limited the baseline's records.
TEST(RecordsToRepeatOn, AreNoneWhenTheBaselineIsLimited) {
  Plan plan = VerificationOn("100", 0.12);
  plan.tasks[0].baseline_records = "100";
  EXPECT_EQ(Repeat(plan, 100, 100), std::nullopt);
}

}  // namespace
}  // namespace requant::gates_test
