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

// What Figures() reads about a stage.
struct StageFigures {
  // The combined state of the stage's work, verification and benchmark: "done",
  // "cached" (if all of it is), "given", "left_out", "failed", "interrupted",
  // "running" or "not_run".
  std::string state;
  // The time spent in this run, and the time the work took when it was done.
  double seconds = 0;
  double work_seconds = 0;

  std::optional<int64_t> nodes;
  std::optional<int64_t> bytes;

  // The verification's result, in the record.
  const EvaluateResult* result = &EvaluateResult::default_instance();
  // Compares the stage's graph with the first graph of the last benchmark stage
  // that has both.
  std::optional<GraphFigures> benchmark;
  VerificationRecord::Verdict verdict = VerificationRecord::NONE;
};

// Returns figures for each stage, in the record's order.
std::vector<StageFigures> FiguresOfStages(const RunRecord& record);

// A run's result: the last stage that was compared with a baseline, one that
// was also benchmarked if there is any, and that baseline. Stages are indices
// into the record's, or -1 for none.
struct RunSummary {
  int stage = -1;
  // Also -1 if the baseline is a file.
  int baseline_stage = -1;
  // The baseline's stage name or path; empty if there is no baseline.
  std::string baseline;
  std::optional<double> baseline_accuracy;
  std::optional<double> baseline_rmse;
  // Comes from a benchmark of both graphs, with an interval, or else from the
  // verifications, without one. A value above 1 means faster.
  std::optional<PairedRatio> speed;
  bool speed_is_benchmarked = false;
  // The size of the baseline's file divided by that of the stage's.
  std::optional<double> size_ratio;
  std::optional<int64_t> baseline_bytes;
};

RunSummary SummaryOf(const RunRecord& record,
                     const std::vector<StageFigures>& figures);

// Returns whether a model with this speed, against another's, is certainly
// slower; without an interval, whether it was slower.
bool IsSlower(const PairedRatio& speed);

// Returns a benchmark's figures for each graph, or none if the result has no
// rounds to compare.
std::vector<GraphFigures> CheckedFiguresOf(const BenchmarkRecord& benchmark);

// Returns the stage's work, verification and benchmark, as far as it has them.
std::vector<const TaskRecord*> TasksOf(const StageRecord& stage);

// Returns the state among the stage's tasks that says most about it: a failure
// before pending work, that before finished work, and new work before old.
TaskRecord::State StateOfTasks(const StageRecord& stage);

// Returns the outcome's name in lower case, such as "gate_failed".
std::string OutcomeName(RunRecord::Outcome outcome);
// Returns the state's name in lower case, such as "not_run".
std::string StateName(TaskRecord::State state);
// Returns "PASS", "INCONCLUSIVE" or "FAIL", or "" for NONE.
std::string VerdictName(VerificationRecord::Verdict verdict);

// Returns a time such as "2026-11-16T16:10:00.123Z".
std::string UtcTime(int64_t milliseconds);

// Returns a share of 1 as a text such as "78.455 %".
std::string AccuracyText(double share);
// Returns a text such as "-0.054", but never "-0.000".
std::string PointsText(double points);
// Returns a text such as "0.9987".
std::string AgreementText(double share);
// Returns a text such as "0.00213".
std::string ChangeText(double change);

// These structs say how a figure is shown. A null title means not at all.

// A curve in TensorBoard, and a column of its table of stages, which shows the
// figure times `factor`.
struct FigureCurve {
  const char* tag = nullptr;
  const char* help = nullptr;
  const char* title = nullptr;
  double factor = 1;
  int decimals = 0;
};

// A column of the table at a run's end, and one for the interval. A narrow
// terminal drops the least important columns first.
struct FigureColumn {
  const char* title = nullptr;
  int importance = 0;
  const char* interval_title = nullptr;
  int interval_importance = 0;
};

// A column of the display during a run. Here, importance 0 is dropped last.
struct FigureLineColumn {
  const char* title = nullptr;
  int width = 0;
  int importance = 0;
};

struct Figure {
  // The name in results.json and results.csv.
  const char* key;
  // The interval's name in results.json, or null if it has none.
  const char* interval_key;
  // Returns the figure, or nothing if it is not known for the stage.
  std::optional<Estimate> (*of)(const StageFigures&);
  // Returns the figure as people read it.
  std::string (*text)(double);
  FigureCurve curve = {};
  FigureColumn column = {};
  FigureLineColumn line = {};
  // The word before the figure where there are no columns, or null if it is not
  // shown there.
  const char* word = nullptr;
  // Whether results.json has it as an object of the ratio and its interval.
  bool is_ratio = false;
};

// Returns all figures in the order in which they are shown.
const std::vector<Figure>& Figures();

// Returns the figure with that key.
std::optional<Estimate> FigureOf(const StageFigures& stage,
                                 std::string_view key);
// Returns a figure as people read it, or "" if it is not known.
std::string FigureText(const StageFigures& stage, const Figure& figure);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_REPORT_FIGURES_H_
