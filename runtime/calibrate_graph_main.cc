// calibrate_graph (requant calibrate) measures the ranges of a graph's tensors
// on a dataset and writes them as a RangeTable file for the freeze transforms.

#include <gflags/gflags.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/program/flags.h"
#include "base/program/isolation.h"
#include "base/status_macros.h"
#include "graph/saved_model/saved_model_file.h"
#include "ranges/range_choice.h"
#include "ranges/range_table.h"
#include "runtime/calibration/calibrate.h"
#include "runtime/calibration/calibration_report.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/datasets/dataset_spec.h"
#include "runtime/datasets/formats/source_format.h"
#include "runtime/datasets/guess_dataset.h"
#include "runtime/session/job.pb.h"
#include "runtime/session/job_flags.h"
#include "runtime/session/model.h"
#include "runtime/session/model_signature.h"

DEFINE_string(graph, "",
              "the graph to calibrate: a .pb or .pbtxt file, or a SavedModel");
DEFINE_string(dataset, "",
              "a declaration (.textproto) of records and inputs, such as "
              "workflows/wide_deep/preprocessed.textproto");
DEFINE_string(data, "",
              "files or globs, separated by commas, to read instead of those "
              "that the declaration names; without --dataset: CSV, JSON lines, "
              ".npz or TFRecord files with what the inputs of the SavedModel "
              "are called");
DEFINE_string(output, "", "the RangeTable file to write");
DEFINE_string(tensors, "",
              "the tensors to observe, separated by commas, may be given "
              "several times; empty: those that quantization needs");
DEFINE_string(qdq_ops, "",
              "observe what the transform insert_qdq would quantize before "
              "nodes of these ops, separated by commas, such as MatMul: in "
              "functions too, and with variables where they are");
DEFINE_string(qdq_inputs, "",
              "with --qdq_ops: which of their inputs: activations, weights or "
              "both; empty: as insert_qdq does");
DEFINE_int64(
    held_mb, 512,
    "with --qdq_ops: fetch values of this many MB at once, and run the "
    "graph several times for each batch if there are more");
DEFINE_int64(batch_size, 1024,
             "records per run of the graph; the freeze transforms' percentiles "
             "are of batches; 8 with --qdq_ops unless set");
DEFINE_int64(max_records, 0, "stop after this many records; 0: all");
DEFINE_int64(max_bad_records, 0,
             "skip up to this many unreadable records, and name the first ten");
DEFINE_int64(
    moment_records, 4096,
    "keep of each layer's input, in this many of the first records, the "
    "mean of every channel and how the channels vary together, by "
    "which weights are rounded best; 0: nothing of that");
DEFINE_int32(threads, 0,
             "threads that share the work of one operation; 0: one per core");
DEFINE_int32(inter_op_threads, 0,
             "operations that run side by side; 0: TensorFlow's choice");
DEFINE_string(saved_model_tags, "",
              "which graph of a SavedModel; empty: the one tagged \"serve\"");
DEFINE_string(signature, "",
              "the SavedModel's signature whose names the declaration may use; "
              "empty: the only one, or serving_default");
DEFINE_string(method, "minmax",
              "by what the printed table chooses a range: minmax, percentile "
              "or mse; the file serves all of them");
DEFINE_double(value_percentile, 99.99,
              "with --method=percentile: this many percent of the values lie "
              "below the maximum, and as many above the minimum");
DEFINE_string(
    merge, "",
    "instead of calibrating, add up these RangeTable files, separated "
    "by commas or given several times, into --output");
DEFINE_string(print, "", "instead of calibrating, print this RangeTable file");

namespace requant {
namespace {

const char* const kProgram = ProgramName();
// Big models need small batches.
constexpr int64_t kQdqBatchSize = 8;

ProgramHelp Help() {
  ProgramHelp help;
  help.name = kProgram;
  help.summary =
      "runs a graph on a dataset once, observes the tensors whose ranges its "
      "quantization needs, and writes them to a RangeTable file for the freeze "
      "transforms' ranges_file. Of a float graph these are the inputs and "
      "outputs of its layers, with histograms, and with how the channels of an "
      "input vary together; of a graph that computes ranges as it runs, what "
      "it computes.";
  help.usage =
      "$0 --graph=fp32.pb --dataset=data.textproto "
      "--max_records=10000 --output=model.ranges\n"
      "$0 --graph=gpt-j-6B --qdq_ops=MatMul "
      "--dataset=tokens.textproto --output=gpt-j.ranges\n"
      "$0 --merge=a.ranges,b.ranges --output=both.ranges\n"
      "$0 --print=model.ranges --method=mse";
  help.flag_files = {__FILE__};
  help.aliases = {{"records", "max_records"}, {"out", "output"}};
  help.footer =
      "A range has settled once it is within 1 % of its final width of what it "
      "is in the end.\n"
      "The graph runs in a process of its own.\n"
      "Exit code: 0 done, 1 failed, 2 usage.";
  help.repeatable_flags = {"tensors", "merge", "qdq_ops"};
  return help;
}

// Returns what is wrong with the flags of a calibration, or "".
std::string CalibrationUsageError() {
  if (FLAGS_graph.empty()) return "--graph is missing";
  if (FLAGS_dataset.empty() && FLAGS_data.empty()) {
    return "--dataset is missing, or --data for a SavedModel";
  }
  if (FLAGS_output.empty()) return "--output is missing";
  if (FLAGS_qdq_ops.empty() && !FLAGS_qdq_inputs.empty()) {
    return "--qdq_inputs needs --qdq_ops";
  }
  if (FLAGS_held_mb < 1 || FLAGS_held_mb > 1'000'000) {
    return "--held_mb must be 1 to 1000000";
  }
  if (!FLAGS_qdq_ops.empty() && !FLAGS_tensors.empty()) {
    return "--qdq_ops and --tensors exclude each other";
  }
  if (FLAGS_batch_size < 1) return "--batch_size must be at least 1";
  if (FLAGS_max_records < 0) return "--max_records must be at least 0";
  if (FLAGS_moment_records < 0) return "--moment_records must be at least 0";
  if (FLAGS_max_bad_records < 0) return "--max_bad_records must be at least 0";
  return ThreadsError(FLAGS_threads, FLAGS_inter_op_threads);
}

// Returns what is wrong with the flags, or "".
std::string UsageError() {
  const auto method = ParseRangeMethod(FLAGS_method);
  if (!method.ok()) return std::string(method.status().message());
  if (!(FLAGS_value_percentile > 50 && FLAGS_value_percentile <= 100)) {
    return "--value_percentile is above 50 and at most 100";
  }
  const bool merges = !FLAGS_merge.empty(), prints = !FLAGS_print.empty();
  if (!merges && !prints) return CalibrationUsageError();
  if ((merges && prints) || !FLAGS_graph.empty() || !FLAGS_dataset.empty()) {
    return "--merge, --print and --graph with --dataset exclude each other";
  }
  if (merges && FLAGS_output.empty()) return "--merge needs an --output";
  if (prints && !FLAGS_output.empty()) return "--print has no --output";
  return "";
}

// Reads the declaration, or makes one for --data.
absl::StatusOr<DatasetSpec> DatasetFromFlags(const ModelSpec& model) {
  if (!FLAGS_dataset.empty()) {
    return ReadDatasetSpec(FLAGS_dataset, SplitList(FLAGS_data));
  }
  GuessOptions options;
  options.needs_prediction = false;
  return GuessJobDataset({model}, SplitList(FLAGS_data), options);
}

absl::StatusOr<CalibrateJob> JobFromFlags() {
  CalibrateJob job;
  *job.mutable_model() =
      MakeModelSpec(FLAGS_graph, FLAGS_saved_model_tags, FLAGS_signature);
  REQUANT_ASSIGN_OR_RETURN(*job.mutable_dataset(),
                           DatasetFromFlags(job.model()));
  job.mutable_session()->set_intra_op_threads(FLAGS_threads);
  job.mutable_session()->set_inter_op_threads(FLAGS_inter_op_threads);
  job.set_batch_size(FLAGS_batch_size);
  job.set_max_records(FLAGS_max_records);
  job.set_max_bad_records(FLAGS_max_bad_records);
  job.set_moment_records(FLAGS_moment_records);
  for (const std::string& tensor : SplitList(FLAGS_tensors)) {
    job.add_tensors(tensor);
  }
  if (FLAGS_qdq_ops.empty()) return job;
  // A SavedModel may be in a folder of versions.
  std::error_code ignored;
  if (std::filesystem::is_directory(FLAGS_graph, ignored)) {
    REQUANT_ASSIGN_OR_RETURN(*job.mutable_model()->mutable_path(),
                             FindSavedModel(FLAGS_graph));
  }
  for (const std::string& op : SplitList(FLAGS_qdq_ops)) {
    job.mutable_qdq()->add_op(op);
  }
  job.mutable_qdq()->set_inputs(FLAGS_qdq_inputs);
  job.mutable_qdq()->set_held_bytes(FLAGS_held_mb * 1'000'000);
  if (gflags::GetCommandLineFlagInfoOrDie("batch_size").is_default) {
    job.set_batch_size(kQdqBatchSize);
  }
  // Moments are only for rounding layers' weights, which does not happen here.
  job.set_moment_records(0);
  return job;
}

absl::StatusOr<int> Print(const RangeTable& table, int64_t batch_size) {
  RangeChoiceOptions choice;
  REQUANT_ASSIGN_OR_RETURN(choice.method, ParseRangeMethod(FLAGS_method));
  choice.value_percentile = FLAGS_value_percentile;
  REQUANT_ASSIGN_OR_RETURN(const std::string text,
                           CalibrationText(table, choice, batch_size));
  std::fputs(text.c_str(), stdout);
  return kExitOk;
}

// Prints the table of --print, or writes and prints the sum of --merge.
absl::StatusOr<int> PrintTables() {
  REQUANT_ASSIGN_OR_RETURN(const RangeTable table,
                           FLAGS_merge.empty()
                               ? ReadRangeTable(FLAGS_print)
                               : ReadRangeTables(SplitList(FLAGS_merge)));
  if (!FLAGS_merge.empty()) {
    REQUANT_RETURN_IF_ERROR(WriteRangeTable(table, FLAGS_output));
  }
  for (const std::string& warning : CalibrationWarnings(table)) {
    SayWarning(warning);
  }
  return Print(table, 0);
}

absl::StatusOr<int> Calibrate() {
  REQUANT_ASSIGN_OR_RETURN(const CalibrateJob job, JobFromFlags());
  std::vector<std::string> inputs = FilesOf(job.dataset());
  inputs.insert(inputs.end(), {FLAGS_graph, FLAGS_dataset});
  REQUANT_RETURN_IF_ERROR(CheckOutputs(inputs, {FLAGS_output}));
  REQUANT_ASSIGN_OR_RETURN(const RangeTable table,
                           ObserveRanges(job, nullptr, /*for_file=*/true));
  StartReport();
  REQUANT_RETURN_IF_ERROR(WriteRangeTable(table, FLAGS_output));
  return Print(table, job.batch_size());
}

void SetIsolation(IsolationOptions* isolation) {
  isolation->outputs = {FLAGS_output};
  if (!FLAGS_graph.empty()) {
    isolation->progress = {"calibrating", "records", FLAGS_max_records};
  }
}

absl::StatusOr<int> Work() {
  if (FLAGS_merge.empty() && FLAGS_print.empty()) return Calibrate();
  StartReport();
  return PrintTables();
}

}  // namespace
}  // namespace requant

int main(int argc, char** argv) {
  using namespace requant;
  return RunGraphProgram(argc, argv, {Help(), UsageError, SetIsolation, Work});
}
