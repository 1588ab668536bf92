#include "workflows/report/figures.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/terminal/progress.h"
#include "runtime/evaluation.pb.h"
#include "runtime/statistics/paired_comparison.h"
#include "runtime/statistics/timing.h"
#include "workflows/report/stage_figures.h"

namespace requant {
namespace {

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
        "Mean change of the probability against the baseline.",
        "mean output change", 1, 6},
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
        "Largest change of the probability against the baseline."}},
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
