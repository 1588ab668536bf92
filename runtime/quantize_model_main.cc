// quantize_model (requant quantize): from a frozen float graph to the final
// eight-bit one in one command.

#include <gflags/gflags.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files/file.h"
#include "base/process/machine.h"
#include "base/process/subprocess.h"
#include "base/process/tensorflow_child.h"
#include "base/program/flags.h"
#include "base/program/isolation.h"
#include "base/status_macros.h"
#include "base/text/printable.h"
#include "graph/diff.h"
#include "ranges/range_choice.h"
#include "runtime/calibration/quantize.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/datasets/dataset_spec.h"
#include "runtime/datasets/formats/source_format.h"
#include "runtime/session/job.pb.h"
#include "runtime/session/job_flags.h"
#include "transforms/layers/quantized_weights.h"
#include "transforms/pipeline_parser.h"

DEFINE_string(graph, "",
              "the frozen float graph: a .pb or .pbtxt file, such as requant "
              "freeze writes");
DEFINE_string(output, "", "the eight-bit graph to write");
DEFINE_string(dataset, "",
              "a declaration (.textproto) of records, inputs and the "
              "prediction, such as workflows/wide_deep/preprocessed.textproto");
DEFINE_string(data, "",
              "calibration records: files or globs, separated by commas, to "
              "read instead of those that the declaration names");
DEFINE_int64(max_records, 10000,
             "calibrate on this many of the first records; 0: all");
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

namespace requant {
namespace {

const char* const kProgram = ProgramName();

ProgramHelp Help() {
  ProgramHelp help;
  help.name = kProgram;
  help.summary =
      "calibrates a frozen float graph and computes its MatMul layers and its "
      "embedding tables in eight bits, in one go. Prints a table of the "
      "layers, what was left in float and why, and the command that verifies "
      "the result.";
  help.usage =
      "$0 --graph=fp32.pb --dataset=data.textproto "
      "--data=train.tfrecords --output=int8.pb\n"
      "$0 --graph=fp32.pb --dataset=data.textproto "
      "--target=host --ranges_output=model.ranges --output=int8.pb\n"
      "$0 --graph=fp32.pb --ranges=model.ranges "
      "--outputs=probabilities --target=vnni --output=int8_vnni.pb";
  help.flag_files = {__FILE__};
  help.footer =
      "Calibrate on records like those of production, verify on others.\n"
      "The graph runs in a process of its own. How it is quantized is in "
      "docs/quantization.md.\n"
      "Exit code: 0 done, 1 failed (nothing was written), 2 usage.";
  help.repeatable_flags = {"outputs", "excluded_nodes", "excluded_ops",
                           "ranges"};
  return help;
}

// Returns the parameter of the transform. The cap that counts is the one this
// process runs under: the second try after an illegal instruction has another.
std::string Target() {
  if (FLAGS_target != "host") return FLAGS_target;
  const char* cap = std::getenv("ONEDNN_MAX_CPU_ISA");
  return QuantizationTarget(ProbeCpu(), cap == nullptr ? "" : cap);
}

// Says what is wrong with the flags about ranges, or "".
std::string RangesUsageError() {
  const auto method = ParseRangeMethod(FLAGS_method);
  if (!method.ok()) return std::string(method.status().message());
  if (!(FLAGS_value_percentile > 50 && FLAGS_value_percentile <= 100)) {
    return "--value_percentile is above 50 and at most 100";
  }
  if (FLAGS_ranges.empty()) {
    return FLAGS_dataset.empty() ? "--dataset is missing" : "";
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

// Says what is wrong with the flags, or "".
std::string UsageError() {
  if (FLAGS_graph.empty()) return "--graph is missing";
  if (FLAGS_output.empty()) return "--output is missing";
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

absl::StatusOr<DatasetSpec> ReadDeclaration() {
  REQUANT_ASSIGN_OR_RETURN(
      DatasetSpec dataset,
      ReadDatasetSpec(FLAGS_dataset, ParseNameList(FLAGS_data)));
  if (dataset.prediction().tensor().empty() &&
      ParseNameList(FLAGS_outputs).empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        FLAGS_dataset,
        " names no prediction, which is the graph's output: add prediction { "
        "tensor: \"...\" } or give --outputs"));
  }
  return dataset;
}

absl::StatusOr<QuantizeOptions> OptionsFromFlags() {
  QuantizeOptions options;
  CalibrateJob& calibration = options.calibration;
  if (!FLAGS_dataset.empty()) {
    REQUANT_ASSIGN_OR_RETURN(*calibration.mutable_dataset(), ReadDeclaration());
  }
  *calibration.mutable_model() = MakeModelSpec(FLAGS_graph, "", "");
  calibration.set_batch_size(FLAGS_batch_size);
  calibration.set_max_records(FLAGS_max_records);
  calibration.set_max_bad_records(FLAGS_max_bad_records);
  calibration.set_moment_records(FLAGS_moment_records);
  options.ranges_files = ParseNameList(FLAGS_ranges);
  options.keep_ranges = !FLAGS_ranges_output.empty();
  options.outputs = ParseNameList(FLAGS_outputs);
  options.target = Target();
  options.method = FLAGS_method;
  options.value_percentile = FLAGS_value_percentile;
  options.excluded_ops = ParseNameList(FLAGS_excluded_ops);
  options.excluded_nodes = ParseNameList(FLAGS_excluded_nodes);
  return options;
}

absl::Status Write(const QuantizedGraph& quantized) {
  std::vector<FileToWrite> files;
  if (!FLAGS_ranges_output.empty()) {
    files.push_back({FLAGS_ranges_output,
                     [&](int fd) { return WriteAll(fd, quantized.ranges); }});
  }
  files.push_back(
      {FLAGS_output, [&](int fd) { return WriteAll(fd, quantized.graph); }});
  return WriteFilesAtomically(files);
}

// Returns the command that compares the two graphs on records that the user is
// to name, or "" when it is not known how to read them.
std::string EvaluateCommand(const DatasetSpec& dataset) {
  if (FLAGS_dataset.empty()) return "";
  std::vector<std::string> words = {
      "requant evaluate", "--graph=" + ShellQuoted(FLAGS_output),
      "--baseline=" + ShellQuoted(FLAGS_graph),
      "--dataset=" + ShellQuoted(FLAGS_dataset), "--data=RECORDS"};
  if (dataset.prediction().tensor().empty()) {
    words.push_back("--output=" +
                    ShellQuoted(ParseNameList(FLAGS_outputs).front()));
  }
  return absl::StrJoin(words, " ");
}

void Print(const QuantizedGraph& quantized, const DatasetSpec& dataset) {
  std::string text;
  if (quantized.calibration_records > 0) {
    absl::StrAppend(&text, "calibrated on ", quantized.calibration_records,
                    " records\n");
  }
  for (const std::string& note : quantized.notes) {
    absl::StrAppend(&text, note, "\n");
  }
  absl::StrAppend(&text, Printable(FLAGS_output), ": ",
                  GraphSizeSummary(quantized.before, quantized.after));
  const std::string command = EvaluateCommand(dataset);
  absl::StrAppend(&text,
                  command.empty()
                      ? ""
                      : absl::StrCat("; to verify it, on RECORDS that it was "
                                     "not calibrated on: ",
                                     command),
                  "\n");
  // A run says it at its end, and its record holds on other machines too.
  if (!IsPartOfRun()) absl::StrAppend(&text, ServingHint(), "\n");
  std::fputs(text.c_str(), stdout);
}

void SetIsolation(IsolationOptions* isolation) {
  isolation->outputs = {FLAGS_output, FLAGS_ranges_output};
  if (FLAGS_ranges.empty()) {
    isolation->progress = {"calibrating", "records", FLAGS_max_records};
  }
}

absl::StatusOr<int> Work() {
  REQUANT_ASSIGN_OR_RETURN(const QuantizeOptions options, OptionsFromFlags());
  std::vector<std::string> inputs = FilesOf(options.calibration.dataset());
  inputs.insert(inputs.end(), {FLAGS_graph, FLAGS_dataset});
  inputs.insert(inputs.end(), options.ranges_files.begin(),
                options.ranges_files.end());
  REQUANT_RETURN_IF_ERROR(
      CheckOutputs(inputs, {FLAGS_output, FLAGS_ranges_output}));
  REQUANT_ASSIGN_OR_RETURN(const QuantizedGraph quantized, Quantize(options));
  StartReport();
  REQUANT_RETURN_IF_ERROR(Write(quantized));
  Print(quantized, options.calibration.dataset());
  return kExitOk;
}

}  // namespace
}  // namespace requant

int main(int argc, char** argv) {
  using namespace requant;
  return RunGraphProgram(argc, argv, {Help(), UsageError, SetIsolation, Work});
}
