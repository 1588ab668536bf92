// benchmark_graph (requant benchmark) measures the speed of several graphs.

#include <gflags/gflags.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/process/machine.h"
#include "base/program/flags.h"
#include "base/program/isolation.h"
#include "base/status_macros.h"
#include "graph/graph_io.h"
#include "graph/saved_model/saved_model_file.h"
#include "runtime/benchmark/benchmark.h"
#include "runtime/benchmark/benchmark_inputs.h"
#include "runtime/benchmark/benchmark_report.h"
#include "runtime/session/job.pb.h"
#include "runtime/session/job_flags.h"

DEFINE_string(graph, "",
              "a graph to measure: a .pb or .pbtxt file, or a SavedModel; give "
              "it once per graph. Ratios are to the first");
DEFINE_string(saved_model, "",
              "a SavedModel to measure, instead of --graph: the first is the "
              "original, the others are what it was converted to. Their "
              "outputs are compared, and the lines of the published GPT-J "
              "example are printed");
DEFINE_string(name, "",
              "with --saved_model: what the model is called in these lines; "
              "empty: the first one's folder");
DEFINE_string(dataset, "",
              "a declaration (.textproto) of records and inputs, once for all "
              "graphs or once for each, in their order. SavedModels can do "
              "without: one batch is made up from the signature");
DEFINE_string(data, "",
              "files or globs, separated by commas, to read instead of those "
              "that the one declaration names");
DEFINE_string(output, "",
              "the tensor to compute, instead of the declarations'");
DEFINE_int64(batch_size, 512,
             "records per run of a graph; 8 with --saved_model unless set");
DEFINE_int64(batches, 64,
             "batches to keep in memory and run over and over, at most; they "
             "also end at 50 MB; 4 with --saved_model unless set");
DEFINE_int64(synthetic_length, 32,
             "without --dataset: the size of dimensions, but for the first, "
             "that the signature leaves open, such as a text's length");
DEFINE_int64(synthetic_ids, 0,
             "without --dataset: whole numbers are drawn from 0 to one less; "
             "unset: 32, and for the input of texts the size of the "
             "vocabulary, if the output's shape gives it ([batch, positions, "
             "vocabulary])");
DEFINE_string(tokens, "",
              "without --dataset: an array (.npy) of whole numbers, a text per "
              "row, for the model's input_ids or its only input of whole "
              "numbers; a folder: its input_ids.npy, else the first such array "
              "in it, else numbers are made up");
DEFINE_string(output_dir, "",
              "with --saved_model: a folder, made if it is missing, for the "
              "whole report as benchmark.txt and benchmark.json; stdout then "
              "has the published lines only");
DEFINE_int64(max_bad_records, 0,
             "skip up to this many unreadable records, and say which");
DEFINE_int32(rounds, 9,
             "how often each graph is measured; from 6 on there are intervals");
DEFINE_double(seconds, 0.25, "how long each graph runs in a round, at least");
DEFINE_int32(streams, 0,
             "batches that run side by side; 0: found by a quick search");
DEFINE_int32(threads, 0,
             "threads that share the work of one batch; 0: found by a quick "
             "search");
DEFINE_bool(tune_each, false,
            "search for every graph, instead of using what suits the first");
DEFINE_bool(profile, false,
            "also show where the time goes, by operation and by node");
DEFINE_string(saved_model_tags, "",
              "which graph of a SavedModel; empty: the one tagged \"serve\"");
DEFINE_string(signature, "",
              "the SavedModel's signature whose names the declaration may use; "
              "empty: the only one, or serving_default");
DEFINE_string(result_out, "",
              "write the figures here, as a binary BenchmarkResult of "
              "runtime/session/job.proto");
DEFINE_string(format, "text", "text or json");

namespace requant {
namespace {

const char* const kProgram = ProgramName();
constexpr int64_t kMaxPreloadedBytes = 50'000'000;
constexpr int64_t kSavedModelBatchSize = 8;
constexpr int64_t kSavedModelBatches = 4;

ProgramHelp Help() {
  ProgramHelp help;
  help.name = kProgram;
  help.summary =
      "measures graphs against each other on preloaded records: after a "
      "warm-up they run in turns, round after round, and each is compared with "
      "the first in the same round.";
  help.usage =
      "$0 --graph=fp32.pb --graph=int8.pb "
      "--dataset=data.textproto\n"
      "$0 --graph=raw.pb --dataset=raw.textproto "
      "--graph=fused.pb --dataset=fused.textproto\n"
      "$0 --graph=int8.pb --dataset=data.textproto --profile\n"
      "$0 --saved_model=gpt-j-6B "
      "--saved_model=converted_gpt-j-6B --dataset=tokens.textproto";
  help.flag_files = {__FILE__};
  help.repeatable_flags = {"graph", "saved_model", "dataset"};
  help.footer =
      "Speed and CPU time are ratios to the first graph, medians over the "
      "rounds with their 95 % intervals.\n"
      "The spread is the distance between the quartiles of the rounds.\n"
      "SavedModels run one batch at a time on all cores unless --streams or "
      "--threads is given. Their latency is the median time of a batch, their "
      "throughput the batch size divided by it: the published figures left "
      "the batch size out.\n"
      "The graphs run in a process of their own.\n"
      "Exit code: 0 done, 1 failed, 2 usage.";
  return help;
}

bool IsSet(const char* flag) {
  return !gflags::GetCommandLineFlagInfoOrDie(flag).is_default;
}

std::vector<std::string> Graphs() {
  return SplitList(FLAGS_saved_model.empty() ? FLAGS_graph : FLAGS_saved_model);
}

// Returns what is wrong with flags for only one kind of model, or "".
std::string KindError() {
  if (!FLAGS_saved_model.empty() && !FLAGS_graph.empty()) {
    return "--graph and --saved_model exclude each other";
  }
  if (FLAGS_saved_model.empty()) {
    for (const char* flag : {"name", "output_dir"}) {
      if (IsSet(flag)) return absl::StrCat("--", flag, " is for --saved_model");
    }
  }
  if (FLAGS_saved_model.empty() || !FLAGS_dataset.empty()) {
    for (const char* flag : {"synthetic_length", "synthetic_ids", "tokens"}) {
      if (IsSet(flag)) {
        return absl::StrCat("--", flag,
                            " is for --saved_model without --dataset");
      }
    }
    return "";
  }
  if (!FLAGS_data.empty()) return "--data needs a --dataset";
  if (FLAGS_synthetic_length < 1 || FLAGS_synthetic_length > 1'000'000) {
    return "--synthetic_length must be 1 to 1000000";
  }
  if (IsSet("synthetic_ids") &&
      (FLAGS_synthetic_ids < 1 || FLAGS_synthetic_ids > 1'000'000'000)) {
    return "--synthetic_ids must be 1 to 1000000000";
  }
  return "";
}

// Returns what is wrong with the graphs and datasets, or "".
std::string NamesError() {
  const size_t graphs = Graphs().size();
  const size_t datasets = SplitList(FLAGS_dataset).size();
  if (graphs == 0) return "--graph or --saved_model is missing";
  const std::string kind_error = KindError();
  if (!kind_error.empty()) return kind_error;
  if (datasets == 0 && FLAGS_saved_model.empty()) {
    return "--dataset is missing";
  }
  if (datasets > 1 && datasets != graphs) {
    return absl::StrCat("there are ", datasets, " datasets for ", graphs,
                        graphs == 1 ? " graph" : " graphs",
                        ": give one for all or one for each");
  }
  if (!FLAGS_data.empty() && datasets > 1) {
    return "--data replaces the files of one --dataset, not of several";
  }
  return "";
}

// Returns what is wrong with the flags, or "".
std::string UsageError() {
  const std::string names_error = NamesError();
  if (!names_error.empty()) return names_error;
  if (FLAGS_batch_size < 1) return "--batch_size must be at least 1";
  if (FLAGS_batches < 1) return "--batches must be at least 1";
  if (FLAGS_max_bad_records < 0) return "--max_bad_records must be at least 0";
  if (FLAGS_rounds < 1 || FLAGS_rounds > 10000) {
    return "--rounds must be 1 to 10000";
  }
  if (!(FLAGS_seconds >= 0 && FLAGS_seconds <= 3600)) {
    return "--seconds must be 0 to 3600";
  }
  if (FLAGS_streams < 0 || FLAGS_streams > 1024 || FLAGS_threads < 0 ||
      FLAGS_threads > 1024) {
    return "--streams and --threads must be 0 to 1024";
  }
  return FormatError(FLAGS_format);
}

absl::Status AddEntries(BenchmarkJob* job) {
  std::vector<std::string> graphs = Graphs();
  const std::vector<std::string> datasets = SplitList(FLAGS_dataset);
  for (size_t i = 0; i < graphs.size(); ++i) {
    if (!FLAGS_saved_model.empty()) {
      REQUANT_ASSIGN_OR_RETURN(graphs[i], FindSavedModel(graphs[i]));
    }
    BenchmarkEntry& entry = *job->add_entry();
    *entry.mutable_model() =
        MakeModelSpec(graphs[i], FLAGS_saved_model_tags, FLAGS_signature);
    if (datasets.empty()) continue;
    entry.set_dataset_name(datasets[datasets.size() == 1 ? 0 : i]);
    REQUANT_ASSIGN_OR_RETURN(*entry.mutable_dataset(),
                             ReadJobDataset(entry.dataset_name(), FLAGS_data,
                                            FLAGS_output, "compute"));
  }
  return absl::OkStatus();
}

// Returns the file of --output_dir with this ending.
std::string ReportFile(const std::string& ending) {
  return absl::StrCat(FLAGS_output_dir, "/benchmark.", ending);
}

std::vector<std::string> Outputs() {
  std::vector<std::string> outputs = {FLAGS_result_out};
  if (!FLAGS_output_dir.empty()) {
    outputs.push_back(ReportFile("txt"));
    outputs.push_back(ReportFile("json"));
  }
  return outputs;
}

// Creates --output_dir and checks all outputs.
absl::Status PrepareOutputs() {
  std::vector<std::string> inputs = Graphs();
  for (const std::string& dataset : SplitList(FLAGS_dataset)) {
    inputs.push_back(dataset);
  }
  if (!FLAGS_output_dir.empty()) {
    std::error_code error;
    std::filesystem::create_directories(FLAGS_output_dir, error);
    if (error) {
      return absl::ErrnoToStatus(
          error.value(),
          absl::StrCat("cannot make the folder ", FLAGS_output_dir));
    }
  }
  return CheckOutputs(inputs, Outputs());
}

// Sets the defaults that differ for SavedModels: those of the published
// example, unless flags say otherwise.
absl::Status SetSavedModelDefaults(BenchmarkJob* job) {
  if (!IsSet("batch_size")) job->set_batch_size(kSavedModelBatchSize);
  if (!IsSet("batches")) job->set_max_batches(kSavedModelBatches);
  if (FLAGS_streams == 0 && FLAGS_threads == 0) {
    job->set_streams(1);
    job->set_threads(ReadCoreLimits().usable());
  }
  job->set_compare_outputs(job->entry_size() > 1);
  // One batch of a big model may take a minute.
  job->set_round_batches(1);
  job->set_published_name(FLAGS_name.empty()
                              ? SavedModelName(job->entry(0).model().path())
                              : FLAGS_name);
  if (!FLAGS_dataset.empty()) return absl::OkStatus();
  SyntheticInputs& synthetic = *job->mutable_synthetic();
  synthetic.set_length(FLAGS_synthetic_length);
  synthetic.set_ids(FLAGS_synthetic_ids);
  synthetic.set_output(FLAGS_output);
  if (FLAGS_tokens.empty()) return absl::OkStatus();
  REQUANT_ASSIGN_OR_RETURN(*synthetic.mutable_tokens(),
                           FindTokenArray(FLAGS_tokens));
  return absl::OkStatus();
}

absl::StatusOr<BenchmarkJob> JobFromFlags() {
  BenchmarkJob job;
  REQUANT_RETURN_IF_ERROR(AddEntries(&job));
  REQUANT_RETURN_IF_ERROR(PrepareOutputs());
  job.set_batch_size(FLAGS_batch_size);
  job.set_max_batches(FLAGS_batches);
  job.set_max_bytes(kMaxPreloadedBytes);
  job.set_max_bad_records(FLAGS_max_bad_records);
  job.set_streams(FLAGS_streams);
  job.set_threads(FLAGS_threads);
  job.set_tune_each(FLAGS_tune_each);
  job.set_rounds(FLAGS_rounds);
  job.set_seconds(FLAGS_seconds);
  job.set_profile(FLAGS_profile);
  if (!FLAGS_saved_model.empty()) {
    REQUANT_RETURN_IF_ERROR(SetSavedModelDefaults(&job));
  }
  return job;
}

std::string TextReport(const BenchmarkJob& job, const BenchmarkResult& result) {
  std::string text;
  if (!job.published_name().empty()) {
    text = absl::StrCat(PublishedBenchmarkText(job, result), "\n");
  }
  return absl::StrCat(text, BenchmarkText(job, result));
}

void SetIsolation(IsolationOptions* isolation) {
  isolation->outputs = Outputs();
}

absl::StatusOr<int> Work() {
  REQUANT_ASSIGN_OR_RETURN(const BenchmarkJob job, JobFromFlags());
  REQUANT_ASSIGN_OR_RETURN(const BenchmarkResult result, Benchmark(job));
  StartReport();
  if (!FLAGS_result_out.empty()) {
    REQUANT_RETURN_IF_ERROR(
        WriteFileAtomically(FLAGS_result_out, DeterministicBytes(result)));
  }
  std::string report = FLAGS_format == "json" ? BenchmarkJson(job, result)
                                              : TextReport(job, result);
  if (!FLAGS_output_dir.empty()) {
    const std::string txt = ReportFile("txt"), json = ReportFile("json");
    REQUANT_RETURN_IF_ERROR(WriteFileAtomically(txt, TextReport(job, result)));
    REQUANT_RETURN_IF_ERROR(
        WriteFileAtomically(json, BenchmarkJson(job, result)));
    if (FLAGS_format == "text") {
      report = absl::StrCat(PublishedBenchmarkText(job, result), "note: wrote ",
                            txt, " and ", json, "\n");
    }
  }
  std::fputs(report.c_str(), stdout);
  return kExitOk;
}

}  // namespace
}  // namespace requant

int main(int argc, char** argv) {
  using namespace requant;
  return RunGraphProgram(argc, argv, {Help(), UsageError, SetIsolation, Work});
}
