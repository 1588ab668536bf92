// quantize_model (requant quantize) turns a frozen float graph into the final
// eight-bit one in one command.

#include <gflags/gflags.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/process/machine.h"
#include "base/process/tensorflow_child.h"
#include "base/program/flags.h"
#include "base/program/isolation.h"
#include "base/status_macros.h"
#include "base/text/printable.h"
#include "graph/diff.h"
#include "graph/graph_io.h"
#include "graph/saved_model/saved_model_file.h"
#include "ranges/range_choice.h"
#include "ranges/range_table.h"
#include "runtime/calibration/calibrate.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/datasets/dataset_spec.h"
#include "runtime/datasets/formats/source_format.h"
#include "runtime/datasets/guess_dataset.h"
#include "runtime/quantization/quantize.h"
#include "runtime/servable/check_graph.h"
#include "runtime/servable/make_servable.h"
#include "runtime/servable/signature_files.h"
#include "runtime/servable/tensorflow_versions.h"
#include "runtime/session/job.pb.h"
#include "runtime/session/job_flags.h"
#include "runtime/session/model.h"
#include "runtime/session/model_signature.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "transforms/layers/coverage.h"
#include "transforms/layers/float_layer.h"
#include "transforms/layers/quantized_weights.h"
#include "transforms/pipeline_parser.h"
#include "transforms/preparation/prepare_graph.h"
#include "transforms/registry.h"

DEFINE_string(graph, "",
              "the frozen float graph: a .pb or .pbtxt file, such as requant "
              "freeze writes");
DEFINE_string(saved_model, "",
              "instead of --graph, a SavedModel: its folder, or one that has "
              "it in a version (1) or in saved_model");
DEFINE_string(saved_model_tags, "",
              "which graph of the SavedModel, tags separated by commas; "
              "empty: the only one, or the one tagged serve");
DEFINE_string(signature, "",
              "the SavedModel's signature that the records are for; empty: "
              "serving_default, or the only one");
DEFINE_string(output, "",
              "the eight-bit graph to write; with --saved_model a new folder, "
              "for a SavedModel with the same signatures, or a file whose name "
              "ends in .pb");
DEFINE_bool(overwrite, false, "replace a SavedModel that is at --output");
DEFINE_string(dataset, "",
              "a declaration (.textproto) of records, inputs and the "
              "prediction, such as workflows/wide_deep/preprocessed.textproto; "
              "NAME=FILE: for the SavedModel's signature NAME");
DEFINE_string(data, "",
              "calibration records: files or globs, separated by commas, to "
              "read instead of those that the declaration names; without "
              "--dataset: CSV, JSON lines, .npz or TFRecord files with what "
              "the inputs of the SavedModel are called that was frozen; "
              "NAME=FILES: for the SavedModel's signature NAME, may be given "
              "several times");
DEFINE_int64(max_records, 10000,
             "calibrate on this many of the first records, and compare on "
             "others after them; 0: all; unless set, at least a fifth of the "
             "records is held back to compare on");
DEFINE_int64(batch_size, 1024, "records per run of the graph");
DEFINE_int64(max_bad_records, 0,
             "skip up to this many unreadable records, and name the first ten");
DEFINE_int64(moment_records, 4096,
             "of how many of the first records it is kept how the channels of "
             "a layer's input vary together, by which weights are rounded; 0: "
             "none, weights are rounded to the nearest");
DEFINE_string(target, "any",
              "the CPU that the model is for: any (safe everywhere), avx2, "
              "avx512, vnni, avx_vnni, amx, or host (what this machine is; "
              "requant doctor says which)");
DEFINE_string(
    ops, "",
    "portable: any process of TensorFlow 2.17 or later runs the graph; "
    "legacy: TensorFlow's older int8 ops, for which oneDNN must be "
    "turned on; empty: portable for a SavedModel, else legacy");
DEFINE_string(target_tensorflow, "",
              "the version of TensorFlow that is to run the model, such as "
              "2.15: only operations and attributes that it has are used, "
              "which before 2.17 means --ops=legacy; empty: 2.21");
DEFINE_string(method, "mse",
              "how ranges are chosen: minmax, percentile or mse");
DEFINE_double(value_percentile, 99.99,
              "with --method=percentile: this many percent of the values lie "
              "below the maximum, and as many above the minimum");
DEFINE_string(outputs, "",
              "outputs of the graph to keep beside the declaration's "
              "prediction, separated by commas, may be given several times");
DEFINE_string(excluded_nodes, "",
              "names of MatMul nodes that stay float, separated by commas, may "
              "be given several times");
DEFINE_string(excluded_ops, "",
              "types of nodes that stay float, separated by commas, may be "
              "given several times");
DEFINE_string(ranges, "",
              "instead of calibrating, take these RangeTable files of requant "
              "calibrate, separated by commas or given several times");
DEFINE_string(ranges_output, "",
              "also write the calibration's RangeTable file, for --ranges");
DEFINE_string(format, "text",
              "what is printed: text, or json of --saved_model");

namespace requant {
namespace {

using tensorflow::GraphDef;

ProgramHelp Help() {
  ProgramHelp help;
  help.name = ProgramName();
  help.summary =
      "calibrates a frozen float graph and computes its MatMul layers and its "
      "embedding tables in eight bits, in one go. Prints a table of the "
      "layers, how much of the work runs in int8, what was left in float and "
      "why, and the command that verifies the result. A graph without such "
      "layers is written as it is.";
  help.usage =
      "$0 --graph=fp32.pb --dataset=data.textproto "
      "--data=train.tfrecords --output=int8.pb\n"
      "$0 --saved_model=my_model --dataset=data.textproto "
      "--data=train.csv --output=int8/1\n"
      "$0 --saved_model=my_model --data=classify=a.csv --data=encode=b.npz "
      "--output=int8/1\n"
      "$0 --graph=fp32.pb --dataset=data.textproto "
      "--target=host --ranges_output=model.ranges --output=int8.pb\n"
      "$0 --graph=fp32.pb --data=train.csv --output=int8.pb\n"
      "$0 --graph=fp32.pb --ranges=model.ranges "
      "--outputs=probabilities --target=vnni --output=int8_vnni.pb";
  help.flag_files = {__FILE__};
  help.aliases = {{"records", "max_records"}, {"out", "output"}};
  help.footer =
      "Calibrate on records like those of production, verify on others.\n"
      "The graph runs in a process of its own. How it is quantized is in "
      "docs/quantization.md.\n"
      "Exit code: 0 done, 1 failed (nothing was written), 2 usage.";
  help.repeatable_flags = {"dataset",        "data",         "outputs",
                           "excluded_nodes", "excluded_ops", "ranges"};
  return help;
}

// Returns the target for this machine. The cap that this process runs under
// counts, because the second try after an illegal instruction has another.
std::string HostTarget() {
  const char* cap = std::getenv("ONEDNN_MAX_CPU_ISA");
  return QuantizationTarget(ProbeCpu(), cap == nullptr ? "" : cap);
}

std::string Target() {
  return FLAGS_target == "host" ? HostTarget() : FLAGS_target;
}

// Returns whether this machine computes what the model's machines do.
bool IsForThisMachine() {
  return *WeightRuleOf(Target()) == WeightRule::kPairsFitInt16 ||
         *WeightRuleOf(HostTarget()) == WeightRule::kAnyCode;
}

std::string Ops() {
  if (!FLAGS_ops.empty()) return FLAGS_ops;
  if (FLAGS_saved_model.empty()) return "legacy";
  if (FLAGS_target_tensorflow.empty()) return "portable";
  return OpsForTensorFlow(FLAGS_target_tensorflow, "").value_or("");
}

// Returns what is wrong with the flags about ranges, or "".
std::string RangesUsageError() {
  const auto method = ParseRangeMethod(FLAGS_method);
  if (!method.ok()) return std::string(method.status().message());
  if (!(FLAGS_value_percentile > 50 && FLAGS_value_percentile <= 100)) {
    return "--value_percentile is above 50 and at most 100";
  }
  if (FLAGS_ranges.empty()) {
    return FLAGS_dataset.empty() && FLAGS_data.empty()
               ? "--dataset is missing, or --data for a graph that was frozen "
                 "from a SavedModel"
               : "";
  }
  if (!FLAGS_ranges_output.empty()) {
    return "--ranges and --ranges_output exclude each other: with --ranges "
           "nothing is calibrated";
  }
  if (FLAGS_dataset.empty() && ParseNameList(FLAGS_outputs).empty()) {
    return "--ranges needs --dataset, whose prediction is the graph's output, "
           "or --outputs";
  }
  return "";
}

// Returns what is wrong with the flags, or "".
std::string UsageError() {
  if (FLAGS_graph.empty() && FLAGS_saved_model.empty()) {
    return "--graph or --saved_model is missing";
  }
  if (!FLAGS_saved_model.empty()) {
    for (const char* flag : {"graph", "ranges", "ranges_output", "outputs"}) {
      if (!gflags::GetCommandLineFlagInfoOrDie(flag).is_default) {
        return absl::StrCat("--saved_model and --", flag,
                            " exclude each other");
      }
    }
  }
  if (FLAGS_output.empty()) return "--output is missing";
  if (FLAGS_format != "text" &&
      (FLAGS_format != "json" || FLAGS_saved_model.empty())) {
    return "--format is text, or json with --saved_model";
  }
  if (!FLAGS_target_tensorflow.empty()) {
    const auto ops = OpsForTensorFlow(FLAGS_target_tensorflow, Ops());
    if (!ops.ok()) return std::string(ops.status().message());
  }
  if (Ops() != "portable" && Ops() != "legacy") {
    return "--ops is portable or legacy";
  }
  if (FLAGS_batch_size < 1) return "--batch_size must be at least 1";
  if (FLAGS_max_records < 0) return "--max_records must be at least 0";
  if (FLAGS_max_bad_records < 0) return "--max_bad_records must be at least 0";
  if (FLAGS_moment_records < 0) return "--moment_records must be at least 0";
  if (FLAGS_target != "host") {
    const auto rule = WeightRuleOf(FLAGS_target);
    if (!rule.ok()) {
      return absl::StrCat(rule.status().message(),
                          ", or host for this machine");
    }
  }
  return RangesUsageError();
}

ModelSpec ModelFromFlags(const std::string& signature) {
  return FLAGS_saved_model.empty()
             ? MakeModelSpec(FLAGS_graph, "", "")
             : MakeModelSpec(FLAGS_saved_model, FLAGS_saved_model_tags,
                             signature);
}

absl::StatusOr<DatasetSpec> ReadDeclaration(const SignatureFiles& files) {
  const std::vector<std::string> outputs = ParseNameList(FLAGS_outputs);
  if (files.declaration.empty()) {
    GuessOptions options;
    if (!outputs.empty()) options.output = outputs.front();
    options.output_flag = "--outputs";
    return GuessJobDataset({ModelFromFlags(files.signature)}, files.data,
                           options);
  }
  REQUANT_ASSIGN_OR_RETURN(DatasetSpec dataset,
                           ReadDatasetSpec(files.declaration, files.data));
  if (dataset.prediction().tensor().empty() && FLAGS_saved_model.empty() &&
      outputs.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        files.declaration,
        " names no prediction, which is the graph's output: add prediction { "
        "tensor: \"...\" } or give --outputs"));
  }
  return dataset;
}

// Returns the calibration. With --ranges only its model and dataset matter, and
// the dataset is optional.
absl::StatusOr<CalibrateJob> JobFromFlags(const SignatureFiles& files) {
  CalibrateJob job;
  if (!files.declaration.empty() || FLAGS_ranges.empty()) {
    REQUANT_ASSIGN_OR_RETURN(*job.mutable_dataset(), ReadDeclaration(files));
  }
  if (FLAGS_saved_model.empty()) *job.mutable_model() = ModelFromFlags("");
  job.set_batch_size(FLAGS_batch_size);
  job.set_max_records(FLAGS_max_records);
  job.set_max_bad_records(FLAGS_max_bad_records);
  job.set_moment_records(FLAGS_moment_records);
  return job;
}

using RegistryFuture = std::shared_future<absl::StatusOr<TransformRegistry*>>;

// A graph on its way to eight bits.
struct Quantization {
  CalibrateJob job;
  RegistryFuture registry;
  GraphDef graph;
  // The size of the graph as it was.
  GraphSize before;
  // Names of nodes.
  std::vector<std::string> outputs;
  // Products that are not to be exposed, beside those that the user excludes.
  std::vector<std::string> unexposed;
  PreparedGraph prepared;
  // They tell the work of each product.
  FirstBatchShapes shapes;
  // 0 with --ranges.
  int64_t calibration_records = 0;
  // The content of the file --ranges_output, if it was asked for.
  std::string ranges;
  // Descriptions for users of what was done: the table of layers.
  std::vector<std::string> notes;
  // The graph's content, and lines on how it compares with the float graph.
  std::string content;
  std::string findings;
};

FloatLayerOptions LayerOptions(const Quantization& quantization) {
  FloatLayerOptions options = {quantization.outputs,
                               ParseNameList(FLAGS_excluded_ops),
                               ParseNameList(FLAGS_excluded_nodes)};
  const std::vector<std::string>& more = quantization.unexposed;
  options.excluded_nodes.insert(options.excluded_nodes.end(), more.begin(),
                                more.end());
  return options;
}

QuantizeParameters Parameters(FloatLayerOptions layers) {
  return {Target(), Ops(), FLAGS_method, FLAGS_value_percentile,
          std::move(layers)};
}

absl::Status Prepare(bool may_change, Quantization* quantization,
                     GraphDef* graph) {
  const auto registry = [&] { return quantization->registry.get(); };
  REQUANT_ASSIGN_OR_RETURN(
      quantization->prepared,
      PrepareGraph(LayerOptions(*quantization), may_change, registry, graph));
  return absl::OkStatus();
}

// Takes the graph and its outputs from the model, and prepares the graph that
// goes into the session. Fails, with `nothing` set, if it stays in float.
absl::Status Take(const Model& model, GraphDef* graph,
                  Quantization* quantization) {
  std::vector<std::string> names = ParseNameList(FLAGS_outputs);
  const PredictionSpec& prediction = quantization->job.dataset().prediction();
  if (!prediction.tensor().empty()) {
    names.insert(names.begin(), prediction.tensor());
  }
  REQUANT_ASSIGN_OR_RETURN(quantization->outputs, OutputNodes(model, names));
  quantization->before = SizeOf(*graph);
  // A SavedModel's session has the graph of its file.
  const bool may_change = SavedModelDirectory(model.path()).empty();
  REQUANT_RETURN_IF_ERROR(RunError(Prepare(may_change, quantization, graph),
                                   model.path(), "cannot be quantized"));
  quantization->graph = *graph;
  const PreparedGraph& prepared = quantization->prepared;
  if (!prepared.nothing.empty()) {
    return absl::CancelledError(prepared.nothing);
  }
  if (may_change) {
    quantization->shapes.wanted = UnknownOperands(prepared.products);
  }
  return absl::OkStatus();
}

// Loads the model, and calibrates it unless there are ranges. Returns the
// ranges' files. Fails if the graph stays in float.
absl::StatusOr<std::vector<std::string>> LoadAndCalibrate(
    Quantization* quantization) {
  const CalibrateJob& job = quantization->job;
  const auto take = [&](const Model& model, GraphDef* graph) {
    return Take(model, graph, quantization);
  };
  if (!FLAGS_ranges.empty()) {
    SetActivity(absl::StrCat("loading ", job.model().path()));
    REQUANT_RETURN_IF_ERROR(
        Model::Load(job.model(), job.session(), take).status());
    return ParseNameList(FLAGS_ranges);
  }
  const bool keep_ranges = !FLAGS_ranges_output.empty();
  REQUANT_ASSIGN_OR_RETURN(const RangeTable table,
                           ObserveRanges(job, take, /*for_file=*/keep_ranges,
                                         &quantization->shapes));
  for (const auto& [name, entry] : table.entries()) {
    quantization->calibration_records =
        std::max(quantization->calibration_records, entry.records);
  }
  REQUANT_ASSIGN_OR_RETURN(std::string content, SerializeRangeTable(table));
  REQUANT_ASSIGN_OR_RETURN(std::string path, MemoryFile(content));
  if (keep_ranges) quantization->ranges = std::move(content);
  return std::vector<std::string>{std::move(path)};
}

// Quantizes the prepared graph.
absl::Status RunTransforms(const std::vector<std::string>& ranges_files,
                           Quantization* quantization) {
  std::vector<std::string> excluded;
  if (quantization->prepared.changed && !FLAGS_ranges.empty()) {
    REQUANT_ASSIGN_OR_RETURN(const RangeTable table,
                             ReadRangeTables(ranges_files));
    REQUANT_ASSIGN_OR_RETURN(
        excluded, LayersWithoutRanges(&quantization->prepared,
                                      LayerOptions(*quantization), table,
                                      &quantization->graph));
  }
  const absl::StatusOr<TransformRegistry*>& registry =
      quantization->registry.get();
  REQUANT_RETURN_IF_ERROR(registry.status());
  return QuantizeGraph(Parameters(LayerOptions(*quantization)), ranges_files,
                       excluded, **registry, &quantization->notes,
                       &quantization->graph);
}

// Gives the products that were exposed in vain the form that they had: it may
// be faster. Quantizes the graph again.
absl::Status TakeBack(const std::vector<std::string>& ranges_files,
                      Quantization* quantization) {
  const std::vector<std::string> names = ExposedInVain(quantization->graph);
  if (!quantization->prepared.changed || names.empty()) {
    return absl::OkStatus();
  }
  quantization->unexposed = names;
  quantization->notes.clear();
  REQUANT_ASSIGN_OR_RETURN(quantization->graph,
                           ReadGraph(quantization->job.model().path()));
  REQUANT_RETURN_IF_ERROR(
      Prepare(/*may_change=*/true, quantization, &quantization->graph));
  for (CountedProduct& product : quantization->prepared.products) {
    if (std::find(names.begin(), names.end(), product.name) != names.end()) {
      product.in_float = "the ranges do not have it";
    }
  }
  if (!quantization->prepared.nothing.empty()) return absl::OkStatus();
  return RunTransforms(ranges_files, quantization);
}

// Restores the float graph.
absl::Status StayFloat(Quantization* quantization) {
  std::string& why = quantization->prepared.nothing;
  if (why.empty()) why = "the outputs need no MatMul with constant weights";
  quantization->notes.clear();
  if (!FLAGS_ranges_output.empty() && quantization->ranges.empty()) {
    REQUANT_ASSIGN_OR_RETURN(quantization->ranges,
                             SerializeRangeTable(RangeTable()));
  }
  REQUANT_ASSIGN_OR_RETURN(quantization->graph,
                           ReadGraph(quantization->job.model().path()));
  return absl::OkStatus();
}

// Quantizes the graph in this same process: TensorFlow starts once, and neither
// the graph nor the ranges pass through a file. If there is nothing to
// quantize, the graph stays as it is.
absl::Status Quantize(Quantization* quantization) {
  // The registry loads while the graph is calibrated.
  quantization->registry =
      std::async(std::launch::async, TransformRegistry::Get).share();
  const absl::StatusOr<std::vector<std::string>> ranges_files =
      LoadAndCalibrate(quantization);
  if (!quantization->prepared.nothing.empty()) return StayFloat(quantization);
  REQUANT_RETURN_IF_ERROR(ranges_files.status());
  const int64_t matmuls = QuantizedMatMuls(quantization->graph);
  REQUANT_RETURN_IF_ERROR(RunTransforms(*ranges_files, quantization));
  REQUANT_RETURN_IF_ERROR(TakeBack(*ranges_files, quantization));
  if (QuantizedMatMuls(quantization->graph) == matmuls) {
    return StayFloat(quantization);
  }
  std::vector<CountedProduct>& products = quantization->prepared.products;
  MarkLeftInFloat(quantization->graph, &products);
  SetWork(quantization->shapes.observed, quantization->shapes.operands,
          &products);
  return absl::OkStatus();
}

absl::Status Write(const Quantization& quantization) {
  std::vector<FileToWrite> files;
  if (!FLAGS_ranges_output.empty()) {
    files.push_back({FLAGS_ranges_output, [&](int fd) {
                       return WriteAll(fd, quantization.ranges);
                     }});
  }
  files.push_back({FLAGS_output,
                   [&](int fd) { return WriteAll(fd, quantization.content); }});
  return WriteFilesAtomically(files);
}

std::string ResultText(const Quantization& quantization) {
  const GraphSize after = SizeOf(quantization.graph);
  std::string text = absl::StrCat(Printable(FLAGS_output), ": ",
                                  GraphSizeSummary(quantization.before, after));
  if (!FLAGS_dataset.empty() || FLAGS_ranges.empty()) {
    absl::StrAppend(
        &text, "; to verify it, on RECORDS that it was not calibrated on: ",
        EvaluateCommand({FLAGS_output, FLAGS_dataset, FLAGS_graph},
                        quantization.job.dataset().prediction(),
                        ParseNameList(FLAGS_outputs)));
  }
  if (after.bytes > quantization.before.bytes) {
    absl::StrAppend(&text,
                    "\nthe result is larger than the float graph: the nodes, "
                    "ranges and repeated columns of its int8 layers take up "
                    "more than their weights save");
  }
  return text + "\n";
}

void Print(const Quantization& quantization) {
  std::string text;
  if (quantization.calibration_records > 0) {
    absl::StrAppend(&text, "calibrated on ", quantization.calibration_records,
                    " records\n");
  }
  for (const std::string& note : quantization.notes) {
    absl::StrAppend(&text, note, "\n");
  }
  absl::StrAppend(
      &text, Printable(CoverageText(quantization.prepared.products)), "\n");
  if (!quantization.prepared.nothing.empty()) {
    absl::StrAppend(
        &text, "nothing pays here: ", Printable(quantization.prepared.nothing),
        "; ", Printable(FLAGS_output), " is the float graph as it was\n");
  } else {
    absl::StrAppend(&text, quantization.findings, ResultText(quantization));
    // A run prints this at its end, and its record must suit other machines.
    if (!IsPartOfRun()) absl::StrAppend(&text, ServingHint(), "\n");
  }
  std::fputs(text.c_str(), stdout);
}

absl::StatusOr<int> WorkOnSavedModel() {
  ServableJob job;
  job.saved_model = FLAGS_saved_model;
  for (auto& tag : SplitList(FLAGS_saved_model_tags)) job.tags.insert(tag);
  REQUANT_ASSIGN_OR_RETURN(const std::vector<SignatureFiles> files,
                           FilesBySignature(ModelFromFlags(FLAGS_signature),
                                            ParseNameList(FLAGS_dataset),
                                            ParseNameList(FLAGS_data)));
  job.signature = files[0].signature;
  REQUANT_ASSIGN_OR_RETURN(job.settings, JobFromFlags(files[0]));
  for (size_t i = 1; i < files.size(); ++i) {
    REQUANT_ASSIGN_OR_RETURN(job.others[files[i].signature],
                             ReadDeclaration(files[i]));
  }
  job.parameters = Parameters({{},
                               ParseNameList(FLAGS_excluded_ops),
                               ParseNameList(FLAGS_excluded_nodes)});
  job.target = FLAGS_output;
  job.overwrite = FLAGS_overwrite;
  job.dataset = files[0].declaration;
  job.tensorflow = FLAGS_target_tensorflow;
  REQUANT_ASSIGN_OR_RETURN(const MadeServable made, MakeServable(job));
  StartReport();
  REQUANT_RETURN_IF_ERROR(made.Write(FLAGS_output));
  const bool text = FLAGS_format == "text";
  std::fputs((text ? made.text : made.json).c_str(), stdout);
  if (text && !IsPartOfRun() && Ops() == "legacy") {
    std::printf("%s\n", ServingHint().c_str());
  }
  return kExitOk;
}

void SetIsolation(IsolationOptions* isolation) {
  isolation->outputs = {FLAGS_output, FLAGS_ranges_output};
  if (!FLAGS_saved_model.empty()) {
    isolation->graph->needed_bytes =
        NeededMemory(FLAGS_saved_model, FLAGS_moment_records > 0);
  }
  if (FLAGS_ranges.empty()) {
    isolation->progress = {"calibrating", "records", FLAGS_max_records};
  }
}

absl::StatusOr<int> Work() {
  if (!FLAGS_saved_model.empty()) return WorkOnSavedModel();
  Quantization quantization;
  REQUANT_ASSIGN_OR_RETURN(
      quantization.job,
      JobFromFlags({"", FLAGS_dataset, ParseNameList(FLAGS_data)}));
  std::vector<std::string> inputs = FilesOf(quantization.job.dataset());
  inputs.insert(inputs.end(), {FLAGS_graph, FLAGS_dataset});
  for (const auto& path : ParseNameList(FLAGS_ranges)) inputs.push_back(path);
  REQUANT_RETURN_IF_ERROR(
      CheckOutputs(inputs, {FLAGS_output, FLAGS_ranges_output}));
  SignatureRecords records;
  if (FLAGS_ranges.empty()) {
    const bool exact =
        !gflags::GetCommandLineFlagInfoOrDie("max_records").is_default;
    REQUANT_ASSIGN_OR_RETURN(records, HoldBack(exact, &quantization.job));
  }
  REQUANT_RETURN_IF_ERROR(Quantize(&quantization));
  if (!FLAGS_target_tensorflow.empty()) {
    StripDefaultValues(&quantization.graph);
    REQUANT_RETURN_IF_ERROR(
        CheckTensorFlow(FLAGS_target_tensorflow, quantization.graph));
  }
  REQUANT_ASSIGN_OR_RETURN(quantization.content,
                           SerializeGraph(quantization.graph));
  // The runner verifies what is part of a run.
  if (FLAGS_ranges.empty() && quantization.prepared.nothing.empty() &&
      !IsPartOfRun()) {
    quantization.findings =
        IsForThisMachine()
            ? CheckGraph(quantization.content, quantization.job,
                         ParseNameList(FLAGS_outputs), records,
                         {FLAGS_output, FLAGS_dataset, FLAGS_graph})
            : "not compared with the float graph: this CPU sums otherwise "
              "than those that it is for\n";
  }
  StartReport();
  REQUANT_RETURN_IF_ERROR(Write(quantization));
  Print(quantization);
  return kExitOk;
}

}  // namespace
}  // namespace requant

int main(int argc, char** argv) {
  using namespace requant;
  return RunGraphProgram(argc, argv, {Help(), UsageError, SetIsolation, Work});
}
