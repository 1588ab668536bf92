#include "workflows/report/results.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/json.h"
#include "base/message/message_json.h"
#include "runtime/benchmark/benchmark_report.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/evaluation.pb.h"
#include "runtime/statistics/metrics.h"
#include "runtime/statistics/paired_comparison.h"
#include "runtime/statistics/timing.h"
#include "workflows/report/figures.h"
#include "workflows/report/stage_figures.h"
#include "workflows/run/run_record.pb.h"

namespace requant {
namespace {

std::string Json(std::string_view text) { return JsonString(text); }
std::string Json(double number) { return JsonNumber(number); }
std::string Json(int64_t number) { return absl::StrCat(number); }
std::string Json(bool value) { return value ? "true" : "false"; }
std::string Json(const Interval& interval) {
  return JsonArray({JsonNumber(interval.low()), JsonNumber(interval.high())});
}
std::string Json(const PairedRatio& ratio);

template <typename Value>
std::string OrNull(const std::optional<Value>& value) {
  return value.has_value() ? Json(*value) : "null";
}

std::string Json(const PairedRatio& ratio) {
  return JsonObject({{"ratio", JsonNumber(ratio.median)},
                     {"interval_95", OrNull(ratio.interval)}});
}

// Texts that JSON has as null when they are empty.
std::string TextOrNull(std::string_view text) {
  return text.empty() ? "null" : JsonString(text);
}

std::string VerdictJson(VerificationRecord::Verdict verdict) {
  return TextOrNull(absl::AsciiStrToLower(VerdictName(verdict)));
}

template <typename Values, typename Function>
std::string ArrayOf(const Values& values, Function json) {
  std::vector<std::string> all;
  for (const auto& value : values) all.push_back(json(value));
  return JsonArray(all);
}

std::string GraphJson(const GraphRecord& graph) {
  JsonMembers ops;
  for (const OpRecord& op : graph.op()) {
    ops.emplace_back(op.op(), Json(op.nodes()));
  }
  return JsonObject({{"nodes", Json(graph.nodes())},
                     {"bytes", Json(graph.bytes())},
                     {"ops", JsonObject(ops)}});
}

std::string ScoresJson(const Scores& scores) {
  JsonMembers members;
  for (const auto& member : ScoresMembers(scores)) {
    members.push_back(member);
    if (member.first != "accuracy") continue;
    const bool counted = scores.has_correct() && scores.records() > 0;
    members.emplace_back(
        "accuracy_interval_95",
        counted ? Json(ShareInterval(scores.correct(), scores.records()))
                : "null");
  }
  return JsonObject(members);
}

void AddResult(const EvaluateResult& result, JsonMembers* members) {
  const JsonMembers more = {
      {"batch_size", Json(result.batch_size())},
      {"bad_records", Json(result.bad_records())},
      {"lost_rests", Json(result.lost_rests())},
      {"prediction_kind",
       Json(PredictionSpec::Kind_Name(result.prediction_kind()))},
      {"scores", result.has_scores() ? ScoresJson(result.scores()) : "null"},
      {"records_per_second", OrNull(RecordsPerSecond(result.timing()))},
      {"baseline_scores", result.has_baseline_scores()
                              ? ScoresJson(result.baseline_scores())
                              : "null"},
      {"baseline_records_per_second",
       OrNull(RecordsPerSecond(result.baseline_timing()))},
      {"comparison",
       result.has_comparison() ? MessageJson(result.comparison()) : "null"},
      {"layers", ArrayOf(result.layer(), MessageJson)},
      {"unmatched_layers", ArrayOf(result.unmatched_layer(), JsonString)},
  };
  members->insert(members->end(), more.begin(), more.end());
}

std::string VerificationJson(const VerificationRecord& verification) {
  JsonMembers members = {{"work", MessageJson(verification.work())},
                         {"evaluation", TextOrNull(verification.evaluation())},
                         {"baseline", TextOrNull(verification.baseline())},
                         {"verdict", VerdictJson(verification.verdict())},
                         {"gates", ArrayOf(verification.gate(), MessageJson)}};
  AddResult(verification.result(), &members);
  return JsonObject(members);
}

std::string BaselineJson(const BaselineRecord& baseline) {
  JsonMembers members = {{"name", Json(baseline.name())},
                         {"path", Json(baseline.path())},
                         {"work", MessageJson(baseline.work())}};
  AddResult(baseline.result(), &members);
  return JsonObject(members);
}

JsonMembers BenchmarkMembers(const GraphFigures& figures) {
  return {
      {"records_per_second", Json(figures.records_per_second)},
      {"spread", Json(figures.spread)},
      {"cpu_microseconds_per_record",
       Json(figures.cpu_microseconds_per_record)},
      {"milliseconds_per_batch", Json(figures.milliseconds_per_batch)},
      {"milliseconds_per_batch_p99", Json(figures.milliseconds_per_batch_p99)},
      {"waited_share", OrNull(figures.waited_share)},
      {"speed", Json(figures.speed)},
      {"cpu_time", Json(figures.cpu_time)},
  };
}

std::string BenchmarkJson(const BenchmarkRecord& benchmark) {
  const std::vector<GraphFigures> figures = CheckedFiguresOf(benchmark);
  std::vector<std::string> graphs;
  for (size_t i = 0; i < figures.size(); ++i) {
    const StreamSetting& setting = benchmark.result().entry(i).setting();
    JsonMembers members = {{"stage", Json(benchmark.graph(i))},
                           {"streams", Json(int64_t{setting.streams()})},
                           {"threads", Json(int64_t{setting.threads()})}};
    const JsonMembers more = BenchmarkMembers(figures[i]);
    members.insert(members.end(), more.begin(), more.end());
    graphs.push_back(JsonObject(members));
  }
  return JsonObject({{"work", MessageJson(benchmark.work())},
                     {"cores", Json(int64_t{benchmark.result().cores()})},
                     {"graphs", JsonArray(graphs)}});
}

std::string StageJson(const StageRecord& stage, const StageFigures& figures) {
  return JsonObject({
      {"name", Json(stage.name())},
      {"summary", TextOrNull(stage.summary())},
      {"kind", Json(stage.kind())},
      {"left_out_because", TextOrNull(stage.left_out_because())},
      {"figures", FiguresJson(figures)},
      {"work", stage.has_work() ? MessageJson(stage.work()) : "null"},
      {"graph", stage.has_graph() ? GraphJson(stage.graph()) : "null"},
      {"verification", stage.has_verification()
                           ? VerificationJson(stage.verification())
                           : "null"},
      {"benchmark",
       stage.has_benchmark() ? BenchmarkJson(stage.benchmark()) : "null"},
  });
}

std::string SummaryJson(const RunRecord& record, const RunSummary& summary) {
  if (summary.stage < 0) return "null";
  return JsonObject({
      {"stage", Json(record.stage(summary.stage).name())},
      {"baseline", TextOrNull(summary.baseline)},
      {"baseline_accuracy", OrNull(summary.baseline_accuracy)},
      {"baseline_bytes", OrNull(summary.baseline_bytes)},
      {"speed", OrNull(summary.speed)},
      {"speed_is_benchmarked", Json(summary.speed_is_benchmarked)},
      {"size_ratio", OrNull(summary.size_ratio)},
  });
}

// A field of a CSV line.
std::string Csv(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}
std::string Csv(double number) { return JsonNumber(number); }
std::string Csv(int64_t number) { return absl::StrCat(number); }

template <typename Value>
std::string OrEmpty(const std::optional<Value>& value) {
  return value.has_value() ? Csv(*value) : "";
}

void AddInterval(const std::string& name,
                 const std::optional<Interval>& interval,
                 JsonMembers* columns) {
  columns->emplace_back(name + "_low", interval ? Csv(interval->low()) : "");
  columns->emplace_back(name + "_high", interval ? Csv(interval->high()) : "");
}

void AddScores(const EvaluateResult& result, JsonMembers* columns) {
  const Scores& scores = result.scores();
  const bool scored = result.has_scores();
  columns->emplace_back("records", scored ? Csv(scores.records()) : "");
  columns->emplace_back("correct",
                        scores.has_correct() ? Csv(scores.correct()) : "");
  columns->emplace_back("auc", scores.has_auc() ? Csv(scores.auc()) : "");
  columns->emplace_back("log_loss",
                        scores.has_log_loss() ? Csv(scores.log_loss()) : "");
  columns->emplace_back("rmse", scores.has_rmse() ? Csv(scores.rmse()) : "");
}

// Names and fields of a stage's line.
JsonMembers CsvColumns(const StageRecord& stage, const StageFigures& figures) {
  const VerificationRecord& verification = stage.verification();
  JsonMembers columns = {
      {"stage", Csv(std::string_view(stage.name()))},
      {"kind", Csv(std::string_view(stage.kind()))},
      {"state", Csv(figures.state)},
      {"seconds", Csv(figures.seconds)},
      {"work_seconds", Csv(figures.work_seconds)},
      {"nodes", OrEmpty(figures.nodes)},
      {"bytes", OrEmpty(figures.bytes)},
      {"evaluation", Csv(std::string_view(verification.evaluation()))},
      {"baseline", Csv(std::string_view(verification.baseline()))},
      {"verdict", Csv(absl::AsciiStrToLower(VerdictName(figures.verdict)))}};
  AddScores(verification.result(), &columns);
  for (const Figure& figure : Figures()) {
    const std::optional<Estimate> found = figure.of(figures);
    columns.emplace_back(figure.key, found ? Csv(found->value) : "");
    if (figure.interval_key == nullptr && !figure.is_ratio) continue;
    AddInterval(figure.key, found ? found->interval : std::nullopt, &columns);
  }
  return columns;
}

void AppendLine(const JsonMembers& columns, bool names, std::string* csv) {
  absl::StrAppend(csv,
                  absl::StrJoin(columns, ",",
                                [names](std::string* out, const auto& column) {
                                  absl::StrAppend(out, names ? column.first
                                                             : column.second);
                                }),
                  "\r\n");
}

}  // namespace

std::string FiguresJson(const StageFigures& figures) {
  JsonMembers members = {
      {"state", Json(figures.state)},
      {"seconds", Json(figures.seconds)},
      {"work_seconds", Json(figures.work_seconds)},
      {"nodes", OrNull(figures.nodes)},
      {"bytes", OrNull(figures.bytes)},
  };
  for (const Figure& figure : Figures()) {
    const std::optional<Estimate> found = figure.of(figures);
    const std::string interval = found ? OrNull(found->interval) : "null";
    std::string value = found ? Json(found->value) : "null";
    if (found && figure.is_ratio) {
      value = JsonObject({{"ratio", value}, {"interval_95", interval}});
    }
    members.emplace_back(figure.key, value);
    if (figure.interval_key == nullptr) continue;
    members.emplace_back(figure.interval_key, interval);
  }
  members.emplace_back("verdict", VerdictJson(figures.verdict));
  return JsonObject(members);
}

std::string ResultsJson(const RunRecord& record) {
  const std::vector<StageFigures> figures = FiguresOfStages(record);
  std::vector<std::string> stages;
  for (int i = 0; i < record.stage_size(); ++i) {
    stages.push_back(StageJson(record.stage(i), figures[i]));
  }
  return JsonObject({
      {"format", Json(std::string_view("requant results 1"))},
      {"workflow", Json(record.workflow())},
      {"summary", TextOrNull(record.summary())},
      {"file", Json(record.file())},
      {"run", Json(record.run())},
      {"outcome", Json(OutcomeName(record.outcome()))},
      {"started", Json(UtcTime(record.started_ms()))},
      {"seconds", Json(record.seconds())},
      {"command", Json(record.command())},
      {"tool", MessageJson(record.tool())},
      {"variables", ArrayOf(record.variable(), MessageJson)},
      {"final", SummaryJson(record, SummaryOf(record, figures))},
      {"stages", JsonArray(stages)},
      {"baselines", ArrayOf(record.baseline(), BaselineJson)},
  });
}

std::string ResultsCsv(const RunRecord& record) {
  const std::vector<StageFigures> figures = FiguresOfStages(record);
  std::string csv;
  AppendLine(CsvColumns(StageRecord(), StageFigures()), /*names=*/true, &csv);
  for (int i = 0; i < record.stage_size(); ++i) {
    AppendLine(CsvColumns(record.stage(i), figures[i]), /*names=*/false, &csv);
  }
  return csv;
}

}  // namespace requant
