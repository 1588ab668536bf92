// evaluate_graph (requant evaluate) measures the accuracy and speed of a graph
// on a dataset, alone or compared with a baseline.

#include <gflags/gflags.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/files/file.h"
#include "base/program/flags.h"
#include "base/program/isolation.h"
#include "base/status_macros.h"
#include "graph/graph_io.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/datasets/formats/source_format.h"
#include "runtime/datasets/guess_dataset.h"
#include "runtime/evaluation.pb.h"
#include "runtime/evaluation/evaluate.h"
#include "runtime/evaluation/evaluation_report.h"
#include "runtime/session/job.pb.h"
#include "runtime/session/job_flags.h"
#include "runtime/session/model.h"
#include "runtime/session/model_signature.h"
#include "runtime/statistics/paired_comparison.h"

DEFINE_string(graph, "",
              "the graph to evaluate: a .pb or .pbtxt file, or a SavedModel");
DEFINE_string(baseline, "",
              "a graph to run on the same records and to compare with");
DEFINE_string(baseline_predictions, "",
              "a file that --predictions_out made of the same records: the "
              "baseline's predictions, so that it need not run");
DEFINE_string(dataset, "",
              "a declaration (.textproto) of records, inputs and label, such "
              "as workflows/wide_deep/raw.textproto");
DEFINE_string(data, "",
              "files or globs, separated by commas, to read instead of those "
              "that the declaration names; without --dataset: CSV, JSON lines, "
              ".npz or TFRecord files with what the inputs of the SavedModel "
              "are called");
DEFINE_string(output, "", "the tensor to score, instead of the declaration's");
DEFINE_int64(batch_size, 512, "records per run of the graph");
DEFINE_int64(max_records, 0, "stop after this many records; 0: all");
DEFINE_int64(skip_records, 0,
             "leave out this many of the first records, such as those that "
             "were calibrated on");
DEFINE_int64(max_bad_records, 0,
             "skip up to this many unreadable records, and name the first ten");
DEFINE_int32(streams, 1,
             "batches that run side by side; the figures on accuracy are the "
             "same for any number");
DEFINE_int32(threads, 0,
             "threads that share the work of one operation; 0: one per core, "
             "or one when there are --streams");
DEFINE_int32(inter_op_threads, 0,
             "operations that run side by side; 0: TensorFlow's choice");
DEFINE_string(saved_model_tags, "",
              "which graph of a SavedModel; empty: the one tagged \"serve\"");
DEFINE_string(signature, "",
              "the SavedModel's signature whose names the declaration may use; "
              "empty: the only one, or serving_default");
DEFINE_int64(layer_records, 0,
             "on this many records, the first, compare every layer of the "
             "--baseline, a float graph, with what became of it; 0: do not");
DEFINE_string(predictions_out, "",
              "write the graph's predictions here, for --baseline_predictions "
              "of later runs");
DEFINE_string(result_out, "",
              "write the figures here, as a binary EvaluateResult of "
              "runtime/evaluation.proto");
DEFINE_double(max_accuracy_drop, -1,
              "with a baseline: exit with 3 when accuracy certainly drops by "
              "more than this many points; negative: no such gate");
DEFINE_string(format, "text", "text or json");

namespace requant {
namespace {

const char* const kProgram = ProgramName();

ProgramHelp Help() {
  ProgramHelp help;
  help.name = kProgram;
  help.summary =
      "runs a graph on a dataset and prints its accuracy and speed, as the "
      "Wide "
      "& Deep recipe's log does; with --baseline also what changed between two "
      "graphs, record by record.";
  help.usage =
      "$0 --graph=model.pb --dataset=data.textproto\n"
      "$0 --graph=int8.pb --baseline=fp32.pb "
      "--dataset=data.textproto --format=json\n"
      "$0 --graph=saved_model --data=data.csv\n"
      "$0 --graph=fp32.pb --dataset=data.textproto "
      "--predictions_out=fp32.predictions\n"
      "$0 --graph=int8.pb --dataset=data.textproto "
      "--baseline_predictions=fp32.predictions";
  help.flag_files = {__FILE__};
  help.aliases = {{"records", "max_records"}};
  help.footer =
      "The first 100 batches (half of them, when there are fewer than 200) "
      "count for accuracy but not for duration, throughput and latency.\n"
      "The graph runs in a process of its own.\n"
      "Exit code: 0 done, 1 failed, 2 usage, 3 the accuracy gate failed.";
  return help;
}

// Returns what is wrong with the baseline's flags, or "".
std::string BaselineError() {
  const bool stored = !FLAGS_baseline_predictions.empty();
  if (FLAGS_max_accuracy_drop >= 0 && FLAGS_baseline.empty() && !stored) {
    return "--max_accuracy_drop needs a --baseline to drop from";
  }
  if (FLAGS_layer_records < 0) return "--layer_records must be at least 0";
  if (FLAGS_layer_records > 0 && FLAGS_baseline.empty()) {
    return "--layer_records needs a --baseline whose layers to compare";
  }
  if (stored && !FLAGS_baseline.empty() && FLAGS_layer_records == 0) {
    return "with --baseline_predictions the --baseline does not run, except "
           "for --layer_records";
  }
  return "";
}

// Returns what is wrong with the flags, or "".
std::string UsageError() {
  if (FLAGS_graph.empty()) return "--graph is missing";
  if (FLAGS_dataset.empty() && FLAGS_data.empty()) {
    return "--dataset is missing, or --data for a SavedModel";
  }
  if (FLAGS_batch_size < 1) return "--batch_size must be at least 1";
  if (FLAGS_max_records < 0) return "--max_records must be at least 0";
  if (FLAGS_skip_records < 0) return "--skip_records must be at least 0";
  if (FLAGS_max_bad_records < 0) return "--max_bad_records must be at least 0";
  if (FLAGS_streams < 1 || FLAGS_streams > 1024) {
    return "--streams is from 1 to 1024";
  }
  for (const std::string& error :
       {ThreadsError(FLAGS_threads, FLAGS_inter_op_threads),
        FormatError(FLAGS_format)}) {
    if (!error.empty()) return error;
  }
  if (std::isnan(FLAGS_max_accuracy_drop)) {
    return "--max_accuracy_drop is a number of points";
  }
  return BaselineError();
}

ModelSpec ModelFromFlags(const std::string& path) {
  return MakeModelSpec(path, FLAGS_saved_model_tags, FLAGS_signature);
}

// Reads the declaration, or makes one for --data.
absl::StatusOr<DatasetSpec> DatasetFromFlags() {
  if (!FLAGS_dataset.empty()) {
    return ReadJobDataset(FLAGS_dataset, FLAGS_data, FLAGS_output, "score");
  }
  std::vector<ModelSpec> models = {ModelFromFlags(FLAGS_graph)};
  if (!FLAGS_baseline.empty()) models.push_back(ModelFromFlags(FLAGS_baseline));
  GuessOptions options;
  options.output = FLAGS_output;
  return GuessJobDataset(models, SplitList(FLAGS_data), options);
}

absl::StatusOr<EvaluateOptions> OptionsFromFlags() {
  EvaluateOptions options;
  REQUANT_ASSIGN_OR_RETURN(options.dataset, DatasetFromFlags());
  const auto batch_size = gflags::GetCommandLineFlagInfoOrDie("batch_size");
  if (options.dataset.has_in_graph() &&
      (batch_size.current_value != batch_size.default_value ||
       FLAGS_max_bad_records > 0 || FLAGS_skip_records > 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the graph reads its own data (in_graph in ", FLAGS_dataset,
        "), so --batch_size, --skip_records and --max_bad_records have no "
        "effect: leave them out"));
  }
  if (options.dataset.has_in_graph() &&
      (FLAGS_streams > 1 || FLAGS_layer_records > 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the graph reads its own data (in_graph in ", FLAGS_dataset,
        "), one batch after another and once: leave --streams and "
        "--layer_records out"));
  }
  options.model = ModelFromFlags(FLAGS_graph);
  if (!FLAGS_baseline.empty()) {
    options.baseline = ModelFromFlags(FLAGS_baseline);
  }
  options.session.set_intra_op_threads(FLAGS_threads);
  options.session.set_inter_op_threads(FLAGS_inter_op_threads);
  options.batch_size = FLAGS_batch_size;
  options.skip_records = FLAGS_skip_records;
  options.max_records = FLAGS_max_records;
  options.max_bad_records = FLAGS_max_bad_records;
  options.streams = FLAGS_streams;
  options.baseline_predictions = FLAGS_baseline_predictions;
  options.layer_records = FLAGS_layer_records;
  return options;
}

absl::Status WriteOutputs(const std::string& predictions,
                          const EvaluateResult& result) {
  std::vector<FileToWrite> files;
  const auto add = [&files](const std::string& path, std::string content) {
    if (path.empty()) return;
    files.push_back({path, [content = std::move(content)](int fd) {
                       return WriteAll(fd, content);
                     }});
  };
  add(FLAGS_predictions_out, predictions);
  add(FLAGS_result_out, DeterministicBytes(result));
  return WriteFilesAtomically(files);
}

void Print(const EvaluateResult& result) {
  const EvaluationNames names = {
      FLAGS_graph, FLAGS_dataset.empty() ? FLAGS_data : FLAGS_dataset,
      FLAGS_baseline.empty() ? FLAGS_baseline_predictions : FLAGS_baseline};
  const std::string text =
      FLAGS_format == "json"
          ? EvaluationJson(result, names, FLAGS_max_accuracy_drop)
          : absl::StrCat(FurtherMetrics(result), ComparisonText(result, names),
                         LayersText(result), LogTail(result));
  std::fputs(text.c_str(), stdout);
}

// Returns the exit code that the gate on accuracy gives.
int ExitCode(const EvaluateResult& result) {
  if (FLAGS_max_accuracy_drop < 0) return kExitOk;
  const std::optional<Verdict> verdict =
      JudgeGate(result.comparison(), FLAGS_max_accuracy_drop);
  if (!verdict.has_value()) {
    return ReportFailure(
        kProgram, absl::FailedPreconditionError(
                      "--max_accuracy_drop has no accuracy to judge: the data "
                      "have no labels, or the predictions no classes"));
  }
  if (verdict == Verdict::kInconclusive) {
    SayWarning(absl::StrFormat(
        "whether accuracy drops by more than %g points is not certain from %d "
        "records: more records would tell",
        FLAGS_max_accuracy_drop, result.timing().records()));
  }
  if (verdict != Verdict::kFail) return kExitOk;
  Say(kProgram, absl::StrFormat("accuracy drops by more than %g points",
                                FLAGS_max_accuracy_drop));
  return kExitAccuracyGate;
}

void SetIsolation(IsolationOptions* isolation) {
  isolation->outputs = {FLAGS_predictions_out, FLAGS_result_out};
  isolation->progress = {"evaluating", "records", FLAGS_max_records};
}

absl::StatusOr<int> Work() {
  REQUANT_ASSIGN_OR_RETURN(const EvaluateOptions options, OptionsFromFlags());
  std::vector<std::string> inputs = FilesOf(options.dataset);
  inputs.insert(inputs.end(), {FLAGS_graph, FLAGS_baseline, FLAGS_dataset,
                               FLAGS_baseline_predictions});
  REQUANT_RETURN_IF_ERROR(
      CheckOutputs(inputs, {FLAGS_predictions_out, FLAGS_result_out}));
  std::string predictions;
  REQUANT_ASSIGN_OR_RETURN(
      const EvaluateResult result,
      Evaluate(options,
               FLAGS_predictions_out.empty() ? nullptr : &predictions));
  StartReport();
  REQUANT_RETURN_IF_ERROR(WriteOutputs(predictions, result));
  Print(result);
  return ExitCode(result);
}

}  // namespace
}  // namespace requant

int main(int argc, char** argv) {
  using namespace requant;
  return RunGraphProgram(argc, argv, {Help(), UsageError, SetIsolation, Work});
}
