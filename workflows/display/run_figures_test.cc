#include "workflows/display/run_figures.h"

#include <gtest/gtest.h>

#include "base/message_text.h"
#include "workflows/report/figures.h"
#include "workflows/run/run_record.pb.h"

namespace requant::run_figures_test {
namespace {

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

TEST(StateOf, WaitsWhileTheVerificationIsToCome) {
  StageRecord stage;
  stage.mutable_work()->set_state(TaskRecord::DONE);
  EXPECT_EQ(StateOf(stage), StageState::kDone);
  stage.mutable_verification();
  EXPECT_EQ(StateOf(stage), StageState::kWaiting);
  stage.mutable_verification()->mutable_work()->set_state(TaskRecord::RUNNING);
  EXPECT_EQ(StateOf(stage), StageState::kRunning);
}

TEST(StateOf, IsCachedOnlyWhenAllOfItIs) {
  StageRecord stage;
  TaskRecord& verification = *stage.mutable_verification()->mutable_work();
  stage.mutable_work()->set_state(TaskRecord::CACHED);
  verification.set_state(TaskRecord::CACHED);
  EXPECT_EQ(StateOf(stage), StageState::kCached);
  verification.set_state(TaskRecord::DONE);
  EXPECT_EQ(StateOf(stage), StageState::kDone);
  stage.mutable_work()->set_state(TaskRecord::DONE);
  verification.set_state(TaskRecord::CACHED);
  EXPECT_EQ(StateOf(stage), StageState::kDone);
}

TEST(StateOf, TellsAFailedGateFromAFailedTask) {
  StageRecord stage;
  stage.mutable_work()->set_state(TaskRecord::CACHED);
  VerificationRecord& verification = *stage.mutable_verification();
  verification.mutable_work()->set_state(TaskRecord::CACHED);
  verification.set_verdict(VerificationRecord::FAIL);
  EXPECT_EQ(StateOf(stage), StageState::kGateFailed);
  stage.mutable_work()->set_state(TaskRecord::FAILED);
  EXPECT_EQ(StateOf(stage), StageState::kFailed);
}

}  // namespace
}  // namespace requant::run_figures_test
