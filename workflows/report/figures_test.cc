#include "workflows/report/figures.h"

#include <optional>
#include <string_view>

#include "graph/testing/testing.h"
#include "workflows/run/run_record.pb.h"
#include "workflows/testing/example_runs.h"

namespace requant::figures_test {
namespace {

std::string StateOf(const StageRecord& stage) {
  RunRecord record;
  *record.add_stage() = stage;
  return FiguresOfStages(record)[0].state;
}

RunSummary Summary(const RunRecord& record) {
  return SummaryOf(record, FiguresOfStages(record));
}

// Returns the figure of a stage that was compared so.
std::optional<Estimate> FigureIn(const Comparison& comparison,
                                 std::string_view key) {
  EvaluateResult result;
  *result.mutable_comparison() = comparison;
  StageFigures stage;
  stage.result = &result;
  return FigureOf(stage, key);
}

TEST(StageState, IsThatOfTheTaskThatSaysMost) {
  struct Case {
    TaskRecord::State work, verification;
    const char* state;
  };
  for (const Case& one : std::vector<Case>{
           {TaskRecord::CACHED, TaskRecord::CACHED, "cached"},
           {TaskRecord::CACHED, TaskRecord::DONE, "done"},
           {TaskRecord::DONE, TaskRecord::CACHED, "done"},
           {TaskRecord::DONE, TaskRecord::FAILED, "failed"},
           {TaskRecord::DONE, TaskRecord::NOT_RUN, "not_run"},
           {TaskRecord::DONE, TaskRecord::RUNNING, "running"},
           {TaskRecord::DONE, TaskRecord::INTERRUPTED, "interrupted"},
           {TaskRecord::GIVEN, TaskRecord::DONE, "done"}}) {
    StageRecord stage;
    stage.mutable_work()->set_state(one.work);
    stage.mutable_verification()->mutable_work()->set_state(one.verification);
    EXPECT_EQ(StateOf(stage), one.state);
  }
  StageRecord stage;
  stage.mutable_work()->set_state(TaskRecord::GIVEN);
  EXPECT_EQ(StateOf(stage), "given");
  stage.set_left_out_because("pretrained_model");
  EXPECT_EQ(StateOf(stage), "left_out");
}

TEST(StageFigures, OutputChangeIsThatOfClass1WhereThereIsOne) {
  Comparison comparison;
  comparison.mutable_output_change()->set_mean(0.5);
  EXPECT_EQ(FigureIn(comparison, "mean_output_change")->value, 0.5);
  comparison.mutable_class_1_change()->set_mean(0.25);
  EXPECT_EQ(FigureIn(comparison, "mean_output_change")->value, 0.25);
}

TEST(StageFigures, SquaredChangeIsThatOfAllValues) {
  Comparison comparison;
  comparison.mutable_squared_change()->set_mean(0.5);
  EXPECT_EQ(FigureIn(comparison, "mse")->value, 0.5);
  EXPECT_FALSE(FigureIn(comparison, "mse")->interval.has_value());
  comparison.mutable_squared_change()->mutable_interval()->set_low(0.25);
  comparison.mutable_squared_change()->mutable_interval()->set_high(0.75);
  EXPECT_EQ(FigureIn(comparison, "mse")->interval->low(), 0.25);
}

TEST(StageFigures, WhatIsNotKnownIsUnset) {
  RunRecord record;
  record.add_stage();
  const StageFigures figures = FiguresOfStages(record)[0];
  EXPECT_FALSE(figures.nodes.has_value());
  EXPECT_FALSE(figures.benchmark.has_value());
  for (const Figure& figure : Figures()) {
    EXPECT_FALSE(figure.of(figures).has_value()) << figure.key;
    EXPECT_EQ(FigureText(figures, figure), "") << figure.key;
  }
}

TEST(RunSummary, IsTheLastComparedStageAgainstItsBaseline) {
  const RunRecord record = PassedRun();
  const RunSummary summary = Summary(record);
  ASSERT_GE(summary.stage, 0);
  EXPECT_EQ(record.stage(summary.stage).name(), "fuse");
  EXPECT_EQ(summary.baseline, "fuse_columns");
  EXPECT_DOUBLE_EQ(*summary.baseline_accuracy, 0.75962);
  EXPECT_DOUBLE_EQ(*summary.size_ratio, 9532987.0 / 4969116);
}

TEST(RunSummary, SpeedIsTheBenchmarksWhenItHasBoth) {
  RunRecord record = PassedRun();
  const RunSummary summary = Summary(record);
  EXPECT_TRUE(summary.speed_is_benchmarked);
  EXPECT_NEAR(summary.speed->median, 191400.0 / 84200, 0.02);
  EXPECT_TRUE(summary.speed->interval.has_value());
}

TEST(RunSummary, SpeedWithoutABenchmarkIsThatOfTheVerifications) {
  RunRecord record = PassedRun();
  record.mutable_stage()->RemoveLast();
  const RunSummary summary = Summary(record);
  EXPECT_FALSE(summary.speed_is_benchmarked);
  EXPECT_NEAR(summary.speed->median, 187310.0 / 81933, 1e-9);
  EXPECT_FALSE(summary.speed->interval.has_value());
}

// Intervals of a benchmark are against its first graph.
TEST(RunSummary, SpeedAgainstAGraphThatIsNotTheFirstHasNoInterval) {
  RunRecord record = PassedRun();
  BenchmarkRecord* benchmark =
      record.mutable_stage(record.stage_size() - 1)->mutable_benchmark();
  benchmark->mutable_graph()->SwapElements(0, 1);
  benchmark->mutable_result()->mutable_entry()->SwapElements(0, 1);
  const RunSummary summary = Summary(record);
  EXPECT_NEAR(summary.speed->median, 191400.0 / 84200, 0.02);
  EXPECT_FALSE(summary.speed->interval.has_value());
}

TEST(RunSummary, SizeOfABaselineThatIsAFileIsTheFiles) {
  RunRecord record;
  StageRecord* stage = record.add_stage();
  stage->mutable_graph()->set_bytes(10);
  stage->mutable_verification()->set_baseline("model");
  stage->mutable_verification()->mutable_result()->mutable_comparison();
  BaselineRecord* baseline = record.add_baseline();
  baseline->set_path("model");
  FileRecord* file = baseline->mutable_work()->add_input();
  file->set_path("model");
  file->set_bytes(25);
  const RunSummary summary = Summary(record);
  EXPECT_EQ(summary.baseline_stage, -1);
  EXPECT_EQ(summary.size_ratio, 2.5);
}

TEST(RunSummary, WithoutAComparisonThereIsNone) {
  EXPECT_EQ(Summary(OneStageRun()).stage, -1);
}

TEST(CheckedFiguresOf, ABenchmarkThatEndedEarlyHasNone) {
  BenchmarkRecord benchmark =
      PassedRun().stage(PassedRun().stage_size() - 1).benchmark();
  EXPECT_EQ(CheckedFiguresOf(benchmark).size(), 2);
  benchmark.mutable_result()->mutable_entry(1)->mutable_round()->RemoveLast();
  EXPECT_TRUE(CheckedFiguresOf(benchmark).empty());
  EXPECT_TRUE(CheckedFiguresOf(BenchmarkRecord()).empty());
}

TEST(UtcTime, HasMilliseconds) {
  EXPECT_EQ(UtcTime(1794845400123), "2026-11-16T16:10:00.123Z");
}

}  // namespace
}  // namespace requant::figures_test
