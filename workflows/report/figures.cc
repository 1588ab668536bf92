#include "workflows/report/figures.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/terminal/progress.h"
#include "runtime/benchmark/benchmark_report.h"
#include "runtime/evaluation.pb.h"
#include "runtime/statistics/paired_comparison.h"
#include "runtime/statistics/timing.h"
#include "workflows/run/run_record.pb.h"

namespace requant {
namespace {

StageFigures FiguresOfStage(const StageRecord& stage) {
  StageFigures figures;
  figures.state = stage.left_out_because().empty()
                      ? StateName(StateOfTasks(stage))
                      : "left_out";
  for (const TaskRecord* task : TasksOf(stage)) {
    figures.seconds += task->seconds();
    figures.work_seconds += task->work_seconds();
  }
  if (stage.has_graph()) {
    figures.nodes = stage.graph().nodes();
    figures.bytes = stage.graph().bytes();
  }
  figures.result = &stage.verification().result();
  figures.verdict = stage.verification().verdict();
  return figures;
}

int FindStage(const RunRecord& record, std::string_view name) {
  for (int i = 0; i < record.stage_size(); ++i) {
    if (record.stage(i).name() == name) return i;
  }
  return -1;
}

// Returns the ratio of two graphs' speeds in one benchmark, if one has both.
// Its intervals hold if the baseline was the benchmark's first graph.
std::optional<PairedRatio> BenchmarkedSpeed(const RunRecord& record,
                                            std::string_view baseline,
                                            std::string_view stage) {
  std::optional<PairedRatio> speed;
  for (const StageRecord& candidate : record.stage()) {
    const auto& names = candidate.benchmark().graph();
    const std::vector<GraphFigures> figures =
        CheckedFiguresOf(candidate.benchmark());
    const int base =
        std::find(names.begin(), names.end(), baseline) - names.begin();
    const int graph =
        std::find(names.begin(), names.end(), stage) - names.begin();
    if (base >= figures.size() || graph >= figures.size()) continue;
    if (base == 0) {
      speed = figures[graph].speed;
    } else if (figures[base].speed.median > 0) {
      speed =
          PairedRatio{figures[graph].speed.median / figures[base].speed.median,
                      std::nullopt};
    }
  }
  return speed;
}

std::optional<int64_t> BaselineFileBytes(const RunRecord& record,
                                         std::string_view path) {
  for (const BaselineRecord& baseline : record.baseline()) {
    if (baseline.path() != path) continue;
    for (const FileRecord& file : baseline.work().input()) {
      if (file.path() == path && file.bytes() > 0) return file.bytes();
    }
  }
  return std::nullopt;
}

void TakeScores(const Scores& baseline, RunSummary* summary) {
  if (baseline.has_accuracy()) summary->baseline_accuracy = baseline.accuracy();
  if (baseline.has_rmse()) summary->baseline_rmse = baseline.rmse();
}

void CompareWithBaseline(const RunRecord& record,
                         const std::vector<StageFigures>& figures,
                         RunSummary* summary) {
  const StageRecord& stage = record.stage(summary->stage);
  const StageFigures& own = figures[summary->stage];
  const EvaluateResult& result = stage.verification().result();
  std::optional<double> baseline_speed =
      RecordsPerSecond(result.baseline_timing());
  if (summary->baseline_stage >= 0) {
    const StageFigures& base = figures[summary->baseline_stage];
    summary->baseline_bytes = base.bytes;
    TakeScores(base.result->scores(), summary);
    if (!baseline_speed) {
      baseline_speed = RecordsPerSecond(base.result->timing());
    }
  } else {
    summary->baseline_bytes = BaselineFileBytes(record, summary->baseline);
  }
  TakeScores(result.baseline_scores(), summary);
  summary->speed = BenchmarkedSpeed(record, summary->baseline, stage.name());
  summary->speed_is_benchmarked = summary->speed.has_value();
  const std::optional<double> speed = RecordsPerSecond(result.timing());
  if (!summary->speed && baseline_speed && *baseline_speed > 0 && speed) {
    summary->speed = PairedRatio{*speed / *baseline_speed, std::nullopt};
  }
  if (summary->baseline_bytes && own.bytes && *own.bytes > 0) {
    summary->size_ratio = static_cast<double>(*summary->baseline_bytes) /
                          static_cast<double>(*own.bytes);
  }
}

using StageRef = const StageFigures&;

std::optional<Estimate> Accuracy(StageRef stage) {
  const Scores& scores = stage.result->scores();
  if (!scores.has_accuracy()) return std::nullopt;
  Estimate accuracy{scores.accuracy()};
  if (scores.has_correct() && scores.records() > 0) {
    accuracy.interval = ShareInterval(scores.correct(), scores.records());
  }
  return accuracy;
}

std::optional<Estimate> Rmse(StageRef stage) {
  const Scores& scores = stage.result->scores();
  if (!scores.has_rmse()) return std::nullopt;
  return Estimate{scores.rmse()};
}

std::optional<Estimate> RateWhileVerifying(StageRef stage) {
  const std::optional<double> rate = RecordsPerSecond(stage.result->timing());
  if (!rate.has_value()) return std::nullopt;
  return Estimate{*rate};
}

std::optional<Estimate> RateInBenchmark(StageRef stage) {
  if (!stage.benchmark.has_value()) return std::nullopt;
  return Estimate{stage.benchmark->records_per_second};
}

std::optional<Estimate> SpeedInBenchmark(StageRef stage) {
  if (!stage.benchmark.has_value()) return std::nullopt;
  return Estimate{stage.benchmark->speed.median,
                  stage.benchmark->speed.interval};
}

std::string RateText(double rate) { return rate > 0 ? HumanRate(rate) : ""; }

// Squares are often too small for a fixed number of decimals.
std::string SquaredText(double square) {
  return absl::StrFormat("%.3g", square);
}

std::string RatioText(double ratio) { return absl::StrFormat("%.2f", ratio); }

}  // namespace

std::vector<GraphFigures> CheckedFiguresOf(const BenchmarkRecord& benchmark) {
  const BenchmarkResult& result = benchmark.result();
  if (result.entry_size() == 0 ||
      result.entry_size() != benchmark.graph_size()) {
    return {};
  }
  const int rounds = result.entry(0).round_size();
  for (const EntryMeasurement& entry : result.entry()) {
    if (rounds == 0 || entry.round_size() != rounds) return {};
  }
  return FiguresOf(result);
}

std::vector<StageFigures> FiguresOfStages(const RunRecord& record) {
  std::vector<StageFigures> all;
  for (const StageRecord& stage : record.stage()) {
    all.push_back(FiguresOfStage(stage));
  }
  for (const StageRecord& stage : record.stage()) {
    const std::vector<GraphFigures> figures =
        CheckedFiguresOf(stage.benchmark());
    for (size_t i = 0; i < figures.size(); ++i) {
      const int graph = FindStage(record, stage.benchmark().graph(i));
      if (graph >= 0) all[graph].benchmark = figures[i];
    }
  }
  return all;
}

RunSummary SummaryOf(const RunRecord& record,
                     const std::vector<StageFigures>& figures) {
  RunSummary summary;
  for (int i = 0; i < record.stage_size(); ++i) {
    const VerificationRecord& verification = record.stage(i).verification();
    if (!verification.result().has_comparison()) continue;
    if (summary.stage >= 0 && figures[summary.stage].benchmark.has_value() &&
        !figures[i].benchmark.has_value()) {
      continue;
    }
    summary.stage = i;
    summary.baseline = verification.baseline();
  }
  if (summary.stage < 0) return summary;
  summary.baseline_stage = FindStage(record, summary.baseline);
  CompareWithBaseline(record, figures, &summary);
  return summary;
}

bool IsSlower(const PairedRatio& speed) {
  return (speed.interval ? speed.interval->high() : speed.median) < 1;
}

std::vector<const TaskRecord*> TasksOf(const StageRecord& stage) {
  std::vector<const TaskRecord*> tasks;
  if (stage.has_work()) tasks.push_back(&stage.work());
  if (stage.has_verification()) tasks.push_back(&stage.verification().work());
  if (stage.benchmark().has_work()) tasks.push_back(&stage.benchmark().work());
  return tasks;
}

TaskRecord::State StateOfTasks(const StageRecord& stage) {
  const std::vector<const TaskRecord*> tasks = TasksOf(stage);
  for (const TaskRecord::State state :
       {TaskRecord::FAILED, TaskRecord::INTERRUPTED, TaskRecord::RUNNING,
        TaskRecord::NOT_RUN, TaskRecord::DONE, TaskRecord::CACHED}) {
    for (const TaskRecord* task : tasks) {
      if (task->state() == state) return state;
    }
  }
  return tasks.empty() ? TaskRecord::NOT_RUN : TaskRecord::GIVEN;
}

std::string OutcomeName(RunRecord::Outcome outcome) {
  return absl::AsciiStrToLower(RunRecord::Outcome_Name(outcome));
}

std::string StateName(TaskRecord::State state) {
  return absl::AsciiStrToLower(TaskRecord::State_Name(state));
}

std::string VerdictName(VerificationRecord::Verdict verdict) {
  if (verdict == VerificationRecord::NONE) return "";
  return VerificationRecord::Verdict_Name(verdict);
}

std::string UtcTime(int64_t milliseconds) {
  return absl::FormatTime("%Y-%m-%d%ET%H:%M:%E3SZ",
                          absl::FromUnixMillis(milliseconds),
                          absl::UTCTimeZone());
}

std::string AccuracyText(double share) {
  return absl::StrFormat("%.3f %%", 100 * share);
}

std::string PointsText(double points) {
  const std::string text = absl::StrFormat("%+.3f", points);
  return text == "-0.000" ? "+0.000" : text;
}

std::string AgreementText(double share) {
  return absl::StrFormat("%.4f", share);
}

std::string ChangeText(double change) {
  return absl::StrFormat("%.5f", change);
}

const std::vector<Figure>& Figures() {
  static const auto* const figures = new std::vector<Figure>{
      {"accuracy",
       "accuracy_interval_95",
       Accuracy,
       AccuracyText,
       {"quality/accuracy", "Of 1, by stage.", "accuracy, %", 100, 4},
       {"accuracy", 8},
       {"accuracy", 9, 1},
       "accuracy"},
      {"difference_points",
       "difference_interval_95",
       [](StageRef stage) { return AccuracyGain(stage.result->comparison()); },
       PointsText,
       {"quality/accuracy_difference",
        "Against the stage's baseline, in percentage points.",
        "difference, points", 1, 4},
       {"diff (points)", 5, "95 % interval", 2},
       {"difference", 10, 4}},
      {"rmse",
       nullptr,
       Rmse,
       SquaredText,
       {"quality/rmse", "Of the prediction, against the labels."},
       {"RMSE", 6}},
      {"agreement",
       "agreement_interval_95",
       [](StageRef stage) {
         return AgreementShare(stage.result->comparison());
       },
       AgreementText,
       {"quality/agreement", "Share of records with the baseline's prediction.",
        "agreement, %", 100, 3},
       {"agreement", 3},
       {"agreement", 9, 3},
       "agreement"},
      {"mean_output_change",
       "mean_output_change_interval_95",
       [](StageRef stage) {
         return MeanOutputChange(stage.result->comparison());
       },
       ChangeText,
       {"quality/mean_output_change",
        "Mean change of the output against the baseline.", "mean output change",
        1, 6},
       {"mean change", 7},
       {"change", 7, 2},
       "change"},
      {"max_output_change",
       nullptr,
       [](StageRef stage) {
         return MaxOutputChange(stage.result->comparison());
       },
       ChangeText,
       {"quality/max_output_change",
        "Largest change of the output against the baseline."}},
      {"mse",
       "mse_interval_95",
       [](StageRef stage) { return Mse(stage.result->comparison()); },
       SquaredText,
       {},
       {"MSE", 0}},
      {"records_per_second",
       nullptr,
       RateWhileVerifying,
       RateText,
       {"speed/records_per_second_while_verifying",
        "Of the session, with whatever else ran then.", "records/s", 1, 0},
       {"records/s", 1}},
      {"benchmark_records_per_second",
       nullptr,
       RateInBenchmark,
       RateText,
       {"speed/benchmark_records_per_second",
        "Median over the benchmark's rounds."}},
      {"benchmark_speed",
       nullptr,
       SpeedInBenchmark,
       RatioText,
       {"speed/benchmark_ratio", "Against the benchmark's first graph."},
       {},
       {},
       nullptr,
       /*is_ratio=*/true},
  };
  return *figures;
}

std::optional<Estimate> FigureOf(const StageFigures& stage,
                                 std::string_view key) {
  for (const Figure& figure : Figures()) {
    if (figure.key == key) return figure.of(stage);
  }
  return std::nullopt;
}

std::string FigureText(const StageFigures& stage, const Figure& figure) {
  const std::optional<Estimate> found = figure.of(stage);
  return found.has_value() ? figure.text(found->value) : "";
}

}  // namespace requant
