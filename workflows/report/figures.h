#ifndef REQUANT_WORKFLOWS_REPORT_FIGURES_H_
#define REQUANT_WORKFLOWS_REPORT_FIGURES_H_

// The figures of a run that people compare, picked out of its record: a set for
// each stage, and one for the run as a whole. Whatever shows figures
// (results.json, results.csv, TensorBoard's file, the tables and lines of the
// terminal) takes them from the list Figures(): a new one is a row.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/benchmark/benchmark_report.h"
#include "runtime/evaluation.pb.h"
#include "runtime/statistics/paired_comparison.h"
#include "workflows/run/run_record.pb.h"

namespace requant {

// What Figures() are taken from.
struct StageFigures {
  // The state of its work, verification and benchmark together: "done",
  // "cached" (all of it is), "given", "left_out", "failed", "interrupted",
  // "running" or "not_run".
  std::string state;
  // The time in this run, and when the work was done.
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

// Returns figures for each stage, in the record's order.
std::vector<StageFigures> FiguresOfStages(const RunRecord& record);

// What the run comes down to: the last stage that was compared with a baseline,
// against that baseline. Indices into the record's stages; -1: there is none.
struct RunSummary {
  int stage = -1;
  // -1 also when the baseline is a file.
  int baseline_stage = -1;
  // The name of the stage or the path; empty without a baseline.
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

// Returns a benchmark's figures by graph; none for a result that has no rounds
// to compare.
std::vector<GraphFigures> CheckedFiguresOf(const BenchmarkRecord& benchmark);

// Returns what a stage consists of: its work, verification and benchmark, as
// far as it has them.
std::vector<const TaskRecord*> TasksOf(const StageRecord& stage);

// Returns the state of its tasks that says most about a stage: what went wrong
// before what is to do, that before what is done, and new work before old.
TaskRecord::State StateOfTasks(const StageRecord& stage);

// Returns its name in lower case, such as "gate_failed".
std::string OutcomeName(RunRecord::Outcome outcome);
// Returns its name in lower case, such as "not_run".
std::string StateName(TaskRecord::State state);
// Returns "PASS", "INCONCLUSIVE", "FAIL"; "" for NONE.
std::string VerdictName(VerificationRecord::Verdict verdict);

// Returns a time such as "2026-11-16T16:10:00.123Z".
std::string UtcTime(int64_t milliseconds);

// Returns "78.455 %", from a share of 1.
std::string AccuracyText(double share);
// Returns "-0.054"; never "-0.000".
std::string PointsText(double points);
// Returns a text such as "0.9987".
std::string AgreementText(double share);
// Returns a text such as "0.00213".
std::string ChangeText(double change);

// How figures are shown. Where a title is null, they are not.

// A curve of TensorBoard, and a column of its table of stages, which has the
// figure times `factor`.
struct FigureCurve {
  const char* tag = nullptr;
  const char* help = nullptr;
  const char* title = nullptr;
  double factor = 1;
  int decimals = 0;
};

// A column of the table at a run's end, and one for the interval. The least
// important is the first to go on a narrow terminal.
struct FigureColumn {
  const char* title = nullptr;
  int importance = 0;
  const char* interval_title = nullptr;
  int interval_importance = 0;
};

// A column of the display while a run lasts. There, 0 is the last to go.
struct FigureLineColumn {
  const char* title = nullptr;
  int width = 0;
  int importance = 0;
};

struct Figure {
  // The name in results.json and results.csv.
  const char* key;
  // The interval's name in results.json; null: it has none.
  const char* interval_key;
  // Returns the figure; unset: it is not known of the stage.
  std::optional<Estimate> (*of)(const StageFigures&);
  // Returns it as people read it.
  std::string (*text)(double);
  FigureCurve curve = {};
  FigureColumn column = {};
  FigureLineColumn line = {};
  // The word in front of it where there are no columns; null: it is not shown
  // there.
  const char* word = nullptr;
  // Whether results.json has it as an object of the ratio and its interval.
  bool is_ratio = false;
};

// Returns them in the order in which they are shown.
const std::vector<Figure>& Figures();

// Returns the figure with that key.
std::optional<Estimate> FigureOf(const StageFigures& stage,
                                 std::string_view key);
// Returns a figure as people read it; "" if it is not known.
std::string FigureText(const StageFigures& stage, const Figure& figure);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_REPORT_FIGURES_H_
