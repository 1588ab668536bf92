#include "workflows/language/stage_parts.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace requant {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::OneofDescriptor;

const OneofDescriptor* Kinds() {
  return Stage::descriptor()->FindOneofByName("kind");
}

std::vector<std::string> GraphRoles() { return {"graph", "logged_graph"}; }

std::string DataEnding(const DatasetStage& dataset) {
  const std::string& format = dataset.has_synthesize()
                                  ? dataset.synthesize().format()
                                  : dataset.preprocess().format();
  const bool is_csv =
      format == "csv" || (format.empty() && dataset.has_synthesize());
  return is_csv ? ".csv" : ".tfrecords";
}

// Gathers a stage's outputs, with names made up where it gives none.
class OutputList {
 public:
  OutputList(const Stage& stage, const FieldPlaces& places)
      : stage_(stage), places_(places) {}

  void Add(const std::string& role, const std::string& file,
           const std::string& ending, const std::string& field) {
    outputs_.push_back(
        {role, file.empty() ? absl::StrCat(stage_.name(), ending) : file,
         places_.Line(field)});
  }
  std::vector<StageOutput> Take() { return std::move(outputs_); }

 private:
  const Stage& stage_;
  const FieldPlaces places_;
  std::vector<StageOutput> outputs_;
};

std::vector<StageOutput> CalibrateOutputs(const Stage& stage,
                                          const FieldPlaces& places) {
  const CalibrateStage& calibrate = stage.calibrate();
  std::vector<StageOutput> outputs;
  if (calibrate.has_logging()) {
    OutputList logging(stage, places.Nested("logging"));
    logging.Add("logged_graph", calibrate.logging().logged_graph(),
                ".logged.pb", "logged_graph");
    logging.Add("log", calibrate.logging().log(), ".log.txt", "log");
    outputs = logging.Take();
  }
  OutputList ranges(stage, places);
  ranges.Add("ranges", calibrate.ranges(), ".ranges", "ranges");
  outputs.push_back(ranges.Take().front());
  return outputs;
}

std::vector<StageInput> DatasetInputs(const DatasetStage& dataset,
                                      const FieldPlaces& places) {
  std::vector<StageInput> inputs;
  if (dataset.has_synthesize() && dataset.synthesize().has_ranges()) {
    inputs.push_back({"ranges",
                      &dataset.synthesize().ranges(),
                      places.Nested("synthesize").Nested("ranges"),
                      {"text"}});
  }
  if (!dataset.has_preprocess()) return inputs;
  const FieldPlaces preprocess = places.Nested("preprocess");
  inputs.push_back({"data",
                    &dataset.preprocess().data(),
                    preprocess.Nested("data"),
                    {"data"}});
  if (dataset.preprocess().has_ranges()) {
    inputs.push_back({"ranges",
                      &dataset.preprocess().ranges(),
                      preprocess.Nested("ranges"),
                      {"text"}});
  }
  return inputs;
}

std::vector<StageInput> FreezeInputs(const FreezeStage& freeze,
                                     const FieldPlaces& places) {
  if (freeze.has_graph()) {
    return {{"graph", &freeze.graph().graph(),
             places.Nested("graph").Nested("graph"), GraphRoles()}};
  }
  return {{"saved_model",
           &freeze.saved_model(),
           places.Nested("saved_model"),
           {"graph"}}};
}

std::vector<StageInput> TransformInputs(const TransformStage& transform,
                                        const FieldPlaces& places) {
  std::vector<StageInput> inputs = {
      {"graph", &transform.graph(), places.Nested("graph"), GraphRoles()}};
  for (int i = 0; i < transform.file_size(); ++i) {
    inputs.push_back({transform.file(i).name(),
                      &transform.file(i).from(),
                      places.Nested("file", i).Nested("from"),
                      {}});
  }
  return inputs;
}

std::vector<StageInput> QuantizeInputs(const QuantizeStage& quantize,
                                       const FieldPlaces& places) {
  std::vector<StageInput> inputs = {
      {"graph", &quantize.graph(), places.Nested("graph"), GraphRoles()}};
  if (quantize.has_calibrated()) {
    inputs.push_back({"ranges",
                      &quantize.calibrated().ranges(),
                      places.Nested("calibrated").Nested("ranges"),
                      {"ranges"}});
  }
  return inputs;
}

std::vector<StageInput> ConvertInputs(const ConvertStage& convert,
                                      const FieldPlaces& places) {
  std::vector<StageInput> inputs = {{"saved_model",
                                     &convert.saved_model(),
                                     places.Nested("saved_model"),
                                     {"graph"}}};
  if (convert.insert_qdq().has_calibrated()) {
    inputs.push_back(
        {"ranges",
         &convert.insert_qdq().calibrated().ranges(),
         places.Nested("insert_qdq").Nested("calibrated").Nested("ranges"),
         {"ranges"}});
  }
  return inputs;
}

std::vector<StageInput> BenchmarkInputs(const BenchmarkStage& benchmark,
                                        const FieldPlaces& places) {
  std::vector<StageInput> inputs;
  for (int i = 0; i < benchmark.graph_size(); ++i) {
    inputs.push_back({"graph", &benchmark.graph(i), places.Nested("graph", i),
                      GraphRoles()});
  }
  return inputs;
}

}  // namespace

std::string StageKind(const Stage& stage) {
  const FieldDescriptor* const field =
      stage.GetReflection()->GetOneofFieldDescriptor(stage, Kinds());
  return field == nullptr ? "" : std::string(field->name());
}

std::vector<std::string> StageKinds() {
  std::vector<std::string> kinds;
  for (int i = 0; i < Kinds()->field_count(); ++i) {
    kinds.emplace_back(Kinds()->field(i)->name());
  }
  return kinds;
}

bool MakesGraph(const Stage& stage) {
  return stage.has_freeze() || stage.has_transform() || stage.has_quantize() ||
         stage.has_convert();
}

const Verify* VerifyOf(const Stage& stage) {
  if (stage.has_evaluate()) return &stage.evaluate().verify();
  return stage.has_verify() ? &stage.verify() : nullptr;
}

FieldPlaces VerifyPlaces(const Stage& stage, const FieldPlaces& places) {
  return stage.has_evaluate() ? places.Nested("evaluate").Nested("verify")
                              : places.Nested("verify");
}

std::vector<StageOutput> OutputsOf(const Stage& stage,
                                   const FieldPlaces& places) {
  if (StageKind(stage).empty()) return {};
  const FieldPlaces kind = places.Nested(StageKind(stage));
  OutputList outputs(stage, kind);
  switch (stage.kind_case()) {
    case Stage::kDataset:
      outputs.Add("data", stage.dataset().output(), DataEnding(stage.dataset()),
                  "output");
      break;
    case Stage::kSummarize:
      outputs.Add("text", stage.summarize().output(), ".txt", "output");
      break;
    case Stage::kFreeze:
      outputs.Add("graph", stage.freeze().output(), ".pb", "output");
      break;
    case Stage::kTransform:
      outputs.Add("graph", stage.transform().output(), ".pb", "output");
      break;
    case Stage::kQuantize:
      outputs.Add("graph", stage.quantize().output(), ".pb", "output");
      break;
    case Stage::kCalibrate:
      return CalibrateOutputs(stage, kind);
    case Stage::kBenchmark:
      outputs.Add("result", "", ".benchmark.pb", "graph");
      if (!stage.benchmark().published_name().empty()) {
        outputs.Add("text", "", ".txt", "published_name");
      }
      break;
    case Stage::kConvert: {
      const ConvertStage& convert = stage.convert();
      outputs.Add("graph", convert.output(), "_saved_model", "output");
      if (!convert.extracted_graph_def().empty()) {
        outputs.Add("extracted_graph_def", convert.extracted_graph_def(), "",
                    "extracted_graph_def");
      }
      if (!convert.converted_graph_def().empty()) {
        outputs.Add("converted_graph_def", convert.converted_graph_def(), "",
                    "converted_graph_def");
      }
      break;
    }
    default:
      break;
  }
  return outputs.Take();
}

std::vector<StageInput> InputsOf(const Stage& stage,
                                 const FieldPlaces& places) {
  if (StageKind(stage).empty()) return {};
  const FieldPlaces kind = places.Nested(StageKind(stage));
  switch (stage.kind_case()) {
    case Stage::kDataset:
      return DatasetInputs(stage.dataset(), kind);
    case Stage::kSummarize:
      return {{"graph", &stage.summarize().graph(), kind.Nested("graph"),
               GraphRoles()}};
    case Stage::kFreeze:
      return FreezeInputs(stage.freeze(), kind);
    case Stage::kTransform:
      return TransformInputs(stage.transform(), kind);
    case Stage::kQuantize:
      return QuantizeInputs(stage.quantize(), kind);
    case Stage::kCalibrate:
      return {{"graph", &stage.calibrate().graph(), kind.Nested("graph"),
               GraphRoles()}};
    case Stage::kEvaluate:
      return {{"graph", &stage.evaluate().graph(), kind.Nested("graph"),
               GraphRoles()}};
    case Stage::kBenchmark:
      return BenchmarkInputs(stage.benchmark(), kind);
    case Stage::kConvert:
      return ConvertInputs(stage.convert(), kind);
    case Stage::kCompare:
      return {{"graph", &stage.compare().graph(), kind.Nested("graph"),
               GraphRoles()},
              {"baseline", &stage.compare().baseline(), kind.Nested("baseline"),
               GraphRoles()}};
    default:
      return {};
  }
}

std::vector<std::pair<std::string, std::string>> PathsOf(const Stage& stage) {
  std::vector<std::pair<std::string, std::string>> paths;
  if (stage.freeze().has_graph()) {
    paths.emplace_back("checkpoint", stage.freeze().graph().checkpoint());
  }
  for (const std::string& plugin : stage.transform().plugin()) {
    paths.emplace_back("plugin", plugin);
  }
  return paths;
}

const Records* RecordsOf(const Stage& stage) {
  switch (stage.kind_case()) {
    case Stage::kCalibrate:
      return &stage.calibrate().on();
    case Stage::kBenchmark:
      return &stage.benchmark().on();
    case Stage::kCompare:
      return &stage.compare().on();
    default:
      return nullptr;
  }
}

FieldPlaces RecordsPlaces(const Stage& stage, const FieldPlaces& places) {
  return places.Nested(StageKind(stage)).Nested("on");
}

}  // namespace requant
