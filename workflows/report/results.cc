#include "workflows/report/results.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/json.h"
#include "base/message/message_json.h"
#include "base/records/record_format.h"
#include "runtime/benchmark/benchmark_report.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/evaluation.pb.h"
#include "runtime/statistics/metrics.h"
#include "runtime/statistics/paired_comparison.h"
#include "runtime/statistics/timing.h"
#include "tensorflow/core/framework/summary.pb.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/framework/types.pb.h"
#include "tensorflow/core/util/event.pb.h"
#include "workflows/report/figures.h"
#include "workflows/report/html_page.h"
#include "workflows/report/report_files.h"
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
std::string Json(const PairedRatio& ratio) {
  return JsonObject(
      {{"ratio", Json(ratio.median)},
       {"interval_95", ratio.interval ? Json(*ratio.interval) : "null"}});
}

template <typename Value>
std::string OrNull(const std::optional<Value>& value) {
  return value.has_value() ? Json(*value) : "null";
}

// Returns a text as JSON, or null if it is empty.
std::string TextOrNull(std::string_view text) {
  return text.empty() ? "null" : JsonString(text);
}

std::string VerdictJson(VerificationRecord::Verdict verdict) {
  return TextOrNull(absl::AsciiStrToLower(VerdictName(verdict)));
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
      {"layers", JsonArrayOf(result.layer(), MessageJson)},
      {"unmatched_layers", JsonArrayOf(result.unmatched_layer(), JsonString)},
  };
  members->insert(members->end(), more.begin(), more.end());
}

std::string VerificationJson(const VerificationRecord& verification) {
  JsonMembers members = {
      {"work", MessageJson(verification.work())},
      {"evaluation", TextOrNull(verification.evaluation())},
      {"baseline", TextOrNull(verification.baseline())},
      {"verdict", VerdictJson(verification.verdict())},
      {"gates", JsonArrayOf(verification.gate(), MessageJson)}};
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

std::string BenchmarkJson(const BenchmarkRecord& benchmark) {
  const std::vector<GraphFigures> all = CheckedFiguresOf(benchmark);
  std::vector<std::string> graphs;
  for (size_t i = 0; i < all.size(); ++i) {
    const GraphFigures& graph = all[i];
    const StreamSetting& setting = benchmark.result().entry(i).setting();
    graphs.push_back(JsonObject({
        {"stage", Json(benchmark.graph(i))},
        {"streams", Json(int64_t{setting.streams()})},
        {"threads", Json(int64_t{setting.threads()})},
        {"records_per_second", Json(graph.records_per_second)},
        {"spread", Json(graph.spread)},
        {"cpu_microseconds_per_record",
         Json(graph.cpu_microseconds_per_record)},
        {"milliseconds_per_batch", Json(graph.milliseconds_per_batch)},
        {"milliseconds_per_batch_p99", Json(graph.milliseconds_per_batch_p99)},
        {"waited_share", OrNull(graph.waited_share)},
        {"speed", Json(graph.speed)},
        {"cpu_time", Json(graph.cpu_time)},
    }));
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
      {"baseline_rmse", OrNull(summary.baseline_rmse)},
      {"baseline_bytes", OrNull(summary.baseline_bytes)},
      {"speed", OrNull(summary.speed)},
      {"speed_is_benchmarked", Json(summary.speed_is_benchmarked)},
      {"size_ratio", OrNull(summary.size_ratio)},
  });
}

// Returns a text as a field of a CSV line.
std::string Csv(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

// Returns the names and fields of a stage's line.
JsonMembers CsvColumns(const StageRecord& stage, const StageFigures& figures) {
  const VerificationRecord& verification = stage.verification();
  const Scores& scores = verification.result().scores();
  JsonMembers columns = {
      {"stage", Csv(stage.name())},
      {"kind", Csv(stage.kind())},
      {"state", Csv(figures.state)},
      {"seconds", Json(figures.seconds)},
      {"work_seconds", Json(figures.work_seconds)},
      {"nodes", figures.nodes ? Json(*figures.nodes) : ""},
      {"bytes", figures.bytes ? Json(*figures.bytes) : ""},
      {"evaluation", Csv(verification.evaluation())},
      {"baseline", Csv(verification.baseline())},
      {"verdict", Csv(absl::AsciiStrToLower(VerdictName(figures.verdict)))},
      {"records",
       verification.result().has_scores() ? Json(scores.records()) : ""},
      {"correct", scores.has_correct() ? Json(scores.correct()) : ""},
      {"auc", scores.has_auc() ? Json(scores.auc()) : ""},
      {"log_loss", scores.has_log_loss() ? Json(scores.log_loss()) : ""}};
  for (const Figure& figure : Figures()) {
    const std::optional<Estimate> found = figure.of(figures);
    columns.emplace_back(figure.key, found ? Json(found->value) : "");
    if (figure.interval_key == nullptr && !figure.is_ratio) continue;
    const std::optional<Interval> ends = found ? found->interval : std::nullopt;
    columns.emplace_back(absl::StrCat(figure.key, "_low"),
                         ends ? Json(ends->low()) : "");
    columns.emplace_back(absl::StrCat(figure.key, "_high"),
                         ends ? Json(ends->high()) : "");
  }
  return columns;
}

// Returns JSON that is safe in a script element: nothing in it ends the element
// or opens a comment. U+2028 and U+2029 end lines before ES2019.
std::string JsonForScript(std::string_view json) {
  return absl::StrReplaceAll(json, {{"<", "\\u003c"},
                                    {">", "\\u003e"},
                                    {"&", "\\u0026"},
                                    {"\xe2\x80\xa8", "\\u2028"},
                                    {"\xe2\x80\xa9", "\\u2029"}});
}

// --- TensorBoard's file.

using tensorflow::Event;
using tensorflow::Summary;

Event NewEvent(int64_t step, double wall_time) {
  Event event;
  event.set_step(step);
  event.set_wall_time(wall_time);
  return event;
}

Summary::Value* AddValue(std::string_view tag, std::string_view plugin,
                         std::string_view description, Event* event) {
  Summary::Value* value = event->mutable_summary()->add_value();
  value->set_tag(tag);
  value->mutable_metadata()->mutable_plugin_data()->set_plugin_name(plugin);
  value->mutable_metadata()->set_summary_description(description);
  return value;
}

void AddScalar(std::string_view tag, std::string_view description,
               const std::optional<double>& value, Event* event) {
  if (!value.has_value() || !std::isfinite(*value)) return;
  AddValue(tag, "scalars", description, event)
      ->set_simple_value(static_cast<float>(*value));
}

void AddText(std::string_view tag, std::string_view markdown, Event* event) {
  auto* tensor = AddValue(tag, "text", "", event)->mutable_tensor();
  tensor->set_dtype(tensorflow::DT_STRING);
  tensor->mutable_tensor_shape();
  tensor->add_string_val(markdown);
}

// Returns the text for a cell of a Markdown table.
std::string Cell(std::string_view text) {
  return absl::StrReplaceAll(ValidUtf8(text), {{"&", "&amp;"},
                                               {"<", "&lt;"},
                                               {">", "&gt;"},
                                               {"|", "&#124;"},
                                               {"*", "&#42;"},
                                               {"_", "&#95;"},
                                               {"[", "&#91;"},
                                               {"]", "&#93;"},
                                               {"`", "&#96;"},
                                               {"\n", " "},
                                               {"\r", " "}});
}

std::string Row(const std::vector<std::string>& cells) {
  return absl::StrCat("| ", absl::StrJoin(cells, " | "), " |\n");
}

std::string StageTable(const RunRecord& record,
                       const std::vector<StageFigures>& figures) {
  std::vector<std::string> titles = {"step", "stage", "state"};
  std::vector<std::string> sides = {"--:", ":--", ":--"};
  std::vector<const Figure*> columns;
  for (const Figure& figure : Figures()) {
    if (figure.curve.title == nullptr) continue;
    columns.push_back(&figure);
    titles.push_back(figure.curve.title);
    sides.push_back("--:");
  }
  titles.insert(titles.end(), {"nodes", "bytes", "verdict"});
  sides.insert(sides.end(), {"--:", "--:", ":--"});
  std::string table = Row(titles) + Row(sides);
  for (int i = 0; i < record.stage_size(); ++i) {
    const StageFigures& stage = figures[i];
    std::vector<std::string> cells = {
        absl::StrCat(i), Cell(record.stage(i).name()), Cell(stage.state)};
    for (const Figure* column : columns) {
      const std::optional<Estimate> found = column->of(stage);
      const double factor = column->curve.factor;
      cells.push_back(found ? absl::StrFormat("%.*f", column->curve.decimals,
                                              factor * found->value)
                            : "");
    }
    cells.push_back(stage.nodes ? absl::StrCat(*stage.nodes) : "");
    cells.push_back(stage.bytes ? absl::StrCat(*stage.bytes) : "");
    cells.push_back(absl::AsciiStrToLower(VerdictName(stage.verdict)));
    absl::StrAppend(&table, Row(cells));
  }
  return table;
}

std::string RunTable(const RunRecord& record) {
  return absl::StrCat(
      Row({"run", Cell(record.run())}), Row({":--", ":--"}),
      Row({"workflow", Cell(record.workflow())}),
      Row({"outcome", Cell(OutcomeName(record.outcome()))}),
      Row({"seconds", absl::StrFormat("%.2f", record.seconds())}),
      Row({"command", Cell(record.command())}),
      Row({"requant", Cell(record.tool().version())}),
      Row({"TensorFlow", Cell(record.tool().tensorflow())}),
      Row({"CPU", Cell(record.tool().cpu())}));
}

// Returns when the stage ended, in seconds after the run's start.
double EndOf(const StageRecord& stage) {
  double end = 0;
  for (const TaskRecord* task : TasksOf(stage)) {
    end = std::max(end, task->start() + task->seconds());
  }
  return end;
}

void AddFigures(const StageFigures& figures, Event* event) {
  for (const Figure& figure : Figures()) {
    const std::optional<Estimate> found = figure.of(figures);
    if (figure.curve.tag == nullptr || !found.has_value()) continue;
    AddScalar(figure.curve.tag, figure.curve.help, found->value, event);
  }
  AddScalar("graph/bytes", "Size of the graph's file.", figures.bytes, event);
  AddScalar("graph/nodes", "", figures.nodes, event);
  AddScalar("time/seconds", "Of the stage in this run.", figures.seconds,
            event);
}

void AddLayers(const EvaluateResult& result, Event* event) {
  for (const ComparedLayer& layer : result.layer()) {
    const std::string name = ValidUtf8(layer.name());
    AddScalar(absl::StrCat("layer_signal_to_noise_db/", name),
              "The layer's output against its float reference.",
              layer.signal_to_noise(), event);
    if (!layer.has_range()) continue;
    AddScalar(absl::StrCat("layer_clipped_share/", name),
              "Share of the values outside the calibrated range.",
              layer.clipped_share(), event);
  }
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
      {"format", JsonString("requant results 1")},
      {"workflow", Json(record.workflow())},
      {"summary", TextOrNull(record.summary())},
      {"file", Json(record.file())},
      {"run", Json(record.run())},
      {"outcome", Json(OutcomeName(record.outcome()))},
      {"started", Json(UtcTime(record.started_ms()))},
      {"seconds", Json(record.seconds())},
      {"command", Json(record.command())},
      {"tool", MessageJson(record.tool())},
      {"variables", JsonArrayOf(record.variable(), MessageJson)},
      {"final", SummaryJson(record, SummaryOf(record, figures))},
      {"stages", JsonArray(stages)},
      {"baselines", JsonArrayOf(record.baseline(), BaselineJson)},
  });
}

std::string ResultsCsv(const RunRecord& record) {
  const std::vector<StageFigures> figures = FiguresOfStages(record);
  std::string csv;
  for (int i = -1; i < record.stage_size(); ++i) {
    std::vector<std::string> fields;
    for (const auto& [name, field] :
         i < 0 ? CsvColumns({}, {}) : CsvColumns(record.stage(i), figures[i])) {
      fields.push_back(i < 0 ? name : field);
    }
    absl::StrAppend(&csv, absl::StrJoin(fields, ","), "\r\n");
  }
  return csv;
}

std::string ReportHtml(const RunRecord& record) {
  const std::string data =
      JsonObject({{"results", ResultsJson(record)},
                  {"workflow_text", JsonString(record.file_content())}});
  const std::string outcome =
      absl::StrReplaceAll(OutcomeName(record.outcome()), {{"_", " "}});
  const std::string body = absl::StrCat(
      "<noscript><p>The run's outcome: ", outcome,
      ". This page is drawn by a script; the same numbers are in results.csv "
      "and results.json beside it.</p></noscript>\n"
      "<script type=\"application/json\" id=\"run\">",
      JsonForScript(data), "</script>\n<!--\n", kChartJsLicense,
      "-->\n<script>", kChartJs, "</script>\n<script>", kReportJs,
      "</script>\n");
  return HtmlPage(
      absl::StrCat(record.workflow(), ": ", outcome, " – Requant report"),
      record.tool().version(), body, {kChartJs, kReportJs});
}

std::string EventFileName(const RunRecord& record) {
  return absl::StrCat("events.out.tfevents.", record.started_ms() / 1000,
                      ".requant");
}

std::string EventFile(const RunRecord& record) {
  const double start = static_cast<double>(record.started_ms()) / 1000;
  const std::vector<StageFigures> figures = FiguresOfStages(record);
  std::vector<Event> events(2, NewEvent(0, start));
  events[0].set_file_version("brain.Event:2");
  AddText("run", RunTable(record), &events[1]);
  AddText("stages", StageTable(record, figures), &events[1]);
  for (int i = 0; i < record.stage_size(); ++i) {
    Event& event =
        events.emplace_back(NewEvent(i, start + EndOf(record.stage(i))));
    AddFigures(figures[i], &event);
    AddLayers(record.stage(i).verification().result(), &event);
  }
  std::string file;
  for (const Event& event : events) {
    AppendRecord(event.SerializeAsString(), &file);
  }
  return file;
}

}  // namespace requant
