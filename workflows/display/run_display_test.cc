#include "workflows/display/run_display.h"

#include <memory>
#include <string_view>

#include "absl/strings/strip.h"
#include "base/terminal/progress.h"
#include "base/testing/fake_terminal.h"
#include "graph/testing/testing.h"
#include "workflows/run/run_record.h"
#include "workflows/run/run_record.pb.h"

namespace requant::run_display_test {
namespace {

constexpr auto kDone = TaskRecord::DONE;
constexpr auto kCached = TaskRecord::CACHED;
// Which of a stage's tasks it is.
constexpr bool kWork = false, kVerification = true;

// A run of a workflow that the test moves by hand.
class RunDisplayTest : public testing::Test {
 protected:
  // Adds stages; those whose names end with "*" are verified.
  void AddStages(const std::vector<std::string>& names) {
    for (std::string_view name : names) {
      StageRecord& stage = *record_.add_stage();
      if (absl::ConsumeSuffix(&name, "*")) {
        stage.mutable_verification()->set_evaluation("eval");
      }
      stage.set_name(name);
    }
  }

  // Starts the display on a terminal of that size.
  void Show(int columns, int rows, std::string_view already_there = "") {
    terminal_ = std::make_unique<FakeTerminal>(columns, rows);
    terminal_->Write(already_there);
    display_ = MakeRunDisplay(options_, terminal_->Environment());
    display_->RunStarted(record_);
  }

  void ShowPlain() {
    terminal_ = std::make_unique<FakeTerminal>(200, 24);
    ProgressEnvironment environment = terminal_->Environment();
    environment.is_terminal = false;
    display_ = MakeRunDisplay(options_, environment);
  }

  TaskRecord& Task(int stage, bool verifies = kWork) {
    StageRecord& record = *record_.mutable_stage(stage);
    return verifies ? *record.mutable_verification()->mutable_work()
                    : *record.mutable_work();
  }

  void Start(int stage, bool verifies = kWork) {
    Task(stage, verifies).set_state(TaskRecord::RUNNING);
    display_->TaskStarted(record_, {stage, -1, verifies});
  }

  // Shows progress of the stage's verification, that much later.
  void Progress(double seconds, int stage, int64_t done, int64_t total,
                const std::string& note = "") {
    terminal_->now += seconds;
    display_->TaskProgressed(record_, {stage, -1, kVerification},
                             {done, total, "evaluating", "records", note});
  }

  void End(int stage, bool verifies, TaskRecord::State state, double seconds) {
    Task(stage, verifies).set_state(state);
    Task(stage, verifies).set_seconds(seconds);
    display_->TaskEnded(record_, {stage, -1, verifies});
  }

  // Runs the stage's work from its start to its end.
  void Make(int stage, TaskRecord::State state, double seconds) {
    Start(stage);
    End(stage, kWork, state, seconds);
  }

  void Tick(double seconds) {
    terminal_->now += seconds;
    display_->Tick();
  }

  // Runs the stage's verification, which finds these figures.
  void Verify(int stage, double accuracy, double change,
              VerificationRecord::Verdict verdict, double seconds,
              const std::vector<std::string>& more_gates = {}) {
    Start(stage, kVerification);
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
    for (const std::string& name : more_gates) {
      GateRecord& another = *verification.add_gate();
      another.set_name(name);
      another.set_verdict(verdict);
    }
    End(stage, kVerification, kDone, seconds);
  }

  RunDisplayOptions options_ = {true, false, false};
  RunRecord record_;
  std::unique_ptr<FakeTerminal> terminal_;
  std::unique_ptr<RunDisplay> display_;
};

TEST_F(RunDisplayTest, HasALinePerStageFromTheStart) {
  AddStages({"freeze", "optimize*"});
  record_.mutable_stage(1)->mutable_verification()->set_evaluation("raw");
  record_.add_baseline()->set_name("raw/baseline");
  Show(80, 24);
  EXPECT_EQ(
      terminal_->Text(),
      R"(  stage            time   accuracy  difference  agreement   change  verdict
· freeze
· raw/baseline
· optimize
  0 of 3 done, 3 waiting, 0:00
)");
}

TEST_F(RunDisplayTest, ShowsProgressAndResultsAsTheyCome) {
  AddStages({"freeze", "optimize*", "quantize*"});
  Show(80, 24);
  Make(0, kDone, 1.2);
  Make(1, kCached, 0);
  Verify(1, 0.78455, 0, VerificationRecord::PASS, 5.44);
  Make(2, kDone, 2);
  Start(2, kVerification);
  Progress(0, 2, 0, 200000);
  Progress(2, 2, 50000, 200000, "accuracy 78.40 %");
  EXPECT_EQ(
      terminal_->Text(),
      R"(  stage        time   accuracy  difference  agreement   change  verdict
✓ freeze      1.2 s
✓ optimize    5.4 s   78.455 %      +0.000     0.9951  0.00000  PASS
▸ quantize      4 s  ━━━╸──────────  25 %    25k/s  accuracy 78.40 %  0:06 left
  2 of 3 done, 1 running, 0:02
)");
}

TEST_F(RunDisplayTest, EndsWithTheStageWhoseGateFailedAndWhatDidNotRun) {
  AddStages({"fuse*", "benchmark"});
  Show(100, 24);
  Task(0).set_state(kCached);
  Verify(0, 0.7521, 0.0213, VerificationRecord::FAIL, 1.5);
  display_->RunEnded(record_);
  EXPECT_EQ(
      terminal_->Text(),
      R"(  stage         time   accuracy  difference  agreement   change  verdict
✗ fuse         1.5 s   75.210 %      -3.245     0.9951  0.02130  FAIL  max_mean_output_change
· benchmark           not run
)");
}

TEST_F(RunDisplayTest, SaysWhatIsCachedGivenLeftOutFailedOrInterrupted) {
  AddStages({"a", "b", "c", "d", "e"});
  Task(0).set_state(kCached);
  Task(1).set_state(TaskRecord::GIVEN);
  record_.mutable_stage(2)->set_left_out_because("fp32_graph");
  Task(3).set_state(TaskRecord::FAILED);
  Task(3).set_seconds(3);
  Task(3).set_message("out of memory,\nthe graph needs 12 GB of it");
  Task(4).set_state(TaskRecord::INTERRUPTED);
  Show(40, 24);
  display_->RunEnded(record_);
  EXPECT_EQ(terminal_->Text(), R"(  stage     time   accuracy  verdict
✓ a       cached
✓ b        given
- c      skipped  fp32_graph
✗ d        3.0 s  out of memory, the g…
✗ e               interrupted
)");
}

TEST_F(RunDisplayTest, FitsAWindowOfTwentyColumns) {
  AddStages({"fuse_feature_columns", "quantize*"});
  Show(20, 24);
  Make(0, kDone, 1.2);
  Start(1, kVerification);
  Progress(1, 1, 50000, 200000, "accuracy 78.40 %");
  EXPECT_EQ(terminal_->Text(), R"(✓ fuse_fe…    1.2 s
▸ quantize     25 %
  1 of 2 done, 1 ru
)");
}

TEST_F(RunDisplayTest, LeavesNothingBehindWhenTheWidthChanges) {
  AddStages({"fuse_feature_columns*", "quantize*"});
  for (int columns = 1; columns < 130; ++columns) {
    Show(columns, 200, "$\n");
    Start(1, kVerification);
    Progress(1, 1, 50000, 200000, "accuracy 78.40 %");
    terminal_->Resize(131 - columns, 200);
    Tick(1);
    terminal_->Resize(100, 200);
    display_->RunEnded(record_);
    EXPECT_EQ(terminal_->Text(), R"($
  stage                    time   accuracy  difference  agreement   change  verdict
· fuse_feature_columns           not run
▸ quantize
)");
  }
}

TEST_F(RunDisplayTest, NeedsNoRowsAtAll) {
  AddStages({"a*", "b*"});
  for (int rows = 0; rows < 3; ++rows) {
    Show(80, rows);
    Start(0, kVerification);
    Tick(1);
    End(0, kVerification, kDone, 1);
    Tick(1);
    display_->RunEnded(record_);
    EXPECT_THAT(terminal_->Text(), HasSubstr("✓ a"));
  }
}

TEST_F(RunDisplayTest, LetsFinishedStagesScrollUpWhereRowsAreFew) {
  for (int i = 0; i < 8; ++i) AddStages({absl::StrCat("stage", i)});
  for (int i = 0; i < 3; ++i) Task(i).set_state(kCached);
  Show(40, 6);
  Make(3, kDone, 1);
  terminal_->now += 1;
  Start(5);
  EXPECT_EQ(terminal_->Text(), R"(  stage      time   accuracy  verdict
✓ stage0   cached
✓ stage1   cached
✓ stage2   cached
✓ stage3    1.0 s
· stage4
▸ stage5      0 s  working
  4 of 8 done, 1 running, 3 waiting, 0:
)");
}

TEST_F(RunDisplayTest, ShowsWhatRunsFirstWhereRowsAreFew) {
  for (int i = 0; i < 8; ++i) AddStages({absl::StrCat("stage", i)});
  Show(60, 4);
  terminal_->now += 1;
  Start(6);
  EXPECT_EQ(terminal_->Text(),
            R"(  stage      time   accuracy  agreement   change  verdict
▸ stage6      0 s  working
  0 of 8 done, 1 running, 7 waiting, 0:01
)");
}

TEST_F(RunDisplayTest, PutsWarningsAboveTheStages) {
  AddStages({"a"});
  Show(30, 24);
  display_->Said("warning: a cached output was\nchanged\x1b[2J");
  EXPECT_EQ(terminal_->Text(), R"(warning: a cached output was
changed [2J
· a
  0 of 1 done, 1 waiting, 0:0
)");
}

TEST_F(RunDisplayTest, DrawsTenTimesASecondAtMost) {
  AddStages({"a*"});
  Show(80, 24);
  Start(0, kVerification);
  for (int i = 0; i < 1000; ++i) Progress(1.0 / 1024, 0, i, 1000);
  EXPECT_LE(terminal_->writes(), 11);
  EXPECT_GE(terminal_->writes(), 9);
}

TEST_F(RunDisplayTest, ErasesTheStagesWhenATableFollows) {
  AddStages({"a"});
  options_.erase_at_end = true;
  Show(80, 24, "$ requant run\n");
  display_->RunEnded(record_);
  EXPECT_EQ(terminal_->Text(), "$ requant run\n");
}

TEST_F(RunDisplayTest, UsesAsciiWhereTheLocaleKnowsNoMore) {
  AddStages({"gr\u00f6\u00dfe", "quantize*"});
  options_.utf8 = false;
  Show(60, 24);
  Make(0, kDone, 1);
  Start(1, kVerification);
  Progress(0, 1, 0, 100000);
  Progress(1, 1, 50000, 100000);
  EXPECT_EQ(terminal_->Text(),
            R"(  stage        time   accuracy  agreement   change  verdict
+ gr??e       1.0 s
> quantize      1 s  [=====>    ]  50 %    50k/s  0:01 left
  1 of 2 done, 1 running, 0:01
)");
}

TEST_F(RunDisplayTest, ColoursOnlyWhenAsked) {
  AddStages({"a"});
  Task(0).set_state(kCached);
  Show(80, 24);
  EXPECT_THAT(terminal_->raw(), Not(HasSubstr("\x1b[32m")));
  options_.color = true;
  Show(80, 24);
  EXPECT_THAT(terminal_->raw(), HasSubstr("\x1b[32m✓\x1b[0m a"));
}

TEST_F(RunDisplayTest, WritesALinePerTaskElsewhere) {
  AddStages({"optimize*", "fuse*"});
  record_.set_workflow("wide_deep");
  ShowPlain();
  display_->RunStarted(record_);
  Make(0, kDone, 0.8);
  Verify(0, 0.78455, 0, VerificationRecord::PASS, 5.4);
  End(1, kWork, kCached, 0);
  Verify(1, 0.7521, 0.0213, VerificationRecord::FAIL, 1.5);
  record_.set_outcome(RunRecord::GATE_FAILED);
  record_.set_seconds(7.7);
  display_->RunEnded(record_);
  EXPECT_EQ(terminal_->raw(), R"(12:34:56 wide_deep  2 stages
12:34:56 optimize  done in 0.8 s
12:34:56 optimize/verify  done in 5.4 s  accuracy 78.455 %  agreement 0.9951  change 0.00000  PASS
12:34:56 fuse  cached
12:34:56 fuse/verify  done in 1.5 s  accuracy 75.210 %  agreement 0.9951  change 0.02130  FAIL  max_mean_output_change: mean output change .0213, limit .0060
12:34:56 wide_deep  FAILED a gate after 7.7 s
)");
}

TEST_F(RunDisplayTest, WritesThatATaskWasStoppedElsewhere) {
  AddStages({"optimize"});
  ShowPlain();
  Make(0, TaskRecord::NOT_RUN, 1.5);
  EXPECT_EQ(terminal_->raw(), "12:34:56 optimize  stopped after 1.5 s\n");
}

TEST_F(RunDisplayTest, WritesTheFirstOfSeveralFailedGatesElsewhere) {
  AddStages({"fuse*"});
  ShowPlain();
  Verify(0, 0.7521, 0.0213, VerificationRecord::FAIL, 1.5, {"second", "third"});
  EXPECT_THAT(terminal_->raw(),
              EndsWith("FAIL  max_mean_output_change: mean output "
                       "change .0213, limit .0060  and 2 more "
                       "gates\n"));
}

TEST_F(RunDisplayTest, WritesProgressOfLongTasksElsewhere) {
  AddStages({"optimize*"});
  ShowPlain();
  display_->RunStarted(record_);
  Start(0);
  for (int i = 0; i < 150; ++i) Tick(0.125);
  End(0, kWork, kDone, 15);
  Start(0, kVerification);
  for (int i = 1; i <= 50; ++i) {
    Progress(0.25, 0, 1000 * i, 100000, "accuracy 78.40 %");
  }
  EXPECT_EQ(terminal_->raw(), R"(12:34:56   1 stage
12:34:56 optimize  running for 0:10
12:34:56 optimize  done in 15.0 s
12:34:56 optimize/verify  evaluating  40k/100k records (40 %)  4k/s  0:15 left  accuracy 78.40 %
)");
}

}  // namespace
}  // namespace requant::run_display_test
