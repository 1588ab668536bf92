#include "workflows/run/task_verdict.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "workflows/run/gates.h"

namespace requant::task_verdict_test {
namespace {

template <typename Message>
Message Parse(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message));
  return message;
}

// A baseline's run, and a verification of stage "a" against it.
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
  TaskInput predictions;
  predictions.role = "baseline_predictions";
  predictions.task = 0;
  plan.tasks[1].inputs = {predictions};
  return plan;
}

// A tenth of a point worse, give or take half of that.
CachedTask ResultOn(int64_t records) {
  return Parse<CachedTask>(absl::StrCat(
      "evaluation { timing { records: ", records, " } scores { records: ",
      records, " accuracy: 0.784 } comparison { records: ", records,
      " accuracy { points: -0.1 interval { low: -0.15 high: -0.05 } }"
      " output_change { mean: 0.005 interval { low: 0.004 high: 0.006 } } } "
      "}"));
}

const FinishedTask* Nothing(int) { return nullptr; }

VerificationRecord::Verdict Verdict(const Plan& plan, int task) {
  return WorstVerdict(
      JudgeTask(plan, plan.tasks[task], ResultOn(100), Nothing));
}

std::optional<int64_t> Repeat(const Plan& plan, int64_t taken, int64_t limit) {
  return RecordsToRepeatOn(plan, plan.tasks[1], ResultOn(taken), limit,
                           Nothing);
}

TEST(JudgeTask, HoldsAVerificationToTheLimitsOfItsWorkflow) {
  EXPECT_EQ(Verdict(VerificationOn("100", 0.2), 1), VerificationRecord::PASS);
  EXPECT_EQ(Verdict(VerificationOn("100", 0.12), 1),
            VerificationRecord::INCONCLUSIVE);
  EXPECT_EQ(Verdict(VerificationOn("100", 0.01), 1), VerificationRecord::FAIL);
}

TEST(JudgeTask, HasNoVerdictOnAnyOtherTask) {
  const Plan plan = VerificationOn("100", 0.01);
  EXPECT_TRUE(JudgeTask(plan, plan.tasks[0], ResultOn(100), Nothing).empty());
}

TEST(RecordLimit, IsTheEvaluationsForAVerification) {
  const Plan plan = VerificationOn("100", 0.12);
  EXPECT_EQ(RecordLimit(plan, plan.tasks[1]), 100);
  EXPECT_EQ(RecordLimit(plan, plan.tasks[0]), 0);
}

TEST(RecordLimit, IsNoneWhenTheWorkflowSetsNone) {
  const Plan plan = VerificationOn("", 0.12);
  EXPECT_EQ(RecordLimit(plan, plan.tasks[1]), 0);
}

TEST(RecordsToRepeatOn, AreFourTimesAsManyWhenNothingIsCertain) {
  const Plan plan = VerificationOn("100", 0.12);
  EXPECT_EQ(Repeat(plan, 100, 100), 400);
  EXPECT_EQ(Repeat(plan, 400, 400), 1600);
}

TEST(RecordsToRepeatOn, AreNoneWhenTheVerdictIsCertain) {
  EXPECT_EQ(Repeat(VerificationOn("100", 0.2), 100, 100), std::nullopt);
  EXPECT_EQ(Repeat(VerificationOn("100", 0.01), 100, 100), std::nullopt);
}

TEST(RecordsToRepeatOn, AreNoneAtTheEndOfTheData) {
  EXPECT_EQ(Repeat(VerificationOn("100", 0.12), 99, 100), std::nullopt);
}

TEST(RecordsToRepeatOn, AreNoneWhenAllWereTaken) {
  EXPECT_EQ(Repeat(VerificationOn("", 0.12), 100, 0), std::nullopt);
}

// The user said how many records of the baseline there are to compare with.
TEST(RecordsToRepeatOn, AreNoneWhenTheBaselineIsLimited) {
  Plan plan = VerificationOn("100", 0.12);
  plan.tasks[0].baseline_records = "100";
  EXPECT_EQ(Repeat(plan, 100, 100), std::nullopt);
}

}  // namespace
}  // namespace requant::task_verdict_test
