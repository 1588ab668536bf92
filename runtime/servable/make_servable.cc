#include "runtime/servable/make_servable.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/files/file.h"
#include "base/json.h"
#include "base/message/message_json.h"
#include "base/message_text.h"
#include "base/program/isolation.h"
#include "base/status_macros.h"
#include "base/text/printable.h"
#include "graph/constant_store.h"
#include "graph/freeze/freeze.h"
#include "graph/graph_io.h"
#include "graph/saved_model/saved_model_file.h"
#include "ranges/range_table.h"
#include "runtime/calibration/calibrate.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/datasets/formats/source_format.h"
#include "runtime/servable/tensorflow_versions.h"
#include "transforms/layers/coverage.h"
#include "transforms/pipeline.h"
#include "transforms/preparation/prepare_graph.h"
#include "transforms/registry.h"

namespace requant {
namespace {

using tensorflow::GraphDef;

bool IsGraphFile(const std::string& target) {
  return absl::EndsWith(target, ".pb") || absl::EndsWith(target, ".pbtxt");
}

// Refuses to replace a file of the model or of the dataset.
absl::Status CheckGraphFile(const ServableJob& job) {
  ModelFiles files;
  REQUANT_ASSIGN_OR_RETURN(files.saved_model, FindSavedModel(job.saved_model));
  std::vector<std::string> inputs = FilesOf(files);
  const std::vector<std::string> data = FilesOf(job.settings.dataset());
  inputs.insert(inputs.end(), data.begin(), data.end());
  for (const auto& [signature, dataset] : job.others) {
    const std::vector<std::string> more = FilesOf(dataset);
    inputs.insert(inputs.end(), more.begin(), more.end());
  }
  if (!job.dataset.empty()) inputs.push_back(job.dataset);
  REQUANT_RETURN_IF_ERROR(CheckDistinct(inputs, {job.target}));
  return CheckWritable(job.target);
}

// Fills in what the signature says about the dataset.
absl::Status CompleteDataset(const FrozenModel& model,
                             const std::string& signature,
                             const std::string& name, DatasetSpec* dataset) {
  if (!dataset->prediction().tensor().empty()) return absl::OkStatus();
  const auto& outputs = model.signatures.at(signature).outputs();
  if (outputs.size() == 1) {
    dataset->mutable_prediction()->set_tensor(outputs.begin()->first);
    return absl::OkStatus();
  }
  std::vector<std::string> keys;
  for (const auto& [key, info] : outputs) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  return absl::InvalidArgumentError(absl::StrCat(
      name, " names no prediction, and the signature \"", signature,
      "\" has several outputs: add prediction { tensor: \"...\" } with one of ",
      absl::StrJoin(keys, ", ")));
}

// Returns the records of `signature`, of `others`, and of further signatures
// whose inputs the first records have. Several that are equal count once.
absl::StatusOr<std::vector<SignatureRecords>> RecordsOf(
    const FrozenModel& model, const std::string& signature,
    const std::map<std::string, DatasetSpec>& others,
    const CalibrateJob& settings) {
  const DatasetSpec& dataset = settings.dataset();
  std::vector<SignatureRecords> records;
  REQUANT_ASSIGN_OR_RETURN(
      records.emplace_back(),
      DivideRecords(signature, dataset, settings.max_records(),
                    settings.max_bad_records()));
  for (auto [key, own] : others) {
    REQUANT_RETURN_IF_ERROR(CompleteDataset(
        model, key, absl::StrCat("the declaration for ", key), &own));
    REQUANT_ASSIGN_OR_RETURN(records.emplace_back(),
                             DivideRecords(key, own, settings.max_records(),
                                           settings.max_bad_records()));
  }
  for (const auto& other : model.signatures) {
    const bool known = absl::c_any_of(records, [&](const auto& part) {
      return SameMessage(model.signatures.at(part.signature), other.second);
    });
    const auto own = DatasetForSignature(model, other.first, dataset);
    if (known || !own.has_value()) continue;
    SignatureRecords part = records.front();
    part.signature = other.first;
    part.dataset = *own;
    records.push_back(std::move(part));
  }
  return records;
}

// Smaller constants stay in the graph: shapes may depend on them.
constexpr int64_t kLeastStoredBytes = int64_t{1} << 16;

// Makes an estimator's feature columns direct table lookups.
absl::Status Simplify(FrozenModel* model, std::vector<std::string>* notes) {
  REQUANT_ASSIGN_OR_RETURN(const TransformRegistry* registry,
                           TransformRegistry::Get());
  int columns = 0;
  PipelineOptions options;
  options.outputs = model->frozen.outputs;
  options.on_note = [&columns](std::string_view note) {
    columns += absl::StrContains(note, " column \"");
  };
  options.on_warning = [](std::string_view) {};
  SetActivity(absl::StrCat("simplifying ", model->directory));
  REQUANT_RETURN_IF_ERROR(
      RunPipeline({{"fuse_feature_columns",
                    {{"fuse", {"false"}}, {"ignore_errors", {"true"}}}}},
                  *registry, options, &model->frozen.graph));
  if (columns > 0) {
    notes->push_back(absl::StrCat("simplifies ",
                                  CountText(columns, "feature column"),
                                  " to lookups and arithmetic"));
  }
  return absl::OkStatus();
}

// Nodes without ranges were excluded, but not by the user.
void SayNotCalibrated(const std::vector<std::string>& nodes,
                      std::vector<std::string>* notes,
                      std::vector<CountedProduct>* products) {
  constexpr char kWhy[] = "no signature that was calibrated computes it";
  for (const std::string& node : nodes) {
    for (std::string& note : *notes) {
      absl::StrReplaceAll(
          {{absl::StrCat("\"", node, "\" in float: it is excluded"),
            absl::StrCat("\"", node, "\" in float: ", kWhy)}},
          &note);
    }
    for (CountedProduct& product : *products) {
      if (product.name == node) product.in_float = kWhy;
    }
  }
}

// Calibrates and quantizes the frozen graph of `model` into `graph`, and sets
// the work of `products`.
absl::Status Quantize(const FrozenModel& model, const ServableJob& job,
                      const QuantizeParameters& parameters,
                      const std::vector<SignatureRecords>& records,
                      std::vector<std::string>* notes,
                      std::vector<CountedProduct>* products, GraphDef* graph) {
  REQUANT_ASSIGN_OR_RETURN(const TransformRegistry* registry,
                           TransformRegistry::Get());
  RangeTable table;
  for (const SignatureRecords& part : records) {
    FirstBatchShapes shapes;
    shapes.wanted = UnknownOperands(*products);
    REQUANT_ASSIGN_OR_RETURN(
        const RangeTable observed,
        CalibrateSignature(model, part, job.settings, &shapes));
    table.Merge(observed);
    SetWork(shapes.observed, shapes.operands, products);
  }
  REQUANT_ASSIGN_OR_RETURN(
      const std::vector<std::string> without_range,
      LayersWithoutRanges(/*prepared=*/nullptr, parameters.layers, table,
                          graph));
  // How many channels vary together may take as much memory as the weights.
  REQUANT_ASSIGN_OR_RETURN(std::string content, SerializeRangeTable(table));
  table = RangeTable();
  REQUANT_ASSIGN_OR_RETURN(const std::string path, MemoryFile(content));
  content = std::string();
  SetActivity(absl::StrCat("quantizing ", model.directory));
  REQUANT_RETURN_IF_ERROR(QuantizeGraph(parameters, {path}, without_range,
                                        *registry, notes, graph));
  SayNotCalibrated(without_range, notes, products);
  MarkLeftInFloat(*graph, products);
  return absl::OkStatus();
}

// Returns the JSON object of what was made; `found` are the members that say
// what was written.
std::string ResultJson(const ServableJob& job, const MadeServable& made,
                       const std::string& coverage, int64_t float_bytes,
                       const JsonMembers& found) {
  JsonMembers members = {{"output", JsonString(job.target)},
                         {"text", JsonString(made.text)},
                         {"coverage", JsonString(coverage)},
                         {"float_bytes", absl::StrCat(float_bytes)}};
  members.insert(members.end(), found.begin(), found.end());
  return JsonObject(members) + "\n";
}

// Returns the notes, of which those on single tables are summed up if there
// are many, and without those on inputs that no table could give.
std::string NotesText(const std::vector<std::string>& notes) {
  constexpr int kManyTables = 3;
  const int tables = absl::c_count_if(notes, [](const std::string& note) {
    return absl::StartsWith(note, "moves \"");
  });
  std::string text;
  for (const std::string& note : notes) {
    const bool is_table = absl::StartsWith(note, "moves \"");
    if (is_table && tables > kManyTables) continue;
    if (absl::EndsWith(note, "no rows gathered from a constant reach it")) {
      continue;
    }
    // What would quantize the table is in nobody's graph.
    const size_t reason = note.find("\": ");
    absl::StrAppend(&text,
                    absl::StartsWith(note, "leaves \"") && reason != note.npos
                        ? absl::StrCat("leaves an embedding table in float",
                                       note.substr(reason + 1))
                        : note,
                    "\n");
  }
  if (tables > kManyTables) {
    absl::StrAppend(&text, "quantizes ", tables, " embedding tables\n");
  }
  return text;
}

// Makes made->graph of made->model, and describes what was done. Returns how
// much of the work is in int8.
absl::StatusOr<std::string> MakeGraph(
    const ServableJob& job, const std::vector<SignatureRecords>& records,
    MadeServable* made) {
  FrozenModel& model = *made->model;
  std::vector<std::string> notes;
  REQUANT_RETURN_IF_ERROR(Simplify(&model, &notes));
  QuantizeParameters parameters = job.parameters;
  parameters.layers.outputs = model.frozen.outputs;
  REQUANT_ASSIGN_OR_RETURN(
      PreparedGraph prepared,
      PrepareGraph(parameters.layers, /*may_change=*/true,
                   TransformRegistry::Get, &model.frozen.graph));
  if (prepared.nothing.empty()) {
    made->graph = model.frozen.graph;
    REQUANT_RETURN_IF_ERROR(Quantize(model, job, parameters, records, &notes,
                                     &prepared.products, &made->graph));
    if (QuantizedMatMuls(made->graph) == 0) {
      prepared.nothing = "the outputs need no MatMul with constant weights";
    }
  }
  made->text = NotesText(notes);
  if (!prepared.nothing.empty()) {
    // What was simplified and prepared is not the model as it was.
    made->graph.Clear();
    ForgetAllBut(made->graph);
    REQUANT_ASSIGN_OR_RETURN(FrozenModel again,
                             FreezeSignatures(job.saved_model, job.tags));
    made->graph = std::move(again.frozen.graph);
    made->text = absl::StrCat("nothing pays here, so the model stays float: ",
                              Printable(prepared.nothing), "\n");
  }
  std::string coverage = CoverageText(prepared.products);
  absl::StrAppend(&made->text, Printable(coverage), "\n");
  StripDefaultValues(&made->graph);
  if (!job.tensorflow.empty()) {
    REQUANT_RETURN_IF_ERROR(CheckTensorFlow(job.tensorflow, made->graph));
  }
  model.frozen.graph.Clear();
  ForgetAllBut(made->graph);
  return coverage;
}

// Puts all constants into the graph, which is for a file.
absl::Status CompleteGraph(const std::string& target, int64_t bytes_before,
                           MadeServable* made) {
  const int64_t bytes = FilledBytes(made->graph);
  if (bytes > kMaxGraphBytes) {
    return absl::OutOfRangeError(absl::StrCat(
        "the graph would take ", bytes,
        " bytes, and a protocol buffer holds at most 2 GB: give --output a "
        "folder, for a SavedModel with variables"));
  }
  for (tensorflow::NodeDef& node : *made->graph.mutable_node()) FillIn(&node);
  absl::StrAppendFormat(&made->text, "%s: a graph of %.3f MB, before %.3f MB\n",
                        Printable(target), bytes / 1e6, bytes_before / 1e6);
  return absl::OkStatus();
}

}  // namespace

absl::Status MadeServable::Write(const std::string& target) const {
  if (writer != nullptr) return writer->Commit();
  return WriteGraph(graph, target,
                    absl::EndsWith(target, ".pbtxt") ? GraphFormat::kText
                                                     : GraphFormat::kBinary);
}

int64_t NeededMemory(const std::string& saved_model, bool keeps_moments) {
  // Weights in variables are in memory once, and again in the result; moments
  // of layers' inputs take no more than these. A graph is copied by TensorFlow
  // when it is loaded.
  const int64_t copies_of_variables = keeps_moments ? 3 : 2;
  constexpr int64_t kCopiesOfGraph = 10;
  constexpr int64_t kTensorFlowItself = 300'000'000;
  const auto directory = FindSavedModel(saved_model);
  if (!directory.ok()) return 0;
  ModelFiles files;
  files.saved_model = *directory;
  int64_t bytes = kTensorFlowItself;
  for (const std::string& file : FilesOf(files)) {
    struct stat info;
    if (stat(file.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    const bool is_variables =
        absl::StartsWith(file, absl::StrCat(*directory, "/variables/"));
    const bool is_graph =
        absl::StartsWith(file, absl::StrCat(*directory, "/saved_model.pb"));
    bytes += info.st_size * (is_variables ? copies_of_variables
                             : is_graph   ? kCopiesOfGraph
                                          : 0);
  }
  return bytes;
}

absl::StatusOr<MadeServable> MakeServable(const ServableJob& job) {
  if (IsGraphFile(job.target)) REQUANT_RETURN_IF_ERROR(CheckGraphFile(job));
  const ConstantStore store(kLeastStoredBytes);
  MadeServable made;
  made.model = std::make_unique<FrozenModel>();
  FrozenModel& model = *made.model;
  REQUANT_ASSIGN_OR_RETURN(model, FreezeSignatures(job.saved_model, job.tags));
  REQUANT_ASSIGN_OR_RETURN(const std::string signature,
                           ChooseSignature(model, job.signature));
  if (job.others.count(signature) > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "there are two sets of records for the signature \"", signature,
        "\": --data=", signature, "=FILES says for which one records are"));
  }
  CalibrateJob settings = job.settings;
  REQUANT_RETURN_IF_ERROR(CompleteDataset(model, signature, job.dataset,
                                          settings.mutable_dataset()));
  if (!IsGraphFile(job.target)) {
    REQUANT_ASSIGN_OR_RETURN(
        made.writer,
        ServableWriter::Open(model, {job.target, job.overwrite, job.dataset,
                                     job.parameters.target}));
  }
  REQUANT_ASSIGN_OR_RETURN(const std::vector<SignatureRecords> records,
                           RecordsOf(model, signature, job.others, settings));
  const int64_t bytes_before = FilledBytes(model.frozen.graph);
  REQUANT_ASSIGN_OR_RETURN(const std::string coverage,
                           MakeGraph(job, records, &made));
  JsonMembers members;
  if (made.writer == nullptr) {
    REQUANT_RETURN_IF_ERROR(CompleteGraph(job.target, bytes_before, &made));
    members = {{"bytes", absl::StrCat(made.graph.ByteSizeLong())},
               {"signatures", "[]"}};
  } else {
    REQUANT_RETURN_IF_ERROR(
        made.writer->Write(std::move(made.graph), records, settings));
    absl::StrAppend(&made.text, made.writer->Text());
    members = made.writer->Members();
  }
  made.json = ResultJson(job, made, coverage, bytes_before, members);
  return made;
}

}  // namespace requant
