#include "runtime/benchmark/benchmark_figures.h"

#include <gtest/gtest.h>

#include <vector>

#include "runtime/session/worker.pb.h"
#include "runtime/statistics/interval.h"

namespace requant::benchmark_figures_test {
namespace {

// Rounds of 1000 records each.
void AddEntry(const std::vector<double>& rates, double cpu_seconds,
              BenchmarkResult* result) {
  EntryMeasurement& entry = *result->add_entry();
  for (const double rate : rates) {
    RoundMeasurement& round = *entry.add_round();
    round.set_records(1000);
    round.set_records_per_second(rate);
    round.set_cpu_seconds(cpu_seconds);
  }
  entry.set_median_batch_seconds(0.002);
  entry.set_p99_batch_seconds(0.003);
}

TEST(FiguresOf, AreMediansOverTheRounds) {
  BenchmarkResult result;
  AddEntry({100, 500, 110}, 0.25, &result);
  const GraphFigures figures = FiguresOf(result)[0];
  EXPECT_EQ(figures.records_per_second, 110);
  EXPECT_DOUBLE_EQ(figures.spread, (305.0 - 105) / 110);
  EXPECT_DOUBLE_EQ(figures.cpu_microseconds_per_record, 250);
  EXPECT_DOUBLE_EQ(figures.milliseconds_per_batch, 2);
  EXPECT_DOUBLE_EQ(figures.milliseconds_per_batch_p99, 3);
}

TEST(FiguresOf, ComparesGraphsRoundByRound) {
  BenchmarkResult result;
  // The machine gets slower and slower; the second graph is always twice as
  // fast as the first.
  AddEntry({600, 500, 400, 300, 200, 100}, 0.5, &result);
  AddEntry({1200, 1000, 800, 600, 400, 200}, 0.125, &result);
  const std::vector<GraphFigures> figures = FiguresOf(result);
  EXPECT_EQ(figures[0].speed.median, 1);
  EXPECT_FALSE(figures[0].speed.interval.has_value());
  EXPECT_EQ(figures[1].speed.median, 2);
  ASSERT_TRUE(figures[1].speed.interval.has_value());
  EXPECT_EQ(figures[1].speed.interval->low(), 2);
  EXPECT_EQ(figures[1].speed.interval->high(), 2);
  EXPECT_EQ(figures[1].cpu_time.median, 0.25);
}

TEST(FiguresOf, KnowsTheShareOfTimeSpentWaiting) {
  BenchmarkResult result;
  AddEntry({1, 1}, 0.3, &result);
  EXPECT_FALSE(FiguresOf(result)[0].waited_share.has_value());
  for (RoundMeasurement& round : *result.mutable_entry(0)->mutable_round()) {
    round.set_waited_seconds(0.1);
  }
  EXPECT_DOUBLE_EQ(FiguresOf(result)[0].waited_share.value_or(-1), 0.25);
}

TEST(JudgeSpeed, AsksWhetherTheIntervalHoldsOne) {
  EXPECT_EQ(JudgeSpeed({2, MakeInterval(1.01, 3)}), SpeedVerdict::kFaster);
  EXPECT_EQ(JudgeSpeed({0.5, MakeInterval(0.1, 0.99)}), SpeedVerdict::kSlower);
  EXPECT_EQ(JudgeSpeed({1.5, MakeInterval(0.9, 2)}),
            SpeedVerdict::kNoDifference);
  EXPECT_EQ(JudgeSpeed({1.5, std::nullopt}), SpeedVerdict::kUnknown);
}

}  // namespace
}  // namespace requant::benchmark_figures_test
