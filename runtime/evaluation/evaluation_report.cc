#include "runtime/evaluation/evaluation_report.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/json.h"
#include "base/text/printable.h"
#include "runtime/evaluation/layer_table.h"
#include "runtime/statistics/metrics.h"
#include "runtime/statistics/paired_comparison.h"

namespace requant {
namespace {

constexpr std::string_view kDashes =
    "--------------------------------------------------\n";

// Rounded to `decimals`, of which trailing zeros but one are dropped: what
// Python prints for round(number, decimals).
std::string Rounded(double number, int decimals) {
  std::string text = absl::StrFormat("%.*f", decimals, number);
  if (!std::isfinite(number)) return text;
  const size_t last = text.find_last_not_of('0');
  text.resize(text[last] == '.' ? last + 2 : last + 1);
  return text;
}

void AppendLine(std::string_view name, std::string_view value,
                std::string* text) {
  absl::StrAppendFormat(text, "%-29s:  %s\n", name, value);
}

// "1 record", "12 records".
std::string Count(int64_t number, std::string_view what) {
  return absl::StrCat(number, " ", what, number == 1 ? "" : "s");
}

// With two decimals, or as many as it takes not to show 100 % of a smaller
// share.
std::string Percent(double share) {
  int decimals = 2;
  // Rounding adds at most half of the last decimal.
  while (share < 1 && 1 - share <= 0.005 * std::pow(0.1, decimals)) ++decimals;
  return absl::StrFormat("%.*f %%", decimals, 100 * share);
}

void AppendUnusual(const Metrics& metrics, std::string_view graph,
                   std::string* text) {
  if (metrics.nan_records > 0) {
    absl::StrAppend(text, "warning: ", graph, " predicts NaN for ",
                    Count(metrics.nan_records, "record"),
                    "; they count as wrong\n");
  }
  if (metrics.infinite_records > 0) {
    absl::StrAppend(text, "warning: ", graph, " predicts infinite values for ",
                    Count(metrics.infinite_records, "record"), "\n");
  }
  if (metrics.improbable_records > 0) {
    absl::StrAppend(text, "warning: ", graph,
                    " predicts values outside 0 ... "
                    "1 for ",
                    Count(metrics.improbable_records, "record"),
                    ", which are no probabilities: there is no log loss; if "
                    "they are scores, declare them as SCORES\n");
  }
}

std::string OptionalJson(const std::optional<int64_t>& number) {
  return number.has_value() ? absl::StrCat(*number) : "null";
}

std::string OptionalJson(const std::optional<double>& number) {
  return number.has_value() ? JsonNumber(*number) : "null";
}

std::string IntervalJson(const Interval& interval) {
  return absl::StrCat("[", JsonNumber(interval.low), ", ",
                      JsonNumber(interval.high), "]");
}

std::string MetricsJson(const Metrics& metrics) {
  return JsonObject({
      {"records", absl::StrCat(metrics.records)},
      {"correct", OptionalJson(metrics.correct)},
      {"accuracy", OptionalJson(metrics.accuracy)},
      {"auc", metrics.auc ? JsonNumber(metrics.auc->value) : "null"},
      {"auc_max_error",
       metrics.auc ? JsonNumber(metrics.auc->max_error) : "null"},
      {"log_loss", OptionalJson(metrics.log_loss)},
      {"rmse", OptionalJson(metrics.rmse)},
      {"nan_records", absl::StrCat(metrics.nan_records)},
      {"infinite_records", absl::StrCat(metrics.infinite_records)},
      {"improbable_records", absl::StrCat(metrics.improbable_records)},
  });
}

std::string AccuracyJson(const AccuracyDifference& accuracy) {
  return JsonObject({
      {"difference_points", JsonNumber(accuracy.points)},
      {"interval_95", IntervalJson(accuracy.interval)},
      {"baseline_correct", absl::StrCat(accuracy.baseline_correct)},
      {"candidate_correct", absl::StrCat(accuracy.candidate_correct)},
      {"only_baseline_correct", absl::StrCat(accuracy.only_baseline_correct)},
      {"only_candidate_correct", absl::StrCat(accuracy.only_candidate_correct)},
  });
}

std::string AgreementJson(const Agreement& agreement) {
  return JsonObject({{"records", absl::StrCat(agreement.records)},
                     {"share", JsonNumber(agreement.share)},
                     {"interval_95", IntervalJson(agreement.interval)}});
}

std::string ChangeJson(const OutputChange& change) {
  return JsonObject(
      {{"mean", JsonNumber(change.mean)},
       {"interval_95",
        change.interval ? IntervalJson(*change.interval) : "null"},
       {"max", JsonNumber(change.max)},
       {"max_record", absl::StrCat(change.max_record)}});
}

std::string NonFiniteJson(const NonFiniteValues& values) {
  return JsonObject({{"nan", absl::StrCat(values.nan)},
                     {"infinite", absl::StrCat(values.infinite)},
                     {"first_record", OptionalJson(values.first_record)}});
}

std::string StringsJson(const std::vector<std::string>& texts) {
  std::vector<std::string> values;
  for (const std::string& text : texts) values.push_back(JsonString(text));
  return JsonArray(values);
}

// `json` of what the optional holds, or null.
template <typename Value, typename Function>
std::string OrNull(const std::optional<Value>& value, Function json) {
  return value.has_value() ? json(*value) : "null";
}

std::string ComparisonJson(const Comparison& comparison) {
  return JsonObject({
      {"records", absl::StrCat(comparison.records)},
      {"accuracy", OrNull(comparison.accuracy, AccuracyJson)},
      {"agreement", OrNull(comparison.agreement, AgreementJson)},
      {"output_change", OrNull(comparison.output_change, ChangeJson)},
      {"squared_change", OrNull(comparison.squared_change, ChangeJson)},
      {"class_1_change", OrNull(comparison.class_1_change, ChangeJson)},
      {"baseline_non_finite", NonFiniteJson(comparison.baseline_non_finite)},
      {"candidate_non_finite", NonFiniteJson(comparison.candidate_non_finite)},
      {"lost_values", absl::StrCat(comparison.lost_values)},
  });
}

std::string GateJson(const AccuracyGate& gate) {
  return JsonObject(
      {{"max_drop_points", JsonNumber(gate.max_drop)},
       {"verdict",
        gate.verdict ? JsonString(VerdictName(*gate.verdict)) : "null"}});
}

// "mean |change| 0.0049, largest 0.0234 (record 1234)"
std::string ChangeText(const OutputChange& change) {
  return absl::StrFormat("mean |change| %.3g, largest %.3g (record %d)",
                         change.mean, change.max, change.max_record);
}

}  // namespace

double EvaluationResult::throughput() const {
  if (timed_seconds <= 0) return 0;
  return static_cast<double>(timed_records) / timed_seconds;
}

double EvaluationResult::latency() const {
  if (throughput() <= 0) return 0;
  if (timed_records < batch_size) {
    return 1000.0 * timed_seconds /
           static_cast<double>(batches - warm_up_batches);
  }
  return 1000.0 * static_cast<double>(batch_size) / throughput();
}

std::string LogTail(const EvaluationResult& result) {
  std::string text(kDashes);
  AppendLine("Total test records", absl::StrCat(result.records), &text);
  AppendLine("Batch size is", absl::StrCat(result.batch_size), &text);
  AppendLine("Number of batches", absl::StrCat(result.batches), &text);
  AppendLine("Throughput is (records/sec)", Rounded(result.throughput(), 3),
             &text);
  AppendLine("Inference duration (seconds)", Rounded(result.timed_seconds, 4),
             &text);
  AppendLine("Latency (millisecond/batch)", Rounded(result.latency(), 6),
             &text);
  if (result.metrics.has_value() && result.metrics->accuracy.has_value()) {
    AppendLine("Classification accuracy (%)",
               Rounded(100 * *result.metrics->accuracy, 4), &text);
    AppendLine("No of correct predicitons",
               absl::StrCat(*result.metrics->correct), &text);
  }
  absl::StrAppend(&text, kDashes);
  return text;
}

AccuracyGate JudgeGate(const std::optional<Comparison>& comparison,
                       double max_drop) {
  AccuracyGate gate;
  gate.max_drop = max_drop;
  if (comparison.has_value() && comparison->accuracy.has_value()) {
    gate.verdict = JudgeAccuracyDrop(*comparison, max_drop);
  }
  return gate;
}

std::string FurtherMetrics(const EvaluationResult& result) {
  std::string text;
  if (result.guessed_kind) {
    absl::StrAppend(&text, "predictions read as ", result.prediction_kind,
                    " (a guess: the dataset declares no kind)\n");
  }
  if (result.metrics.has_value()) {
    const Metrics& metrics = *result.metrics;
    if (metrics.auc.has_value()) {
      absl::StrAppendFormat(&text, "AUC %.6f", metrics.auc->value);
      // Below the digits shown it is nobody's concern.
      if (metrics.auc->max_error > 5e-7) {
        absl::StrAppendFormat(&text, " (within %.2g)", metrics.auc->max_error);
      }
      text.push_back('\n');
    }
    if (metrics.log_loss.has_value()) {
      absl::StrAppendFormat(&text, "log loss %.6f\n", *metrics.log_loss);
      if (result.positions > 0) {
        absl::StrAppendFormat(&text, "perplexity %.4f over %d positions\n",
                              std::exp(*metrics.log_loss), metrics.records);
      }
    }
    if (metrics.rmse.has_value()) {
      absl::StrAppendFormat(&text, "RMSE %.6g\n", *metrics.rmse);
    }
    AppendUnusual(metrics, "the graph", &text);
  }
  if (result.baseline_metrics.has_value()) {
    AppendUnusual(*result.baseline_metrics, "the baseline", &text);
  }
  if (result.bad_records > 0) {
    absl::StrAppend(&text, "warning: ", Count(result.bad_records, "record"),
                    " could not be read and ",
                    result.bad_records == 1 ? "was" : "were", " left out\n");
  }
  if (result.lost_rests > 0) {
    absl::StrAppend(&text, "warning: the rest of ",
                    Count(result.lost_rests, "file"),
                    " behind such a record was not read\n");
  }
  return text;
}

std::string ComparisonText(const EvaluationResult& result) {
  if (!result.comparison.has_value()) return "";
  const Comparison& comparison = *result.comparison;
  std::string text = absl::StrCat(
      Printable(result.graph), " against ", Printable(result.baseline), ", ",
      Count(comparison.records, result.positions > 0 ? "position" : "record"),
      ":\n");
  if (comparison.accuracy.has_value()) {
    const AccuracyDifference& accuracy = *comparison.accuracy;
    absl::StrAppendFormat(
        &text,
        "  accuracy %+.3f points (95 %%: %+.3f to %+.3f): gains %d, loses "
        "%d\n",
        accuracy.points, accuracy.interval.low, accuracy.interval.high,
        accuracy.only_candidate_correct, accuracy.only_baseline_correct);
  }
  if (comparison.agreement.has_value()) {
    absl::StrAppend(&text, "  agreement ", Percent(comparison.agreement->share),
                    " (95 %: ", Percent(comparison.agreement->interval.low),
                    " to ", Percent(comparison.agreement->interval.high),
                    ")\n");
  }
  if (comparison.class_1_change.has_value()) {
    absl::StrAppend(&text, "  probability of class 1: ",
                    ChangeText(*comparison.class_1_change), "\n");
  } else if (comparison.output_change.has_value()) {
    absl::StrAppend(&text, "  output: ", ChangeText(*comparison.output_change),
                    "\n");
    if (comparison.squared_change.has_value()) {
      absl::StrAppendFormat(&text, "  mean squared error %.6g\n",
                            comparison.squared_change->mean);
    }
  }
  if (result.baseline_throughput.has_value()) {
    absl::StrAppendFormat(&text,
                          "  throughput %.0f records/s, the baseline's %.0f\n",
                          result.throughput(), *result.baseline_throughput);
  }
  if (comparison.lost_values > 0) {
    absl::StrAppend(
        &text, "  warning: ", Count(comparison.lost_values, "value"),
        " finite in the baseline but NaN or infinite now; see "
        "record ",
        comparison.candidate_non_finite.first_record.value_or(0), "\n");
  }
  return text;
}

std::string EvaluationJson(const EvaluationResult& result) {
  const bool compared = result.comparison.has_value();
  return JsonObject({
             {"graph", JsonString(result.graph)},
             {"dataset", JsonString(result.dataset)},
             {"records", absl::StrCat(result.records)},
             {"positions_per_record",
              result.positions > 0 ? absl::StrCat(result.positions) : "null"},
             {"bad_records", absl::StrCat(result.bad_records)},
             {"lost_rests", absl::StrCat(result.lost_rests)},
             {"batch_size", absl::StrCat(result.batch_size)},
             {"batches", absl::StrCat(result.batches)},
             {"warm_up_batches", absl::StrCat(result.warm_up_batches)},
             {"timed_records", absl::StrCat(result.timed_records)},
             {"timed_seconds", JsonNumber(result.timed_seconds)},
             {"records_per_second", JsonNumber(result.throughput())},
             {"milliseconds_per_batch", JsonNumber(result.latency())},
             {"prediction_kind", result.prediction_kind.empty()
                                     ? "null"
                                     : JsonString(result.prediction_kind)},
             {"metrics", OrNull(result.metrics, MetricsJson)},
             {"baseline", compared ? JsonString(result.baseline) : "null"},
             {"baseline_metrics", OrNull(result.baseline_metrics, MetricsJson)},
             {"baseline_records_per_second",
              OptionalJson(result.baseline_throughput)},
             {"comparison", OrNull(result.comparison, ComparisonJson)},
             {"accuracy_gate", OrNull(result.gate, GateJson)},
             {"layers", LayersJson(result.layers)},
             {"unmatched_layers", StringsJson(result.unmatched_layers)},
         }) +
         "\n";
}

}  // namespace requant
