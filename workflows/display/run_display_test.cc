#include "workflows/display/run_display.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/terminal/progress.h"
#include "base/testing/fake_terminal.h"
#include "workflows/run/run_observer.h"
#include "workflows/run/run_record.pb.h"

namespace requant::run_display_test {
namespace {

// A run of a workflow that the test moves by hand.
class RunDisplayTest : public testing::Test {
 protected:
  void Show(int columns, int rows) {
    terminal_ = std::make_unique<FakeTerminal>(columns, rows);
    display_ = MakeRunDisplay(options_, terminal_->Environment());
  }

  void ShowPlain() {
    terminal_ = std::make_unique<FakeTerminal>(200, 24);
    ProgressEnvironment environment = terminal_->Environment();
    environment.is_terminal = false;
    display_ = MakeRunDisplay(options_, environment);
  }

  void AddStage(const std::string& name, bool verified) {
    StageRecord& stage = *record_.add_stage();
    stage.set_name(name);
    if (verified) stage.mutable_verification()->set_evaluation("eval");
  }

  TaskRecord& Task(int stage, bool verifies) {
    StageRecord& record = *record_.mutable_stage(stage);
    return verifies ? *record.mutable_verification()->mutable_work()
                    : *record.mutable_work();
  }

  void Start(int stage, bool verifies) {
    Task(stage, verifies).set_state(TaskRecord::RUNNING);
    display_->TaskStarted(record_, {stage, -1, verifies});
  }

  void Progress(int stage, bool verifies, int64_t done, int64_t total,
                const std::string& note) {
    display_->TaskProgressed(record_, {stage, -1, verifies},
                             {done, total, "evaluating", "records", note});
  }

  void End(int stage, bool verifies, TaskRecord::State state, double seconds) {
    Task(stage, verifies).set_state(state);
    Task(stage, verifies).set_seconds(seconds);
    display_->TaskEnded(record_, {stage, -1, verifies});
  }

  // What the stage's verification found.
  void Find(int stage, double accuracy, double change,
            VerificationRecord::Verdict verdict) {
    VerificationRecord& verification =
        *record_.mutable_stage(stage)->mutable_verification();
    EvaluateResult& result = *verification.mutable_result();
    result.mutable_scores()->set_accuracy(accuracy);
    Comparison& comparison = *result.mutable_comparison();
    comparison.mutable_accuracy()->set_points(100 * (accuracy - 0.78455));
    comparison.mutable_agreement()->set_share(0.9951);
    comparison.mutable_class_1_change()->set_mean(change);
    verification.set_verdict(verdict);
    GateRecord& gate = *verification.add_gate();
    gate.set_name("max_mean_output_change");
    gate.set_sentence("mean output change .0213, limit .0060");
    gate.set_verdict(verdict);
  }

  RunDisplayOptions options_ = {true, false, false};
  RunRecord record_;
  std::unique_ptr<FakeTerminal> terminal_;
  std::unique_ptr<RunDisplay> display_;
};

TEST_F(RunDisplayTest, HasALinePerStageFromTheStart) {
  AddStage("freeze", false);
  AddStage("optimize", true);
  record_.mutable_stage(1)->mutable_verification()->set_evaluation("raw");
  record_.add_baseline()->set_name("raw/baseline");
  Show(80, 24);
  display_->RunStarted(record_);
  EXPECT_EQ(terminal_->Text(),
            "  stage            time   accuracy  difference  agreement   "
            "change  verdict\n"
            "· freeze\n"
            "· raw/baseline\n"
            "· optimize\n"
            "  0 of 3 done, 3 waiting, 0:00\n");
}

TEST_F(RunDisplayTest, ShowsProgressAndResultsAsTheyCome) {
  AddStage("freeze", false);
  AddStage("optimize", true);
  AddStage("quantize", true);
  Show(80, 24);
  display_->RunStarted(record_);
  Start(0, false);
  End(0, false, TaskRecord::DONE, 1.2);
  Start(1, false);
  End(1, false, TaskRecord::CACHED, 0);
  Start(1, true);
  Find(1, 0.78455, 0, VerificationRecord::PASS);
  End(1, true, TaskRecord::DONE, 5.44);
  Start(2, false);
  End(2, false, TaskRecord::DONE, 2);
  Start(2, true);
  Progress(2, true, 0, 200000, "");
  terminal_->now += 2;
  Progress(2, true, 50000, 200000, "accuracy 78.40 %");
  EXPECT_EQ(terminal_->Text(),
            "  stage        time   accuracy  difference  agreement   change  "
            "verdict\n"
            "✓ freeze      1.2 s\n"
            "✓ optimize    5.4 s   78.455 %      +0.000     0.9951  0.00000  "
            "PASS\n"
            "▸ quantize      4 s  ━━━╸──────────  25 %    25k/s  "
            "accuracy 78.40 %  0:06 left\n"
            "  2 of 3 done, 1 running, 0:02\n");
}

TEST_F(RunDisplayTest, EndsWithTheStageWhoseGateFailedAndWhatDidNotRun) {
  AddStage("fuse", true);
  AddStage("benchmark", false);
  Show(100, 24);
  display_->RunStarted(record_);
  Task(0, false).set_state(TaskRecord::CACHED);
  Start(0, true);
  Find(0, 0.7521, 0.0213, VerificationRecord::FAIL);
  End(0, true, TaskRecord::DONE, 1.5);
  display_->RunEnded(record_);
  EXPECT_EQ(terminal_->Text(),
            "  stage         time   accuracy  difference  agreement   change  "
            "verdict\n"
            "✗ fuse         1.5 s   75.210 %      -3.245     0.9951  0.02130  "
            "FAIL  max_mean_output_change\n"
            "· benchmark           not run\n");
}

TEST_F(RunDisplayTest, SaysWhatIsCachedGivenLeftOutFailedOrInterrupted) {
  for (const char* name : {"a", "b", "c", "d", "e"}) AddStage(name, false);
  Task(0, false).set_state(TaskRecord::CACHED);
  Task(1, false).set_state(TaskRecord::GIVEN);
  record_.mutable_stage(2)->set_left_out_because("fp32_graph");
  Task(3, false).set_state(TaskRecord::FAILED);
  Task(3, false).set_seconds(3);
  Task(3, false).set_message("out of memory,\nthe graph needs 12 GB of it");
  Task(4, false).set_state(TaskRecord::INTERRUPTED);
  Show(40, 24);
  display_->RunStarted(record_);
  display_->RunEnded(record_);
  EXPECT_EQ(terminal_->Text(),
            "  stage     time   accuracy  verdict\n"
            "✓ a       cached\n"
            "✓ b        given\n"
            "- c      skipped  fp32_graph\n"
            "✗ d        3.0 s  out of memory, the g…\n"
            "✗ e               interrupted\n");
}

TEST_F(RunDisplayTest, FitsAWindowOfTwentyColumns) {
  AddStage("fuse_feature_columns", false);
  AddStage("quantize", true);
  Show(20, 24);
  display_->RunStarted(record_);
  Start(0, false);
  End(0, false, TaskRecord::DONE, 1.2);
  Start(1, true);
  terminal_->now += 1;
  Progress(1, true, 50000, 200000, "accuracy 78.40 %");
  EXPECT_EQ(terminal_->Text(),
            "✓ fuse_fe…    1.2 s\n"
            "▸ quantize     25 %\n"
            "  1 of 2 done, 1 ru\n");
}

TEST_F(RunDisplayTest, LeavesNothingBehindWhenTheWidthChanges) {
  AddStage("fuse_feature_columns", true);
  AddStage("quantize", true);
  for (int columns = 1; columns < 130; ++columns) {
    Show(columns, 200);
    terminal_->Write("$\n");
    display_->RunStarted(record_);
    Start(1, true);
    terminal_->now += 1;
    Progress(1, true, 50000, 200000, "accuracy 78.40 %");
    terminal_->Resize(131 - columns, 200);
    terminal_->now += 1;
    display_->Tick();
    terminal_->Resize(100, 200);
    display_->RunEnded(record_);
    EXPECT_EQ(terminal_->Text(),
              "$\n"
              "  stage                    time   accuracy  difference  "
              "agreement   change  verdict\n"
              "· fuse_feature_columns           not run\n"
              "▸ quantize\n");
  }
}

TEST_F(RunDisplayTest, NeedsNoRowsAtAll) {
  AddStage("a", true);
  AddStage("b", true);
  for (int rows = 0; rows < 3; ++rows) {
    Show(80, rows);
    display_->RunStarted(record_);
    Start(0, true);
    terminal_->now += 1;
    display_->Tick();
    End(0, true, TaskRecord::DONE, 1);
    terminal_->now += 1;
    display_->Tick();
    display_->RunEnded(record_);
    EXPECT_TRUE(absl::StrContains(terminal_->Text(), "✓ a"));
  }
}

TEST_F(RunDisplayTest, LetsFinishedStagesScrollUpWhereRowsAreFew) {
  for (int i = 0; i < 8; ++i) AddStage(absl::StrCat("stage", i), false);
  for (int i = 0; i < 3; ++i) Task(i, false).set_state(TaskRecord::CACHED);
  Show(40, 6);
  display_->RunStarted(record_);
  Start(3, false);
  End(3, false, TaskRecord::DONE, 1);
  terminal_->now += 1;
  Start(5, false);
  EXPECT_EQ(terminal_->Text(),
            "  stage      time   accuracy  verdict\n"
            "✓ stage0   cached\n"
            "✓ stage1   cached\n"
            "✓ stage2   cached\n"
            "✓ stage3    1.0 s\n"
            "· stage4\n"
            "▸ stage5      0 s  working\n"
            "  4 of 8 done, 1 running, 3 waiting, 0:\n");
}

TEST_F(RunDisplayTest, ShowsWhatRunsFirstWhereRowsAreFew) {
  for (int i = 0; i < 8; ++i) AddStage(absl::StrCat("stage", i), false);
  Show(60, 4);
  display_->RunStarted(record_);
  terminal_->now += 1;
  Start(6, false);
  EXPECT_EQ(terminal_->Text(),
            "  stage      time   accuracy  agreement   change  verdict\n"
            "▸ stage6      0 s  working\n"
            "  0 of 8 done, 1 running, 7 waiting, 0:01\n");
}

TEST_F(RunDisplayTest, PutsWarningsAboveTheStages) {
  AddStage("a", false);
  Show(30, 24);
  display_->RunStarted(record_);
  display_->Said("warning: a cached output was\nchanged\x1b[2J");
  EXPECT_EQ(terminal_->Text(),
            "warning: a cached output was\n"
            "changed [2J\n"
            "· a\n"
            "  0 of 1 done, 1 waiting, 0:0\n");
}

TEST_F(RunDisplayTest, DrawsTenTimesASecondAtMost) {
  AddStage("a", true);
  Show(80, 24);
  display_->RunStarted(record_);
  Start(0, true);
  for (int i = 0; i < 1000; ++i) {
    terminal_->now += 1.0 / 1024;
    Progress(0, true, i, 1000, "");
  }
  EXPECT_LE(terminal_->writes(), 11);
  EXPECT_GE(terminal_->writes(), 9);
}

TEST_F(RunDisplayTest, ErasesTheStagesWhenATableFollows) {
  AddStage("a", false);
  options_.erase_at_end = true;
  Show(80, 24);
  terminal_->Write("$ requant run\n");
  display_->RunStarted(record_);
  display_->RunEnded(record_);
  EXPECT_EQ(terminal_->Text(), "$ requant run\n");
}

TEST_F(RunDisplayTest, UsesAsciiWhereTheLocaleKnowsNoMore) {
  AddStage("gr\u00f6\u00dfe", false);
  AddStage("quantize", true);
  options_.utf8 = false;
  Show(60, 24);
  display_->RunStarted(record_);
  Start(0, false);
  End(0, false, TaskRecord::DONE, 1);
  Start(1, true);
  Progress(1, true, 0, 100000, "");
  terminal_->now += 1;
  Progress(1, true, 50000, 100000, "");
  EXPECT_EQ(terminal_->Text(),
            "  stage        time   accuracy  agreement   change  verdict\n"
            "+ gr??e       1.0 s\n"
            "> quantize      1 s  [=====>    ]  50 %    50k/s  0:01 left\n"
            "  1 of 2 done, 1 running, 0:01\n");
}

TEST_F(RunDisplayTest, ColoursOnlyWhenAsked) {
  AddStage("a", false);
  Task(0, false).set_state(TaskRecord::CACHED);
  Show(80, 24);
  display_->RunStarted(record_);
  EXPECT_FALSE(absl::StrContains(terminal_->raw(), "\x1b[32m"));
  options_.color = true;
  Show(80, 24);
  display_->RunStarted(record_);
  EXPECT_TRUE(absl::StrContains(terminal_->raw(), "\x1b[32m✓\x1b[0m a"))
      << terminal_->raw();
}

TEST_F(RunDisplayTest, WritesALinePerTaskElsewhere) {
  AddStage("optimize", true);
  AddStage("fuse", true);
  record_.set_workflow("wide_deep");
  ShowPlain();
  display_->RunStarted(record_);
  Start(0, false);
  End(0, false, TaskRecord::DONE, 0.8);
  Start(0, true);
  Find(0, 0.78455, 0, VerificationRecord::PASS);
  End(0, true, TaskRecord::DONE, 5.4);
  End(1, false, TaskRecord::CACHED, 0);
  Start(1, true);
  Find(1, 0.7521, 0.0213, VerificationRecord::FAIL);
  End(1, true, TaskRecord::DONE, 1.5);
  record_.set_outcome(RunRecord::GATE_FAILED);
  record_.set_seconds(7.7);
  display_->RunEnded(record_);
  EXPECT_EQ(
      terminal_->raw(),
      "12:34:56 wide_deep  2 stages\n"
      "12:34:56 optimize  done in 0.8 s\n"
      "12:34:56 optimize/verify  done in 5.4 s  accuracy 78.455 %  agreement "
      "0.9951  change 0.00000  PASS\n"
      "12:34:56 fuse  cached\n"
      "12:34:56 fuse/verify  done in 1.5 s  accuracy 75.210 %  agreement "
      "0.9951  change 0.02130  FAIL  max_mean_output_change: mean output "
      "change .0213, limit .0060\n"
      "12:34:56 wide_deep  FAILED a gate after 7.7 s\n");
}

TEST_F(RunDisplayTest, WritesThatATaskWasStoppedElsewhere) {
  AddStage("optimize", false);
  ShowPlain();
  Start(0, false);
  End(0, false, TaskRecord::NOT_RUN, 1.5);
  EXPECT_EQ(terminal_->raw(), "12:34:56 optimize  stopped after 1.5 s\n");
}

TEST_F(RunDisplayTest, WritesTheFirstOfSeveralFailedGatesElsewhere) {
  AddStage("fuse", true);
  ShowPlain();
  Start(0, true);
  Find(0, 0.7521, 0.0213, VerificationRecord::FAIL);
  for (const char* name : {"second", "third"}) {
    GateRecord& gate =
        *record_.mutable_stage(0)->mutable_verification()->add_gate();
    gate.set_name(name);
    gate.set_verdict(VerificationRecord::FAIL);
  }
  End(0, true, TaskRecord::DONE, 1.5);
  EXPECT_THAT(terminal_->raw(),
              testing::EndsWith("FAIL  max_mean_output_change: mean output "
                                "change .0213, limit .0060  and 2 more "
                                "gates\n"));
}

TEST_F(RunDisplayTest, WritesProgressOfLongTasksElsewhere) {
  AddStage("optimize", true);
  ShowPlain();
  display_->RunStarted(record_);
  Start(0, false);
  for (int i = 0; i < 150; ++i) {
    terminal_->now += 0.125;
    display_->Tick();
  }
  End(0, false, TaskRecord::DONE, 15);
  Start(0, true);
  for (int i = 1; i <= 50; ++i) {
    terminal_->now += 0.25;
    Progress(0, true, 1000 * i, 100000, "accuracy 78.40 %");
  }
  EXPECT_EQ(terminal_->raw(),
            "12:34:56   1 stage\n"
            "12:34:56 optimize  running for 0:10\n"
            "12:34:56 optimize  done in 15.0 s\n"
            "12:34:56 optimize/verify  evaluating  40k/100k records (40 %)  "
            "4k/s  0:15 left  accuracy 78.40 %\n");
}

}  // namespace
}  // namespace requant::run_display_test
