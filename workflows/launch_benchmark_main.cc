// launch_benchmark: the model zoo's launch_benchmark.py for the published Wide
// & Deep recipe, with its flags. The work is evaluate_graph's.

#include <gflags/gflags.h>

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/process/sibling_program.h"
#include "base/program/flags.h"
#include "graph/graph_io.h"
#include "workflows/commands/launch_benchmark.h"
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

const char* const kProgram = ProgramName();

ProgramHelp Help() {
  ProgramHelp help;
  help.name = kProgram;
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

BenchmarkFlags GivenFlags() {
  BenchmarkFlags flags;
  flags.in_graph = FLAGS_in_graph;
  flags.model_name = FLAGS_model_name;
  flags.framework = FLAGS_framework;
  flags.precision = FLAGS_precision;
  flags.mode = FLAGS_mode;
  flags.data_location = FLAGS_data_location;
  flags.docker_image = FLAGS_docker_image;
  flags.benchmark_only = FLAGS_benchmark_only;
  flags.batch_size = FLAGS_batch_size;
  flags.threads = FLAGS_num_intra_threads;
  flags.inter_op_threads = FLAGS_num_inter_threads;
  return flags;
}

void Say(const std::string& remark) {
  if (remark.empty()) return;
  requant::Say(kProgram, remark);
}

void ChooseSocket() {
  const absl::StatusOr<std::vector<int>> cpus = SocketCpus(FLAGS_socket_id);
  const absl::Status status = cpus.ok() ? StayOnCpus(*cpus) : cpus.status();
  if (!status.ok()) {
    Say(absl::StrCat("--socket-id ", FLAGS_socket_id,
                     " is ignored: ", status.message()));
  }
}

void SayWhatIsIgnored(const BenchmarkFlags& flags,
                      const std::vector<std::string>& positional) {
  for (const std::string& remark : IgnoredFlags(flags)) Say(remark);
  for (const std::string& argument : positional) {
    Say(absl::StrCat("\"", argument, "\" is ignored: only flags are known"));
  }
  // A graph that cannot be read is evaluate_graph's to refuse.
  const absl::StatusOr<tensorflow::GraphDef> graph = ReadGraph(flags.in_graph);
  if (graph.ok()) Say(PrecisionRemark(flags, *graph));
}

int Main(int argc, char** argv) {
  std::vector<std::string> positional;
  if (auto code = ParseFlags(argc, argv, Help(), &positional)) return *code;
  const BenchmarkFlags flags = GivenFlags();
  const absl::StatusOr<std::string> folder = ShippedWorkflowsFolder();
  if (!folder.ok()) return ReportFailure(kProgram, folder.status());
  const absl::StatusOr<std::vector<std::string>> arguments =
      EvaluateArguments(flags, *folder);
  if (!arguments.ok()) {
    return ReportUsage(kProgram, arguments.status().message());
  }
  SayWhatIsIgnored(flags, positional);
  ChooseSocket();
  return ReportFailure(
      kProgram,
      BecomeSiblingProgram("runtime", "evaluate_graph", *arguments, kProgram));
}

}  // namespace
}  // namespace requant

int main(int argc, char** argv) { return requant::Main(argc, argv); }
