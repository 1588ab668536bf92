#include "workflows/report/tensorboard_events.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/json.h"
#include "runtime/datasets/formats/record_format.h"
#include "tensorflow/core/framework/summary.pb.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/framework/types.pb.h"
#include "tensorflow/core/util/event.pb.h"
#include "workflows/report/stage_figures.h"
#include "workflows/run/run_record.pb.h"

namespace requant {
namespace {

using tensorflow::Event;
using tensorflow::Summary;

// The events of one file.
class EventWriter {
 public:
  explicit EventWriter(double wall_time) {
    Event version;
    version.set_wall_time(wall_time);
    version.set_file_version("brain.Event:2");
    AppendRecord(version.SerializeAsString(), &file_);
  }

  // What is added next belongs to this step.
  void StartStep(int64_t step, double wall_time) {
    Finish();
    event_.set_step(step);
    event_.set_wall_time(wall_time);
  }

  void AddScalar(std::string_view tag, std::string_view description,
                 const std::optional<double>& value) {
    if (!value.has_value() || !std::isfinite(*value)) return;
    Summary::Value* entry = Add(tag, "scalars", description);
    entry->set_simple_value(static_cast<float>(*value));
  }

  void AddText(std::string_view tag, std::string_view markdown) {
    tensorflow::TensorProto* tensor = Add(tag, "text", "")->mutable_tensor();
    tensor->set_dtype(tensorflow::DT_STRING);
    tensor->mutable_tensor_shape();
    tensor->add_string_val(std::string(markdown));
  }

  std::string Finish() {
    if (event_.has_summary()) {
      AppendRecord(event_.SerializeAsString(), &file_);
    }
    event_.Clear();
    return file_;
  }

 private:
  Summary::Value* Add(std::string_view tag, std::string_view plugin,
                      std::string_view description) {
    Summary::Value* value = event_.mutable_summary()->add_value();
    value->set_tag(std::string(tag));
    value->mutable_metadata()->mutable_plugin_data()->set_plugin_name(
        std::string(plugin));
    value->mutable_metadata()->set_summary_description(
        std::string(description));
    return value;
  }

  Event event_;
  std::string file_;
};

// As text inside a cell of a table in Markdown.
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

std::string Formatted(const std::optional<double>& value, double factor,
                      int decimals) {
  if (!value.has_value()) return "";
  return absl::StrFormat("%.*f", decimals, factor * *value);
}

std::string Row(const std::vector<std::string>& cells) {
  return absl::StrCat("| ", absl::StrJoin(cells, " | "), " |\n");
}

std::string StageTable(const RunRecord& record,
                       const std::vector<StageFigures>& figures) {
  std::string table =
      Row({"step", "stage", "state", "accuracy, %", "difference, points",
           "agreement, %", "mean output change", "records/s", "nodes", "bytes",
           "verdict"}) +
      Row({"--:", ":--", ":--",
           "--:", "--:", "--:", "--:", "--:", "--:", "--:", ":--"});
  for (int i = 0; i < record.stage_size(); ++i) {
    const StageFigures& stage = figures[i];
    absl::StrAppend(&table,
                    Row({absl::StrCat(i), Cell(record.stage(i).name()),
                         Cell(stage.state), Formatted(stage.accuracy, 100, 4),
                         Formatted(stage.difference, 1, 4),
                         Formatted(stage.agreement, 100, 3),
                         Formatted(stage.mean_change, 1, 6),
                         Formatted(stage.records_per_second, 1, 0),
                         stage.nodes ? absl::StrCat(*stage.nodes) : "",
                         stage.bytes ? absl::StrCat(*stage.bytes) : "",
                         std::string(VerdictName(stage.verdict))}));
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

double EndOf(const TaskRecord& task) { return task.start() + task.seconds(); }

// From the run's start, in seconds.
double EndOf(const StageRecord& stage) {
  return std::max({EndOf(stage.work()), EndOf(stage.verification().work()),
                   EndOf(stage.benchmark().work())});
}

std::optional<double> AsDouble(const std::optional<int64_t>& number) {
  if (!number.has_value()) return std::nullopt;
  return static_cast<double>(*number);
}

void AddFigures(const StageFigures& figures, EventWriter* writer) {
  writer->AddScalar("quality/accuracy", "Of 1, by stage.", figures.accuracy);
  writer->AddScalar("quality/accuracy_difference",
                    "Against the stage's baseline, in percentage points.",
                    figures.difference);
  writer->AddScalar("quality/agreement",
                    "Share of records with the baseline's prediction.",
                    figures.agreement);
  writer->AddScalar("quality/mean_output_change",
                    "Mean change of the probability against the baseline.",
                    figures.mean_change);
  writer->AddScalar("quality/max_output_change",
                    "Largest change of the probability against the baseline.",
                    figures.max_change);
  writer->AddScalar("speed/records_per_second_while_verifying",
                    "Of the session, with whatever else ran then.",
                    figures.records_per_second);
  if (figures.benchmark.has_value()) {
    writer->AddScalar("speed/benchmark_records_per_second",
                      "Median over the benchmark's rounds.",
                      figures.benchmark->records_per_second);
    writer->AddScalar("speed/benchmark_ratio",
                      "Against the benchmark's first graph.",
                      figures.benchmark->speed.median);
  }
  writer->AddScalar("graph/bytes", "Size of the graph's file.",
                    AsDouble(figures.bytes));
  writer->AddScalar("graph/nodes", "", AsDouble(figures.nodes));
  writer->AddScalar("time/seconds", "Of the stage in this run.",
                    figures.seconds);
}

void AddLayers(const EvaluateResult& result, EventWriter* writer) {
  for (const ComparedLayer& layer : result.layer()) {
    const std::string name = ValidUtf8(layer.name());
    writer->AddScalar(absl::StrCat("layer_signal_to_noise_db/", name),
                      "The layer's output against its float reference.",
                      layer.signal_to_noise());
    if (layer.has_range()) {
      writer->AddScalar(absl::StrCat("layer_clipped_share/", name),
                        "Share of the values outside the calibrated range.",
                        layer.clipped_share());
    }
  }
}

}  // namespace

std::string EventFileName(const RunRecord& record) {
  return absl::StrCat("events.out.tfevents.", record.started_ms() / 1000,
                      ".requant");
}

std::string EventFile(const RunRecord& record) {
  const double start = static_cast<double>(record.started_ms()) / 1000;
  const std::vector<StageFigures> figures = FiguresOfStages(record);
  EventWriter writer(start);
  writer.StartStep(0, start);
  writer.AddText("run", RunTable(record));
  writer.AddText("stages", StageTable(record, figures));
  for (int i = 0; i < record.stage_size(); ++i) {
    writer.StartStep(i, start + EndOf(record.stage(i)));
    AddFigures(figures[i], &writer);
    AddLayers(record.stage(i).verification().result(), &writer);
  }
  return writer.Finish();
}

}  // namespace requant
