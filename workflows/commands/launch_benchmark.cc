#include "workflows/commands/launch_benchmark.h"

#include <gflags/gflags.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files/file.h"
#include "base/process/sibling_program.h"
#include "base/program/flags.h"
#include "base/status_macros.h"
#include "graph/graph_io.h"
#include "workflows/language/shipped_workflows.h"

DEFINE_string(in_graph, "", "the graph to run: a .pb or .pbtxt file");
DEFINE_string(model_name, "", "wide_deep_large_ds");
DEFINE_string(framework, "tensorflow", "tensorflow");
DEFINE_string(precision, "",
              "fp32 or int8; the graph is run as it is, and if it is of "
              "another precision, that is said");
DEFINE_string(mode, "inference", "inference");
DEFINE_bool(accuracy_only, false, "measure accuracy, which is always done");
DEFINE_bool(benchmark_only, false,
            "measure speed, which is always done; accuracy is, too");
DEFINE_int64(batch_size, 512, "records per run of the graph");
DEFINE_int32(socket_id, -1, "run on the CPUs of this socket; -1: on all");
DEFINE_string(data_location, "",
              "preprocessed records, such as "
              "dataset_preprocessed_eval.tfrecords");
DEFINE_string(docker_image, "", "ignored: the graph runs here");
DEFINE_int32(num_intra_threads, 0,
             "threads that share the work of one operation; 0: one per core");
DEFINE_int32(num_inter_threads, 0,
             "operations that run side by side; 0: TensorFlow's choice");

namespace requant {
namespace {

// Linux knows no more CPUs than this by default.
constexpr int kMostCpus = CPU_SETSIZE;

absl::Status CheckChoice(const std::string& flag, const std::string& value,
                         const std::vector<std::string>& choices,
                         const std::string& advice) {
  if (value.empty() ||
      std::find(choices.begin(), choices.end(), value) != choices.end()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " \"", value, "\": ", advice));
}

absl::Status CheckFlags() {
  for (const auto& [flag, value] :
       {std::make_pair("--in-graph", FLAGS_in_graph),
        std::make_pair("--data-location", FLAGS_data_location),
        std::make_pair("--model-name", FLAGS_model_name)}) {
    if (value.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(flag, " is missing"));
    }
  }
  REQUANT_RETURN_IF_ERROR(CheckChoice(
      "--model-name", FLAGS_model_name, {kBenchmarkModel},
      absl::StrCat("only ", kBenchmarkModel,
                   "'s records are known; describe yours in a file and use "
                   "requant evaluate --dataset")));
  REQUANT_RETURN_IF_ERROR(CheckChoice("--framework", FLAGS_framework,
                                      {"tensorflow"},
                                      "only tensorflow is known"));
  REQUANT_RETURN_IF_ERROR(CheckChoice("--precision", FLAGS_precision,
                                      {"fp32", "int8"},
                                      "only fp32 and int8 are known"));
  REQUANT_RETURN_IF_ERROR(CheckChoice("--mode", FLAGS_mode, {"inference"},
                                      "only inference is known"));
  if (FLAGS_batch_size < 1) {
    return absl::InvalidArgumentError("--batch-size must be at least 1");
  }
  return absl::OkStatus();
}

bool IsInt8(const tensorflow::GraphDef& graph) {
  return std::any_of(graph.node().begin(), graph.node().end(),
                     [](const tensorflow::NodeDef& node) {
                       return absl::StartsWith(node.op(), "Quantized") ||
                              absl::StartsWith(node.op(), "_Quantized");
                     });
}

// Adds the CPUs of a range such as "3" or "0-3".
bool AddCpus(std::string_view range, std::vector<int>* cpus) {
  const std::vector<std::string_view> ends = absl::StrSplit(range, '-');
  int first, last;
  if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &first) ||
      !absl::SimpleAtoi(ends.back(), &last) || first < 0 || last < first ||
      last >= kMostCpus) {
    return false;
  }
  for (int cpu = first; cpu <= last; ++cpu) cpus->push_back(cpu);
  return true;
}

ProgramHelp LaunchBenchmarkHelp() {
  ProgramHelp help;
  help.name = ProgramName();
  help.summary =
      "runs a Wide & Deep graph on preprocessed records and prints its "
      "accuracy and speed. Lines that the graph prints go to stderr.";
  help.usage =
      "$0 --in-graph final_int8_wide_deep.pb --model-name "
      "wide_deep_large_ds --framework tensorflow --precision int8 --mode "
      "inference --accuracy-only --batch-size=1000 --socket-id 0 "
      "--data-location dataset_preprocessed_eval.tfrecords";
  help.flag_files = {__FILE__};
  help.footer =
      "requant evaluate does the same for any model and records, and compares "
      "graphs.\nExit codes: 0 done, 1 failed, 2 wrong usage.";
  return help;
}

void ChooseSocket() {
  const absl::StatusOr<std::vector<int>> cpus = SocketCpus(FLAGS_socket_id);
  const absl::Status status = cpus.ok() ? StayOnCpus(*cpus) : cpus.status();
  if (status.ok()) return;
  Say(ProgramName(), absl::StrCat("--socket-id ", FLAGS_socket_id,
                                  " is ignored: ", status.message()));
}

void SayWhatIsIgnored(const std::vector<std::string>& positional) {
  for (const std::string& remark : IgnoredFlags(ReadGraph(FLAGS_in_graph))) {
    Say(ProgramName(), remark);
  }
  for (const std::string& argument : positional) {
    Say(ProgramName(),
        absl::StrCat("\"", argument, "\" is ignored: only flags are known"));
  }
}

}  // namespace

absl::StatusOr<std::vector<std::string>> EvaluateArguments(
    const std::string& workflows_folder) {
  REQUANT_RETURN_IF_ERROR(CheckFlags());
  return std::vector<std::string>{
      absl::StrCat("--graph=", FLAGS_in_graph),
      absl::StrCat("--dataset=", workflows_folder,
                   "/wide_deep/preprocessed.textproto"),
      absl::StrCat("--data=", FLAGS_data_location),
      absl::StrCat("--batch_size=", FLAGS_batch_size),
      absl::StrCat("--threads=", FLAGS_num_intra_threads),
      absl::StrCat("--inter_op_threads=", FLAGS_num_inter_threads),
      "--log_file=-"};
}

std::vector<std::string> IgnoredFlags(
    const absl::StatusOr<tensorflow::GraphDef>& graph) {
  std::vector<std::string> ignored;
  if (!FLAGS_docker_image.empty()) {
    ignored.push_back(absl::StrCat("--docker-image ", FLAGS_docker_image,
                                   " is ignored: the graph runs here"));
  }
  if (FLAGS_benchmark_only) {
    ignored.push_back(
        "--benchmark-only is ignored: accuracy is measured as well");
  }
  const std::string found = graph.ok() && IsInt8(*graph) ? "int8" : "fp32";
  if (graph.ok() && !FLAGS_precision.empty() && FLAGS_precision != found) {
    ignored.push_back(absl::StrCat("--precision ", FLAGS_precision,
                                   " is ignored: ", FLAGS_in_graph,
                                   " is a graph of ", found));
  }
  return ignored;
}

absl::StatusOr<std::vector<int>> SocketCpus(int socket,
                                            const std::string& nodes) {
  std::vector<int> cpus;
  if (socket == -1) return cpus;
  const std::string path = absl::StrCat(nodes, "/node", socket, "/cpulist");
  const absl::StatusOr<std::string> list = ReadFile(path);
  if (!list.ok()) {
    return absl::NotFoundError(
        absl::StrCat("this machine shows no socket ", socket, " (", path, ")"));
  }
  for (std::string_view range :
       absl::StrSplit(absl::StripAsciiWhitespace(*list), ',')) {
    if (!AddCpus(range, &cpus)) {
      return absl::DataLossError(absl::StrCat(path, " has no list of CPUs"));
    }
  }
  return cpus;
}

absl::Status StayOnCpus(const std::vector<int>& cpus) {
  if (cpus.empty()) return absl::OkStatus();
  cpu_set_t allowed, wanted;
  CPU_ZERO(&wanted);
  for (int cpu : cpus) CPU_SET(cpu, &wanted);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
    return absl::InternalError(std::strerror(errno));
  }
  CPU_AND(&wanted, &wanted, &allowed);
  if (CPU_COUNT(&wanted) == 0) {
    return absl::FailedPreconditionError(
        "this process may use none of its CPUs");
  }
  if (sched_setaffinity(0, sizeof(wanted), &wanted) != 0) {
    return absl::InternalError(std::strerror(errno));
  }
  return absl::OkStatus();
}

int LaunchBenchmark(int argc, char** argv) {
  std::vector<std::string> positional;
  if (auto code = ParseFlags(argc, argv, LaunchBenchmarkHelp(), &positional)) {
    return *code;
  }
  const absl::StatusOr<std::string> folder = ShippedWorkflowsFolder();
  if (!folder.ok()) return ReportFailure(ProgramName(), folder.status());
  const absl::StatusOr<std::vector<std::string>> arguments =
      EvaluateArguments(*folder);
  if (!arguments.ok()) {
    return ReportUsage(ProgramName(), arguments.status().message());
  }
  SayWhatIsIgnored(positional);
  ChooseSocket();
  return ReportFailure(ProgramName(),
                       BecomeSiblingProgram("runtime", "evaluate_graph",
                                            *arguments, ProgramName()));
}

}  // namespace requant
