#include "workflows/report/results.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/json.h"
#include "google/protobuf/repeated_field.h"
#include "runtime/benchmark/benchmark_figures.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/statistics/paired_comparison.h"
#include "workflows/report/stage_figures.h"
#include "workflows/run/run_record.pb.h"

namespace requant {
namespace {

using Members = std::vector<std::pair<std::string, std::string>>;

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

template <typename Values, typename Function>
std::string ArrayOf(const Values& values, Function json) {
  std::vector<std::string> all;
  for (const auto& value : values) all.push_back(json(value));
  return JsonArray(all);
}

std::string Texts(const google::protobuf::RepeatedPtrField<std::string>& all) {
  return ArrayOf(all, [](const std::string& text) { return Json(text); });
}

std::string FileRecordJson(const FileRecord& file) {
  return JsonObject({{"role", Json(file.role())},
                     {"path", Json(file.path())},
                     {"sha256", TextOrNull(file.sha256())},
                     {"bytes", Json(file.bytes())},
                     {"stage", TextOrNull(file.stage())}});
}

std::string TaskJson(const TaskRecord& task) {
  return JsonObject({{"state", Json(StateName(task.state()))},
                     {"message", TextOrNull(task.message())},
                     {"start", Json(task.start())},
                     {"seconds", Json(task.seconds())},
                     {"work_seconds", Json(task.work_seconds())},
                     {"commands", Texts(task.command())},
                     {"key", TextOrNull(task.key())},
                     {"inputs", ArrayOf(task.input(), FileRecordJson)},
                     {"outputs", ArrayOf(task.output(), FileRecordJson)},
                     {"notes", Texts(task.note())},
                     {"warnings", Texts(task.warning())}});
}

std::string GraphJson(const GraphRecord& graph) {
  Members ops;
  for (const OpRecord& op : graph.op()) {
    ops.emplace_back(op.op(), Json(op.nodes()));
  }
  return JsonObject({{"nodes", Json(graph.nodes())},
                     {"bytes", Json(graph.bytes())},
                     {"ops", JsonObject(ops)}});
}

std::string ScoresJson(const Scores& scores) {
  const bool counted = scores.has_correct() && scores.records() > 0;
  return JsonObject(
      {{"records", Json(scores.records())},
       {"correct", scores.has_correct() ? Json(scores.correct()) : "null"},
       {"accuracy", scores.has_accuracy() ? Json(scores.accuracy()) : "null"},
       {"accuracy_interval_95",
        counted ? Json(ShareInterval(scores.correct(), scores.records()))
                : "null"},
       {"auc", scores.has_auc() ? Json(scores.auc()) : "null"},
       {"auc_max_error", scores.has_auc() ? Json(scores.auc_error()) : "null"},
       {"log_loss", scores.has_log_loss() ? Json(scores.log_loss()) : "null"},
       {"rmse", scores.has_rmse() ? Json(scores.rmse()) : "null"},
       {"nan_records", Json(scores.nan_records())},
       {"infinite_records", Json(scores.infinite_records())},
       {"improbable_records", Json(scores.improbable_records())}});
}

std::string SpeedJson(const Timing& timing) {
  if (timing.timed_seconds() <= 0) return "null";
  return Json(static_cast<double>(timing.timed_records()) /
              timing.timed_seconds());
}

std::string AccuracyJson(const AccuracyDifference& accuracy) {
  return JsonObject({
      {"difference_points", Json(accuracy.points())},
      {"interval_95", Json(accuracy.interval())},
      {"baseline_correct", Json(accuracy.baseline_correct())},
      {"candidate_correct", Json(accuracy.candidate_correct())},
      {"only_baseline_correct", Json(accuracy.only_baseline_correct())},
      {"only_candidate_correct", Json(accuracy.only_candidate_correct())},
  });
}

std::string ChangeJson(const OutputChange& change) {
  return JsonObject({{"mean", Json(change.mean())},
                     {"interval_95",
                      change.has_interval() ? Json(change.interval()) : "null"},
                     {"max", Json(change.max())},
                     {"max_record", Json(change.max_record())}});
}

std::string NonFiniteJson(const NonFinite& values) {
  return JsonObject(
      {{"nan", Json(values.nan())},
       {"infinite", Json(values.infinite())},
       {"first_record",
        values.has_first_record() ? Json(values.first_record()) : "null"}});
}

std::string AgreementJson(const Agreement& agreement) {
  return JsonObject({{"records", Json(agreement.records())},
                     {"share", Json(agreement.share())},
                     {"interval_95", Json(agreement.interval())}});
}

std::string ComparisonJson(const Comparison& comparison) {
  return JsonObject({
      {"records", Json(comparison.records())},
      {"accuracy", comparison.has_accuracy()
                       ? AccuracyJson(comparison.accuracy())
                       : "null"},
      {"agreement", comparison.has_agreement()
                        ? AgreementJson(comparison.agreement())
                        : "null"},
      {"output_change", comparison.has_output_change()
                            ? ChangeJson(comparison.output_change())
                            : "null"},
      {"squared_change", comparison.has_squared_change()
                             ? ChangeJson(comparison.squared_change())
                             : "null"},
      {"class_1_change", comparison.has_class_1_change()
                             ? ChangeJson(comparison.class_1_change())
                             : "null"},
      {"baseline_non_finite", NonFiniteJson(comparison.baseline_non_finite())},
      {"candidate_non_finite",
       NonFiniteJson(comparison.candidate_non_finite())},
      {"lost_values", Json(comparison.lost_values())},
  });
}

std::string LayerJson(const ComparedLayer& layer) {
  return JsonObject(
      {{"name", Json(layer.name())},
       {"baseline_tensor", Json(layer.baseline_tensor())},
       {"tensor", Json(layer.tensor())},
       {"quantized", Json(layer.quantized())},
       {"records", Json(layer.records())},
       {"step", Json(layer.step())},
       {"range", layer.has_range() ? Json(layer.range()) : "null"},
       {"observed", Json(layer.observed())},
       {"clipped_share", Json(layer.clipped_share())},
       {"clipped_records", Json(layer.clipped_records())},
       {"gain", Json(layer.gain())},
       {"rms_error", Json(layer.rms_error())},
       {"rms_signal", Json(layer.rms_signal())},
       {"max_error", Json(layer.max_error())},
       {"signal_to_noise_db", Json(layer.signal_to_noise())},
       {"worst_channel", Json(layer.worst_channel())},
       {"worst_channel_shift", Json(layer.worst_channel_shift())}});
}

std::string GateJson(const GateRecord& gate) {
  return JsonObject(
      {{"name", Json(gate.name())},
       {"limit", Json(gate.limit())},
       {"value", gate.has_value() ? Json(gate.value()) : "null"},
       {"interval_95", gate.has_interval() ? Json(gate.interval()) : "null"},
       {"verdict", TextOrNull(VerdictName(gate.verdict()))},
       {"layer", TextOrNull(gate.layer())},
       {"sentence", Json(gate.sentence())},
       {"advice", TextOrNull(gate.advice())}});
}

void AddResult(const EvaluateResult& result, Members* members) {
  const Members more = {
      {"batch_size", Json(result.batch_size())},
      {"bad_records", Json(result.bad_records())},
      {"lost_rests", Json(result.lost_rests())},
      {"prediction_kind",
       Json(PredictionSpec::Kind_Name(result.prediction_kind()))},
      {"scores", result.has_scores() ? ScoresJson(result.scores()) : "null"},
      {"records_per_second", SpeedJson(result.timing())},
      {"baseline_scores", result.has_baseline_scores()
                              ? ScoresJson(result.baseline_scores())
                              : "null"},
      {"baseline_records_per_second", SpeedJson(result.baseline_timing())},
      {"comparison",
       result.has_comparison() ? ComparisonJson(result.comparison()) : "null"},
      {"layers", ArrayOf(result.layer(), LayerJson)},
      {"unmatched_layers", Texts(result.unmatched_layer())},
  };
  members->insert(members->end(), more.begin(), more.end());
}

std::string VerificationJson(const VerificationRecord& verification) {
  Members members = {
      {"work", TaskJson(verification.work())},
      {"evaluation", TextOrNull(verification.evaluation())},
      {"baseline", TextOrNull(verification.baseline())},
      {"verdict", TextOrNull(VerdictName(verification.verdict()))},
      {"gates", ArrayOf(verification.gate(), GateJson)}};
  AddResult(verification.result(), &members);
  return JsonObject(members);
}

std::string BaselineJson(const BaselineRecord& baseline) {
  Members members = {{"name", Json(baseline.name())},
                     {"path", Json(baseline.path())},
                     {"work", TaskJson(baseline.work())}};
  AddResult(baseline.result(), &members);
  return JsonObject(members);
}

Members BenchmarkMembers(const GraphFigures& figures) {
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
    Members members = {{"stage", Json(benchmark.graph(i))},
                       {"streams", Json(int64_t{setting.streams()})},
                       {"threads", Json(int64_t{setting.threads()})}};
    const Members more = BenchmarkMembers(figures[i]);
    members.insert(members.end(), more.begin(), more.end());
    graphs.push_back(JsonObject(members));
  }
  return JsonObject({{"work", TaskJson(benchmark.work())},
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
      {"work", stage.has_work() ? TaskJson(stage.work()) : "null"},
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
                 const std::optional<Interval>& interval, Members* columns) {
  columns->emplace_back(name + "_low", interval ? Csv(interval->low()) : "");
  columns->emplace_back(name + "_high", interval ? Csv(interval->high()) : "");
}

void AddScores(const EvaluateResult& result, Members* columns) {
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

void AddBenchmark(const std::optional<GraphFigures>& figures,
                  Members* columns) {
  columns->emplace_back("benchmark_records_per_second",
                        figures ? Csv(figures->records_per_second) : "");
  columns->emplace_back("benchmark_speed",
                        figures ? Csv(figures->speed.median) : "");
  AddInterval("benchmark_speed",
              figures ? figures->speed.interval : std::nullopt, columns);
}

// Names and fields of a stage's line.
Members CsvColumns(const StageRecord& stage, const StageFigures& figures) {
  const VerificationRecord& verification = stage.verification();
  Members columns = {
      {"stage", Csv(std::string_view(stage.name()))},
      {"kind", Csv(std::string_view(stage.kind()))},
      {"state", Csv(figures.state)},
      {"seconds", Csv(figures.seconds)},
      {"work_seconds", Csv(figures.work_seconds)},
      {"nodes", OrEmpty(figures.nodes)},
      {"bytes", OrEmpty(figures.bytes)},
      {"evaluation", Csv(std::string_view(verification.evaluation()))},
      {"baseline", Csv(std::string_view(verification.baseline()))},
      {"verdict", Csv(VerdictName(figures.verdict))}};
  AddScores(verification.result(), &columns);
  columns.emplace_back("accuracy", OrEmpty(figures.accuracy));
  AddInterval("accuracy", figures.accuracy_interval, &columns);
  columns.emplace_back("difference_points", OrEmpty(figures.difference));
  AddInterval("difference_points", figures.difference_interval, &columns);
  columns.emplace_back("agreement", OrEmpty(figures.agreement));
  AddInterval("agreement", figures.agreement_interval, &columns);
  columns.emplace_back("mean_output_change", OrEmpty(figures.mean_change));
  AddInterval("mean_output_change", figures.mean_change_interval, &columns);
  columns.emplace_back("max_output_change", OrEmpty(figures.max_change));
  columns.emplace_back("mse", OrEmpty(figures.mean_squared_change));
  AddInterval("mse", figures.mean_squared_change_interval, &columns);
  columns.emplace_back("records_per_second",
                       OrEmpty(figures.records_per_second));
  AddBenchmark(figures.benchmark, &columns);
  return columns;
}

void AppendLine(const Members& columns, bool names, std::string* csv) {
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
  return JsonObject({
      {"state", Json(figures.state)},
      {"seconds", Json(figures.seconds)},
      {"work_seconds", Json(figures.work_seconds)},
      {"nodes", OrNull(figures.nodes)},
      {"bytes", OrNull(figures.bytes)},
      {"accuracy", OrNull(figures.accuracy)},
      {"accuracy_interval_95", OrNull(figures.accuracy_interval)},
      {"difference_points", OrNull(figures.difference)},
      {"difference_interval_95", OrNull(figures.difference_interval)},
      {"agreement", OrNull(figures.agreement)},
      {"agreement_interval_95", OrNull(figures.agreement_interval)},
      {"mean_output_change", OrNull(figures.mean_change)},
      {"mean_output_change_interval_95", OrNull(figures.mean_change_interval)},
      {"max_output_change", OrNull(figures.max_change)},
      {"mse", OrNull(figures.mean_squared_change)},
      {"mse_interval_95", OrNull(figures.mean_squared_change_interval)},
      {"records_per_second", OrNull(figures.records_per_second)},
      {"benchmark_records_per_second",
       figures.benchmark ? Json(figures.benchmark->records_per_second)
                         : "null"},
      {"benchmark_speed",
       figures.benchmark ? Json(figures.benchmark->speed) : "null"},
      {"verdict", TextOrNull(VerdictName(figures.verdict))},
  });
}

std::string ToolJson(const ToolRecord& tool) {
  return JsonObject({{"version", Json(tool.version())},
                     {"tensorflow", Json(tool.tensorflow())},
                     {"cpu", Json(tool.cpu())},
                     {"cpu_features", Texts(tool.cpu_feature())},
                     {"cores", Json(int64_t{tool.cores()})},
                     {"target", Json(tool.target())},
                     {"system", Json(tool.system())}});
}

std::string VariableJson(const SettingRecord& variable) {
  return JsonObject({{"name", Json(variable.name())},
                     {"value", Json(variable.value())},
                     {"from", Json(variable.from())}});
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
      {"tool", ToolJson(record.tool())},
      {"variables", ArrayOf(record.variable(), VariableJson)},
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
