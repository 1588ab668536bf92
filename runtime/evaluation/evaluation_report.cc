#include "runtime/evaluation/evaluation_report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/json.h"
#include "base/message/message_json.h"
#include "base/message_text.h"
#include "base/text/printable.h"
#include "google/protobuf/message.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/statistics/metrics.h"
#include "runtime/statistics/timing.h"

namespace requant {
namespace {

using google::protobuf::Message;

constexpr std::string_view kDashes =
    "--------------------------------------------------\n";

// Returns the number rounded to `decimals`, with at most one trailing zero, as
// Python prints round(number, decimals).
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

// Uses two decimals, or more if needed not to show 100 % for a smaller share.
std::string Percent(double share) {
  int decimals = 2;
  // Rounding adds at most half of the last decimal.
  while (share < 1 && 1 - share <= 0.005 * std::pow(0.1, decimals)) ++decimals;
  return absl::StrFormat("%.*f %%", decimals, 100 * share);
}

void AppendUnusual(const Scores& scores, std::string_view graph,
                   std::string* text) {
  if (scores.nan_records() > 0) {
    absl::StrAppend(text, "warning: ", graph, " predicts NaN for ",
                    CountText(scores.nan_records(), "record"),
                    "; they count as wrong\n");
  }
  if (scores.infinite_records() > 0) {
    absl::StrAppend(text, "warning: ", graph, " predicts infinite values for ",
                    CountText(scores.infinite_records(), "record"), "\n");
  }
  if (scores.improbable_records() > 0) {
    absl::StrAppend(text, "warning: ", graph,
                    " predicts values outside 0 ... "
                    "1 for ",
                    CountText(scores.improbable_records(), "record"),
                    ", which are no probabilities: there is no log loss; if "
                    "they are scores, declare them as SCORES\n");
  }
}

std::string GateJson(const Comparison& comparison, double max_drop) {
  if (max_drop < 0) return "null";
  const std::optional<Verdict> verdict = JudgeGate(comparison, max_drop);
  return JsonObject(
      {{"max_drop_points", JsonNumber(max_drop)},
       {"verdict", verdict ? JsonString(VerdictName(*verdict)) : "null"}});
}

// Returns "mean |change| 0.0049, largest 0.0234 (record 1234, counted
// from 0)".
std::string ChangeText(const OutputChange& change) {
  return absl::StrFormat(
      "mean |change| %.3g, largest %.3g (record %d, counted from 0)",
      change.mean(), change.max(), change.max_record());
}

std::string InSteps(double value, double step) {
  // The step is 0 if a layer's values never change.
  return step > 0 ? absl::StrFormat("%.3f", value / step) : "-";
}

std::string TableRow(size_t name_width, const std::string& name,
                     const std::string& kind, const std::string& step,
                     const std::string& error, const std::string& shift,
                     const std::string& noise, const std::string& clipped) {
  return absl::StrFormat("  %-*s  %-5s  %9s  %11s  %11s  %6s  %9s\n",
                         static_cast<int>(name_width), name, kind, step, error,
                         shift, noise, clipped);
}

std::string LayerRow(size_t name_width, const ComparedLayer& layer) {
  return TableRow(name_width, Printable(layer.name()),
                  layer.quantized() ? "8 bit" : "float",
                  absl::StrFormat("%.3g", layer.step()),
                  InSteps(layer.rms_error(), layer.step()),
                  InSteps(layer.worst_channel_shift(), layer.step()),
                  absl::StrFormat("%.1f", layer.signal_to_noise()),
                  layer.quantized()
                      ? absl::StrFormat("%.3f %%", 100 * layer.clipped_share())
                      : "-");
}

// Returns milliseconds per full batch at the timed part's throughput, as the
// published recipe computes it, or, if no full batch was timed, the mean of
// those that were; 0 if nothing was timed.
double Latency(const EvaluateResult& result) {
  const Timing& timing = result.timing();
  const double throughput = RecordsPerSecond(timing).value_or(0);
  if (throughput <= 0) return 0;
  if (timing.timed_records() < result.batch_size()) {
    return 1000.0 * timing.timed_seconds() /
           static_cast<double>(timing.batches() - timing.warm_up_batches());
  }
  return 1000.0 * static_cast<double>(result.batch_size()) / throughput;
}

std::string GuessText(const EvaluateResult& result) {
  if (!result.guessed_kind()) return "";
  return absl::StrCat("predictions read as ",
                      PredictionSpec::Kind_Name(result.prediction_kind()),
                      " (a guess: the dataset declares no kind)\n");
}

}  // namespace

std::string LogTail(const EvaluateResult& result) {
  std::string text(kDashes);
  const Timing& timing = result.timing();
  AppendLine("Total test records", absl::StrCat(timing.records()), &text);
  AppendLine("Batch size is", absl::StrCat(result.batch_size()), &text);
  AppendLine("Number of batches", absl::StrCat(timing.batches()), &text);
  AppendLine("Throughput is (records/sec)",
             Rounded(RecordsPerSecond(timing).value_or(0), 3), &text);
  AppendLine("Inference duration (seconds)", Rounded(timing.timed_seconds(), 4),
             &text);
  AppendLine("Latency (millisecond/batch)", Rounded(Latency(result), 6), &text);
  if (result.scores().has_accuracy()) {
    AppendLine("Classification accuracy (%)",
               Rounded(100 * result.scores().accuracy(), 4), &text);
    AppendLine("No of correct predicitons",
               absl::StrCat(result.scores().correct()), &text);
  }
  absl::StrAppend(&text, kDashes);
  return text;
}

std::optional<Verdict> JudgeGate(const Comparison& comparison,
                                 double max_drop) {
  const std::optional<Estimate> gain = AccuracyGain(comparison);
  if (!gain.has_value()) return std::nullopt;
  return JudgeFigure(*gain, -max_drop, /*at_least=*/true);
}

std::string FurtherMetrics(const EvaluateResult& result) {
  std::string text;
  if (!result.has_comparison()) text = GuessText(result);
  const Scores& scores = result.scores();
  if (scores.has_auc()) {
    absl::StrAppendFormat(&text, "AUC %.6f", scores.auc());
    // Smaller errors do not affect the digits shown.
    if (scores.auc_error() > 5e-7) {
      absl::StrAppendFormat(&text, " (within %.2g)", scores.auc_error());
    }
    text.push_back('\n');
  }
  if (scores.has_log_loss()) {
    absl::StrAppendFormat(&text, "log loss %.6f\n", scores.log_loss());
    if (result.positions() > 0) {
      absl::StrAppendFormat(&text, "perplexity %.4f over %d positions\n",
                            std::exp(scores.log_loss()), scores.records());
    }
  }
  if (scores.has_rmse()) {
    absl::StrAppendFormat(&text, "RMSE %.6g\n", scores.rmse());
  }
  AppendUnusual(scores, "the graph", &text);
  AppendUnusual(result.baseline_scores(), "the baseline", &text);
  if (result.bad_records() > 0) {
    absl::StrAppend(&text,
                    "warning: ", CountText(result.bad_records(), "record"),
                    " could not be read and ",
                    result.bad_records() == 1 ? "was" : "were", " left out\n");
  }
  if (result.lost_rests() > 0) {
    absl::StrAppend(&text, "warning: the rest of ",
                    CountText(result.lost_rests(), "file"),
                    " behind such a record was not read\n");
  }
  return text;
}

std::string ComparisonText(const EvaluateResult& result,
                           const EvaluationNames& names) {
  if (!result.has_comparison()) return "";
  const Comparison& comparison = result.comparison();
  std::string text = absl::StrCat(
      Printable(names.graph), " against ", Printable(names.baseline), ", ",
      CountText(comparison.records(),
                result.positions() > 0 ? "position" : "record"),
      ":\n");
  if (result.guessed_kind()) absl::StrAppend(&text, "  ", GuessText(result));
  if (comparison.has_accuracy()) {
    const AccuracyDifference& accuracy = comparison.accuracy();
    absl::StrAppendFormat(
        &text,
        "  accuracy %+.3f points (95 %%: %+.3f to %+.3f): gains %d, loses "
        "%d\n",
        accuracy.points(), accuracy.interval().low(),
        accuracy.interval().high(), accuracy.only_candidate_correct(),
        accuracy.only_baseline_correct());
  }
  if (comparison.has_agreement()) {
    const Agreement& agreement = comparison.agreement();
    absl::StrAppend(&text, "  agreement ", Percent(agreement.share()),
                    " (95 %: ", Percent(agreement.interval().low()), " to ",
                    Percent(agreement.interval().high()), ")\n");
  }
  if (comparison.has_class_1_change()) {
    absl::StrAppend(&text, "  probability of class 1: ",
                    ChangeText(comparison.class_1_change()), "\n");
  } else if (comparison.has_output_change()) {
    absl::StrAppend(&text, "  output: ", ChangeText(comparison.output_change()),
                    "\n");
    if (comparison.has_squared_change()) {
      absl::StrAppendFormat(&text, "  mean squared error %.6g\n",
                            comparison.squared_change().mean());
    }
  }
  if (const auto baseline = RecordsPerSecond(result.baseline_timing())) {
    absl::StrAppendFormat(
        &text, "  throughput %.0f records/s, the baseline's %.0f\n",
        RecordsPerSecond(result.timing()).value_or(0), *baseline);
  }
  if (comparison.lost_values() > 0) {
    absl::StrAppend(
        &text, "  warning: ", CountText(comparison.lost_values(), "value"),
        " finite in the baseline but NaN or infinite now; see "
        "record ",
        comparison.candidate_non_finite().first_record(), ", counted from 0\n");
  }
  return text;
}

std::string EvaluationJson(const EvaluateResult& result,
                           const EvaluationNames& names, double max_drop) {
  // Keyed by the names of the message's fields.
  std::map<std::string, std::string> known;
  for (const Message* part :
       std::vector<const Message*>{&result, &result.timing()}) {
    for (auto& [name, value] : MessageMembers(*part)) known[name] = value;
  }
  const auto scores = [](bool has, const Scores& scores) {
    return has ? JsonObject(ScoresMembers(scores)) : "null";
  };
  return JsonObject({
             {"graph", JsonString(names.graph)},
             {"dataset", JsonString(names.dataset)},
             {"records", known["records"]},
             {"positions_per_record",
              result.positions() > 0 ? known["positions"] : "null"},
             {"bad_records", known["bad_records"]},
             {"lost_rests", known["lost_rests"]},
             {"batch_size", known["batch_size"]},
             {"batches", known["batches"]},
             {"warm_up_batches", known["warm_up_batches"]},
             {"timed_records", known["timed_records"]},
             {"timed_seconds", known["timed_seconds"]},
             {"records_per_second",
              JsonNumber(RecordsPerSecond(result.timing()).value_or(0))},
             {"milliseconds_per_batch", JsonNumber(Latency(result))},
             {"prediction_kind",
              result.prediction_kind() == PredictionSpec::KIND_AUTO
                  ? "null"
                  : JsonString(
                        PredictionSpec::Kind_Name(result.prediction_kind()))},
             {"metrics", scores(result.has_scores(), result.scores())},
             {"baseline",
              result.has_comparison() ? JsonString(names.baseline) : "null"},
             {"baseline_metrics",
              scores(result.has_baseline_scores(), result.baseline_scores())},
             {"baseline_records_per_second",
              JsonNumber(
                  RecordsPerSecond(result.baseline_timing()).value_or(NAN))},
             {"comparison", known["comparison"]},
             {"accuracy_gate", GateJson(result.comparison(), max_drop)},
             {"layers", known["layers"]},
             {"unmatched_layers", known["unmatched_layers"]},
         }) +
         "\n";
}

std::string LayersText(const EvaluateResult& result) {
  std::string text;
  if (result.layer_size() > 0) {
    std::vector<ComparedLayer> sorted(result.layer().begin(),
                                      result.layer().end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const ComparedLayer& a, const ComparedLayer& b) {
                       return a.signal_to_noise() < b.signal_to_noise();
                     });
    size_t name_width = 0;
    for (const ComparedLayer& layer : sorted) {
      name_width = std::max(name_width, Printable(layer.name()).size());
    }
    absl::StrAppend(&text, "layers on ", sorted[0].records(),
                    " records, the noisiest first:\n",
                    TableRow(name_width, "layer", "kind", "step", "error/step",
                             "shift/step", "SNR dB", "clipped"));
    for (const ComparedLayer& layer : sorted) {
      absl::StrAppend(&text, LayerRow(name_width, layer));
    }
  }
  for (const std::string& name : result.unmatched_layer()) {
    absl::StrAppend(&text, "  ", Printable(name),
                    " has no counterpart in the graph\n");
  }
  return text;
}

}  // namespace requant
