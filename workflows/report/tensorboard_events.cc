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
#include "base/records/record_format.h"
#include "tensorflow/core/framework/summary.pb.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/framework/types.pb.h"
#include "tensorflow/core/util/event.pb.h"
#include "workflows/report/figures.h"
#include "workflows/report/results.h"
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

  // Starts the step that what is added next belongs to.
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
    tensor->add_string_val(markdown);
  }

  std::string Finish() {
    if (event_.has_summary()) AppendRecord(event_.SerializeAsString(), &file_);
    event_.Clear();
    return file_;
  }

 private:
  Summary::Value* Add(std::string_view tag, std::string_view plugin,
                      std::string_view description) {
    Summary::Value* value = event_.mutable_summary()->add_value();
    value->set_tag(tag);
    value->mutable_metadata()->mutable_plugin_data()->set_plugin_name(plugin);
    value->mutable_metadata()->set_summary_description(description);
    return value;
  }

  Event event_;
  std::string file_;
};

// Returns the text as it is inside a cell of a table in Markdown.
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

double EndOf(const TaskRecord& task) { return task.start() + task.seconds(); }

// Returns seconds from the run's start.
double EndOf(const StageRecord& stage) {
  return std::max({EndOf(stage.work()), EndOf(stage.verification().work()),
                   EndOf(stage.benchmark().work())});
}

void AddFigures(const StageFigures& figures, EventWriter* writer) {
  for (const Figure& figure : Figures()) {
    const std::optional<Estimate> found = figure.of(figures);
    if (figure.curve.tag == nullptr || !found.has_value()) continue;
    writer->AddScalar(figure.curve.tag, figure.curve.help, found->value);
  }
  writer->AddScalar("graph/bytes", "Size of the graph's file.", figures.bytes);
  writer->AddScalar("graph/nodes", "", figures.nodes);
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
