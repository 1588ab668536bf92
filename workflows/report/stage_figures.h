#ifndef REQUANT_WORKFLOWS_REPORT_STAGE_FIGURES_H_
#define REQUANT_WORKFLOWS_REPORT_STAGE_FIGURES_H_

// The figures of a run that people compare, picked out of its record: one set
// per stage, and one for the run as a whole.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/benchmark/benchmark_figures.h"
#include "runtime/evaluation.pb.h"
#include "workflows/run/run_record.pb.h"

namespace requant {

struct StageFigures {
  // Of its work, verification and benchmark together: "done", "cached" (all of
  // it is), "given", "left_out", "failed", "interrupted", "running" or
  // "not_run".
  std::string_view state;
  // In this run, and when the work was done.
  double seconds = 0;
  double work_seconds = 0;

  std::optional<int64_t> nodes;
  std::optional<int64_t> bytes;

  // Of 1, with Wilson's interval.
  std::optional<double> accuracy;
  std::optional<Interval> accuracy_interval;
  // Against the baseline, in points.
  std::optional<double> difference;
  std::optional<Interval> difference_interval;
  std::optional<double> agreement;
  std::optional<Interval> agreement_interval;
  // Of the probability of class 1 where there is one, else of all values.
  std::optional<double> mean_change;
  std::optional<Interval> mean_change_interval;
  std::optional<double> max_change;
  // The mean over records and values of the squared change.
  std::optional<double> mean_squared_change;
  std::optional<Interval> mean_squared_change_interval;
  // While it was verified, with whatever else ran then.
  std::optional<double> records_per_second;
  // From the last benchmark stage that has this stage's graph: against that
  // benchmark's first graph.
  std::optional<GraphFigures> benchmark;
  VerificationRecord::Verdict verdict = VerificationRecord::NONE;
};

// One per stage, in the record's order.
std::vector<StageFigures> FiguresOfStages(const RunRecord& record);

// What the run comes down to: the last stage that was compared with a baseline,
// against that baseline. Indices into the record's stages; -1: there is none.
struct RunSummary {
  int stage = -1;
  // -1 also when the baseline is a file.
  int baseline_stage = -1;
  // As the stage or the path is called; empty without a baseline.
  std::string baseline;
  std::optional<double> baseline_accuracy;
  // From a benchmark of both graphs, with its interval, or, when there is none,
  // from the verifications, without one. Above 1 is faster.
  std::optional<PairedRatio> speed;
  bool speed_is_benchmarked = false;
  // Size of the baseline's file divided by that of the stage's.
  std::optional<double> size_ratio;
  std::optional<int64_t> baseline_bytes;
};

RunSummary SummaryOf(const RunRecord& record,
                     const std::vector<StageFigures>& figures);

// A benchmark's figures by graph; empty for a result that has no rounds to
// compare.
std::vector<GraphFigures> CheckedFiguresOf(const BenchmarkRecord& benchmark);

// "passed", "inconclusive", "gate_failed", "failed", "interrupted", "unknown".
std::string_view OutcomeName(RunRecord::Outcome outcome);
// "done", "cached", "given", "failed", "interrupted", "running", "not_run".
std::string_view StateName(TaskRecord::State state);
// "pass", "inconclusive", "fail"; "" for NONE.
std::string_view VerdictName(VerificationRecord::Verdict verdict);

// "2026-11-16T16:10:00.123Z".
std::string UtcTime(int64_t milliseconds);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_REPORT_STAGE_FIGURES_H_
