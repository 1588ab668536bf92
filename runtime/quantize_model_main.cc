// quantize_model (requant quantize) turns a frozen float graph into the final
// eight-bit one in one command.

#include <gflags/gflags.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/message_text.h"
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
#include "runtime/datasets/dataset.pb.h"
#include "runtime/datasets/dataset_spec.h"
#include "runtime/datasets/formats/source_format.h"
#include "runtime/datasets/guess_dataset.h"
#include "runtime/quantization/quantize.h"
#include "runtime/quantization/quantize_frozen.h"
#include "runtime/servable/check_graph.h"
#include "runtime/servable/make_servable.h"
#include "runtime/servable/signature_files.h"
#include "runtime/servable/tensorflow_versions.h"
#include "runtime/session/job.pb.h"
#include "runtime/session/job_flags.h"
#include "runtime/session/model_signature.h"
#include "transforms/layers/coverage.h"
#include "transforms/layers/quantized_weights.h"
#include "transforms/pipeline_parser.h"

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

ProgramHelp Help() {
  ProgramHelp help;
  help.name = ProgramName();
  help.summary =
      "makes an eight-bit SavedModel of a SavedModel, or an eight-bit graph of "
      "a frozen one, in one go: calibrates it, computes its MatMul layers and "
      "its embedding tables in eight bits, and compares the result with the "
      "original. Prints a table of the layers, how much of the work runs in "
      "int8, what was left in float and why, and what the comparison found. A "
      "model without such layers is written as it is.";
  help.usage =
      "$0 --saved_model=my_model --data=train.csv --output=int8/1\n"
      "$0 --graph=fp32.pb --dataset=data.textproto "
      "--data=train.tfrecords --output=int8.pb\n"
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
    options.output_flag =
        FLAGS_saved_model.empty()
            ? "--outputs"
            : "a declaration (--dataset): prediction { tensor: \"NAME\" }";
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

QuantizeParameters ParametersFromFlags() {
  return {Target(),
          Ops(),
          FLAGS_method,
          FLAGS_value_percentile,
          {{},
           ParseNameList(FLAGS_excluded_ops),
           ParseNameList(FLAGS_excluded_nodes)}};
}

absl::Status Write(const QuantizedFrozen& quantized,
                   const std::string& content) {
  std::vector<FileToWrite> files;
  if (!FLAGS_ranges_output.empty()) {
    files.push_back({FLAGS_ranges_output,
                     [&](int fd) { return WriteAll(fd, quantized.ranges); }});
  }
  files.push_back(
      {FLAGS_output, [&](int fd) { return WriteAll(fd, content); }});
  return WriteFilesAtomically(files);
}

std::string ResultText(const FrozenJob& job, const QuantizedFrozen& quantized) {
  const GraphSize after = SizeOf(quantized.graph);
  std::string text = absl::StrCat(Printable(FLAGS_output), ": ",
                                  GraphSizeSummary(quantized.before, after));
  if (!FLAGS_dataset.empty() || FLAGS_ranges.empty()) {
    absl::StrAppend(
        &text, "; to verify it, on RECORDS that it was not calibrated on: ",
        EvaluateCommand({FLAGS_output, FLAGS_dataset, FLAGS_graph},
                        job.calibration.dataset().prediction(), job.outputs));
  }
  if (after.bytes > quantized.before.bytes) {
    absl::StrAppend(&text,
                    "\nthe result is larger than the float graph: the nodes, "
                    "ranges and repeated columns of its int8 layers take up "
                    "more than their weights save");
  }
  return text + "\n";
}

void Print(const FrozenJob& job, const QuantizedFrozen& quantized,
           const std::string& findings) {
  std::string text;
  if (quantized.calibration_records > 0) {
    absl::StrAppend(&text, "calibrated on ",
                    CountText(quantized.calibration_records, "record"), "\n");
  }
  for (const std::string& note : quantized.notes) {
    absl::StrAppend(&text, note, "\n");
  }
  absl::StrAppend(&text, Printable(CoverageText(quantized.prepared.products)),
                  "\n");
  if (!quantized.prepared.nothing.empty()) {
    absl::StrAppend(
        &text, "nothing pays here: ", Printable(quantized.prepared.nothing),
        "; ", Printable(FLAGS_output), " is the float graph as it was\n");
  } else {
    absl::StrAppend(&text, findings, ResultText(job, quantized));
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
  job.parameters = ParametersFromFlags();
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
    std::printf(
        "CPUs without VNNI need TF_ENABLE_ONEDNN_OPTS=1 before TensorFlow "
        "loads; requant check_serving says what a machine lacks\n");
  }
  return kExitOk;
}

void SetIsolation(IsolationOptions* isolation) {
  isolation->outputs = {FLAGS_output, FLAGS_ranges_output};
  if (!FLAGS_saved_model.empty()) {
    // A folder of versions around the model may be new, too.
    isolation->outputs.push_back(
        std::filesystem::absolute(FLAGS_output).parent_path());
    isolation->graph->needed_bytes =
        NeededMemory(FLAGS_saved_model, FLAGS_moment_records > 0);
  }
  if (FLAGS_ranges.empty()) {
    isolation->progress = {"calibrating", "records", FLAGS_max_records};
  }
}

// Returns lines on how the graph with this content compares with the float
// graph.
std::string FindingsText(const FrozenJob& job, const SignatureRecords& records,
                         const std::string& content) {
  if (!IsForThisMachine()) {
    return "not compared with the float graph: this CPU sums otherwise than "
           "those that it is for\n";
  }
  return CheckGraph(content, job.calibration, job.outputs, records,
                    {FLAGS_output, FLAGS_dataset, FLAGS_graph});
}

absl::StatusOr<int> Work() {
  if (!FLAGS_saved_model.empty()) return WorkOnSavedModel();
  FrozenJob job;
  REQUANT_ASSIGN_OR_RETURN(
      job.calibration,
      JobFromFlags({"", FLAGS_dataset, ParseNameList(FLAGS_data)}));
  job.parameters = ParametersFromFlags();
  job.outputs = ParseNameList(FLAGS_outputs);
  job.ranges = ParseNameList(FLAGS_ranges);
  job.keep_ranges = !FLAGS_ranges_output.empty();
  std::vector<std::string> inputs = FilesOf(job.calibration.dataset());
  inputs.insert(inputs.end(), {FLAGS_graph, FLAGS_dataset});
  inputs.insert(inputs.end(), job.ranges.begin(), job.ranges.end());
  REQUANT_RETURN_IF_ERROR(
      CheckOutputs(inputs, {FLAGS_output, FLAGS_ranges_output}));
  SignatureRecords records;
  if (job.ranges.empty()) {
    const bool exact =
        !gflags::GetCommandLineFlagInfoOrDie("max_records").is_default;
    REQUANT_ASSIGN_OR_RETURN(records, HoldBack(exact, &job.calibration));
  }
  REQUANT_ASSIGN_OR_RETURN(QuantizedFrozen quantized, QuantizeFrozen(job));
  if (!FLAGS_target_tensorflow.empty()) {
    StripDefaultValues(&quantized.graph);
    REQUANT_RETURN_IF_ERROR(
        CheckTensorFlow(FLAGS_target_tensorflow, quantized.graph));
  }
  REQUANT_ASSIGN_OR_RETURN(const std::string content,
                           SerializeGraph(quantized.graph));
  // The runner verifies what is part of a run.
  const bool compares = job.ranges.empty() && !IsPartOfRun() &&
                        quantized.prepared.nothing.empty();
  const std::string findings =
      compares ? FindingsText(job, records, content) : "";
  StartReport();
  REQUANT_RETURN_IF_ERROR(Write(quantized, content));
  Print(job, quantized, findings);
  return kExitOk;
}

}  // namespace
}  // namespace requant

int main(int argc, char** argv) {
  using namespace requant;
  return RunGraphProgram(argc, argv, {Help(), UsageError, SetIsolation, Work});
}
