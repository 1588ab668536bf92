// int8_benchmark: compares our int8 graph, a peer's and the fp32 graph both
// were made from, in one run: their accuracy and speed.

#include <gflags/gflags.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/process/machine.h"
#include "base/process/subprocess.h"
#include "base/process/tensorflow_child.h"
#include "base/program/flags.h"
#include "base/program/isolation.h"
#include "base/seconds_since.h"
#include "base/status_macros.h"
#include "benchmarks/frame.h"
#include "benchmarks/int8_figures.h"
#include "benchmarks/matmul_chain.h"
#include "graph/graph_io.h"
#include "runtime/benchmark/benchmark.h"
#include "runtime/benchmark/stream_pool.h"
#include "runtime/evaluation.pb.h"
#include "runtime/evaluation/evaluate.h"
#include "runtime/session/job.pb.h"
#include "runtime/session/job_flags.h"
#include "runtime/statistics/timing.h"

DEFINE_string(fp32, "", "the fp32 graph that the others were made from");
DEFINE_string(int8, "", "our int8 graph");
DEFINE_string(peer, "", "the peer's int8 graph; empty: there is none");
DEFINE_string(dataset, "", "a declaration (.textproto) of records and inputs");
DEFINE_string(data, "", "record files, instead of the declaration's");
DEFINE_string(output, "", "the tensor to score, instead of the declaration's");
DEFINE_int64(records, 0, "records that accuracy is measured on; 0: all");
DEFINE_int64(batch_size, 512, "records per run of a graph");
DEFINE_int32(rounds, 11, "how often each graph's speed is measured");
DEFINE_double(seconds, 0.3, "how long each graph runs in a round, at least");
DEFINE_int32(streams, 0,
             "measure speeds only with so many batches side by side; 0: all "
             "that suit the machine");
DEFINE_int32(threads, 0, "and only with so many threads for each of them");
DEFINE_string(quantize, "",
              "a shell command that makes --int8 from --fp32, to be timed");
DEFINE_string(quantize_peer, "",
              "a shell command that makes --peer from --fp32, to be timed");
DEFINE_int32(quantize_runs, 3, "how often those run; the median counts");

namespace requant {
namespace {

constexpr char kProgram[] = "int8_benchmark";
// All graphs run over this many batches of the chains' records. They are few,
// so that a chain's input is about as close to the CPU as in the whole graph.
constexpr int64_t kBatches = 16;
constexpr int64_t kMaxPreloadedBytes = 200'000'000;

// The parent passes the measured seconds of the commands in these variables,
// because the child that runs graphs has its own limits and environment.
constexpr char kOurSeconds[] = "REQUANT_BENCHMARK_OUR_SECONDS";
constexpr char kPeerSeconds[] = "REQUANT_BENCHMARK_PEER_SECONDS";

void Say(const std::string& what) { requant::Say(kProgram, what); }

// Runs a shell command several times and returns the median time in seconds.
absl::StatusOr<double> TimeCommand(const std::string& command) {
  std::vector<double> seconds;
  for (int run = 0; run < FLAGS_quantize_runs; ++run) {
    Say(absl::StrCat("running ", command));
    ChildOptions options;
    options.argv = {"/bin/sh", "-c", command};
    options.on_stdout = [](std::string_view line) { Say(std::string(line)); };
    const auto start = std::chrono::steady_clock::now();
    REQUANT_ASSIGN_OR_RETURN(const ChildResult result, RunChild(options));
    if (result.exit_code != 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("the command failed: ", command));
    }
    seconds.push_back(SecondsSince(start));
  }
  return Median(seconds);
}

// Measures the commands, unless this is the child.
absl::Status TimeCommands() {
  for (const auto& [command, variable] :
       {std::pair(FLAGS_quantize, kOurSeconds),
        std::pair(FLAGS_quantize_peer, kPeerSeconds)}) {
    if (command.empty() || std::getenv(variable) != nullptr) continue;
    REQUANT_ASSIGN_OR_RETURN(const double seconds, TimeCommand(command));
    setenv(variable, absl::StrCat(seconds).c_str(), 1);
  }
  return absl::OkStatus();
}

std::optional<double> MeasuredSeconds(const char* variable) {
  const char* const text = std::getenv(variable);
  double seconds;
  if (text == nullptr || !absl::SimpleAtod(text, &seconds)) return std::nullopt;
  return seconds;
}

absl::StatusOr<DatasetSpec> Dataset() {
  return ReadJobDataset(FLAGS_dataset, FLAGS_data, FLAGS_output, "score");
}

absl::StatusOr<Comparison> Compare(const std::string& graph) {
  Say(absl::StrCat("comparing ", graph, " with ", FLAGS_fp32));
  EvaluateOptions options;
  options.model = MakeModelSpec(graph, "", "");
  options.baseline = MakeModelSpec(FLAGS_fp32, "", "");
  REQUANT_ASSIGN_OR_RETURN(options.dataset, Dataset());
  options.batch_size = FLAGS_batch_size;
  options.max_records = FLAGS_records;
  REQUANT_ASSIGN_OR_RETURN(const EvaluateResult result,
                           Evaluate(options, nullptr));
  return result.comparison();
}

absl::StatusOr<Int8Graph> Examine(const std::string& graph,
                                  const char* seconds) {
  Int8Graph figures;
  figures.quantize_seconds = MeasuredSeconds(seconds);
  REQUANT_ASSIGN_OR_RETURN(const int64_t size, BytesOf(graph));
  REQUANT_ASSIGN_OR_RETURN(const int64_t fp32_size, BytesOf(FLAGS_fp32));
  figures.size_ratio = static_cast<double>(size) / fp32_size;
  REQUANT_ASSIGN_OR_RETURN(figures.comparison, Compare(graph));
  return figures;
}

// Adds a graph and its matmul chain, which it cuts out of it into `folder`.
absl::Status AddEntries(const std::string& graph, const std::string& folder,
                        BenchmarkJob* job) {
  BenchmarkEntry& whole = *job->add_entry();
  *whole.mutable_model() = MakeModelSpec(graph, "", "");
  whole.set_dataset_name(FLAGS_dataset);
  REQUANT_ASSIGN_OR_RETURN(*whole.mutable_dataset(), Dataset());

  REQUANT_ASSIGN_OR_RETURN(const auto graph_def, ReadGraph(graph));
  const absl::StatusOr<MatMulChain> chain = CutMatMulChain(graph_def);
  if (!chain.ok()) {
    return absl::Status(chain.status().code(),
                        absl::StrCat(graph, ": ", chain.status().message()));
  }
  const std::string path =
      absl::StrCat(folder, "/chain_", job->entry_size(), ".pb");
  REQUANT_RETURN_IF_ERROR(WriteGraph(chain->graph, path, GraphFormat::kBinary));
  Say(absl::StrCat(graph, ": a chain of ", chain->layers, " layers on ",
                   chain->width, " inputs"));
  BenchmarkEntry& alone = *job->add_entry();
  *alone.mutable_model() = MakeModelSpec(path, "", "");
  alone.set_dataset_name(path + ".npy");
  REQUANT_ASSIGN_OR_RETURN(
      *alone.mutable_dataset(),
      WriteChainRecords(*chain, kBatches * FLAGS_batch_size, path + ".npy"));
  return absl::OkStatus();
}

// Returns the job with its graphs in the order of SpeedEntry.
absl::StatusOr<BenchmarkJob> SpeedJob(const std::string& folder) {
  BenchmarkJob job;
  for (const std::string& graph : {FLAGS_fp32, FLAGS_int8, FLAGS_peer}) {
    if (graph.empty()) continue;
    REQUANT_RETURN_IF_ERROR(AddEntries(graph, folder, &job));
  }
  job.set_batch_size(FLAGS_batch_size);
  job.set_max_batches(kBatches);
  job.set_max_bytes(kMaxPreloadedBytes);
  job.set_rounds(FLAGS_rounds);
  job.set_seconds(FLAGS_seconds);
  return job;
}

absl::StatusOr<BenchmarkResult> Measure(const BenchmarkJob& job,
                                        const std::string& setting) {
  Say(absl::StrCat("measuring speeds, ", setting));
  return Benchmark(job);
}

absl::Status MeasureSpeeds(const std::string& folder, Int8Figures* figures) {
  REQUANT_ASSIGN_OR_RETURN(BenchmarkJob job, SpeedJob(folder));
  const std::vector<StreamSetting> settings =
      SettingsToTry(ReadCoreLimits().usable(), FLAGS_streams, FLAGS_threads);
  for (const StreamSetting& setting : settings) {
    job.set_streams(setting.streams());
    job.set_threads(setting.threads());
    const std::string name =
        absl::StrCat(setting.streams(), " x ", setting.threads());
    REQUANT_ASSIGN_OR_RETURN(BenchmarkResult result, Measure(job, name));
    figures->speed.push_back({name, std::move(result)});
  }
  if (settings.size() > 1) {
    job.set_streams(FLAGS_streams);
    job.set_threads(FLAGS_threads);
    job.set_tune_each(true);
    constexpr char kOwnBest[] = "each at its best";
    REQUANT_ASSIGN_OR_RETURN(BenchmarkResult result, Measure(job, kOwnBest));
    figures->speed.push_back({kOwnBest, std::move(result)});
  }
  job.set_streams(1);
  job.set_threads(1);
  job.set_tune_each(false);
  job.set_profile(true);
  REQUANT_ASSIGN_OR_RETURN(figures->one_core, Measure(job, "one core"));
  return absl::OkStatus();
}

absl::StatusOr<Int8Figures> Measurements() {
  Int8Figures figures;
  figures.isa = EffectiveIsa(ProbeCpu(), CachedOneDnnIsaCap());
  REQUANT_ASSIGN_OR_RETURN(figures.ours, Examine(FLAGS_int8, kOurSeconds));
  if (!FLAGS_peer.empty()) {
    REQUANT_ASSIGN_OR_RETURN(figures.peer, Examine(FLAGS_peer, kPeerSeconds));
  }
  REQUANT_RETURN_IF_ERROR(WithFolder([&](const std::string& folder) {
    return MeasureSpeeds(folder, &figures);
  }));
  return figures;
}

std::string Heading(const Int8Figures& figures) {
  const std::string cap = CachedOneDnnIsaCap();
  return absl::StrCat(
      figures.ours.comparison.records(), " records in batches of ",
      FLAGS_batch_size, "; int8 arithmetic: ", IsaName(figures.isa), " (",
      ProbeCpu().model, ", ", ReadCoreLimits().usable(), " cores",
      cap.empty() ? "" : ", ONEDNN_MAX_CPU_ISA=", cap, ")\n",
      "speeds are ratios of the same rounds, with 95 % intervals; S x T: S "
      "streams of T threads\n\n");
}

// Returns what is wrong with the flags, or "".
std::string UsageError() {
  if (FLAGS_fp32.empty()) return "--fp32 is missing";
  if (FLAGS_int8.empty()) return "--int8 is missing";
  if (FLAGS_dataset.empty()) return "--dataset is missing";
  if (FLAGS_peer.empty() && !FLAGS_quantize_peer.empty()) {
    return "--quantize_peer needs --peer";
  }
  if (FLAGS_records < 0) return "--records must be at least 0";
  if (FLAGS_batch_size < 1) return "--batch_size must be at least 1";
  if (FLAGS_rounds < 1) return "--rounds must be at least 1";
  if (!(FLAGS_seconds >= 0)) return "--seconds must be at least 0";
  if (FLAGS_streams < 0 || FLAGS_threads < 0) {
    return "--streams and --threads must be at least 0";
  }
  if (FLAGS_quantize_runs < 1) return "--quantize_runs must be at least 1";
  return "";
}

int Run(int argc, char** argv) {
  std::vector<std::string> positional;
  const ProgramHelp help = {
      kProgram,
      "sets our int8 graph and a peer's beside the fp32 graph that both were "
      "made from: accuracy, outputs, speed, size and the time to make them.",
      "int8_benchmark --fp32=fp32.pb --int8=int8.pb --peer=peer_int8.pb "
      "--dataset=data.textproto",
      {__FILE__},
      "ONEDNN_MAX_CPU_ISA in the environment shows what a lesser CPU does.\n"
      "Exit code: 0 done (also when targets are missed), 1 failed, 2 usage."};
  if (const auto code = ParseFlags(argc, argv, help, &positional)) return *code;
  // Paths are relative to the folder where `bazel run` was called.
  const char* folder = std::getenv("BUILD_WORKING_DIRECTORY");
  if (folder != nullptr && chdir(folder) != 0) {
    return ReportFailure(kProgram, absl::FailedPreconditionError(
                                       absl::StrCat("cannot enter ", folder)));
  }
  const std::string usage_error = UsageError();
  if (!usage_error.empty()) return ReportUsage(kProgram, usage_error);
  const absl::Status timed = TimeCommands();
  if (!timed.ok()) return ReportFailure(kProgram, timed);
  IsolationOptions isolation;
  isolation.program = kProgram;
  isolation.arguments.assign(argv + 1, argv + argc);
  isolation.graph = GraphLimits();
  return RunIsolated(isolation, []() -> absl::StatusOr<int> {
    REQUANT_ASSIGN_OR_RETURN(const Int8Figures figures, Measurements());
    StartReport();
    std::fputs(absl::StrCat(Heading(figures), FiguresText(figures)).c_str(),
               stdout);
    return kExitOk;
  });
}

}  // namespace
}  // namespace requant

int main(int argc, char** argv) {
  return requant::FinishOutput(requant::kProgram, requant::Run(argc, argv));
}
