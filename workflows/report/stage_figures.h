#ifndef REQUANT_WORKFLOWS_REPORT_STAGE_FIGURES_H_
#define REQUANT_WORKFLOWS_REPORT_STAGE_FIGURES_H_

// The figures of a run that people compare, picked out of its record: one set
// per stage, and one for the run as a whole.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/benchmark/benchmark_report.h"
#include "runtime/evaluation.pb.h"
#include "workflows/run/run_record.pb.h"

namespace requant {

// What figures.h takes its figures from.
struct StageFigures {
  // Of its work, verification and benchmark together: "done", "cached" (all of
  // it is), "given", "left_out", "failed", "interrupted", "running" or
  // "not_run".
  std::string state;
  // In this run, and when the work was done.
  double seconds = 0;
  double work_seconds = 0;

  std::optional<int64_t> nodes;
  std::optional<int64_t> bytes;

  // That of its verification, in the record.
  const EvaluateResult* result = &EvaluateResult::default_instance();
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

// The state of a stage's tasks that says most about it: what went wrong before
// what is still to do, that before what is done, and new work before old.
TaskRecord::State StateOfTasks(const StageRecord& stage);

// "passed", "inconclusive", "gate_failed", "failed", "interrupted", "unknown".
std::string OutcomeName(RunRecord::Outcome outcome);
// "done", "cached", "given", "failed", "interrupted", "running", "not_run".
std::string StateName(TaskRecord::State state);
// "PASS", "INCONCLUSIVE", "FAIL"; "" for NONE.
std::string VerdictName(VerificationRecord::Verdict verdict);

// "2026-11-16T16:10:00.123Z".
std::string UtcTime(int64_t milliseconds);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_REPORT_STAGE_FIGURES_H_
