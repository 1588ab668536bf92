#include "workflows/commands/launch_benchmark.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files/file.h"
#include "base/status_macros.h"

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

absl::Status CheckFlags(const BenchmarkFlags& flags) {
  if (flags.in_graph.empty()) {
    return absl::InvalidArgumentError("--in-graph is missing");
  }
  if (flags.data_location.empty()) {
    return absl::InvalidArgumentError("--data-location is missing");
  }
  if (flags.model_name.empty()) {
    return absl::InvalidArgumentError("--model-name is missing");
  }
  REQUANT_RETURN_IF_ERROR(CheckChoice(
      "--model-name", flags.model_name, {kBenchmarkModel},
      absl::StrCat("only ", kBenchmarkModel,
                   "'s records are known; describe yours in a file and use "
                   "requant evaluate --dataset")));
  REQUANT_RETURN_IF_ERROR(CheckChoice("--framework", flags.framework,
                                      {"tensorflow"},
                                      "only tensorflow is known"));
  REQUANT_RETURN_IF_ERROR(CheckChoice("--precision", flags.precision,
                                      {"fp32", "int8"},
                                      "only fp32 and int8 are known"));
  REQUANT_RETURN_IF_ERROR(CheckChoice("--mode", flags.mode, {"inference"},
                                      "only inference is known"));
  if (flags.batch_size < 1) {
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

// Adds the CPUs of "3" or "0-3".
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

}  // namespace

absl::StatusOr<std::vector<std::string>> EvaluateArguments(
    const BenchmarkFlags& flags, const std::string& workflows_folder) {
  REQUANT_RETURN_IF_ERROR(CheckFlags(flags));
  return std::vector<std::string>{
      absl::StrCat("--graph=", flags.in_graph),
      absl::StrCat("--dataset=", workflows_folder,
                   "/wide_deep/preprocessed.textproto"),
      absl::StrCat("--data=", flags.data_location),
      absl::StrCat("--batch_size=", flags.batch_size),
      absl::StrCat("--threads=", flags.threads),
      absl::StrCat("--inter_op_threads=", flags.inter_op_threads),
      "--log_file=-"};
}

std::vector<std::string> IgnoredFlags(const BenchmarkFlags& flags) {
  std::vector<std::string> ignored;
  if (!flags.docker_image.empty()) {
    ignored.push_back(absl::StrCat("--docker-image ", flags.docker_image,
                                   " is ignored: the graph runs here"));
  }
  if (flags.benchmark_only) {
    ignored.push_back(
        "--benchmark-only is ignored: accuracy is measured as well");
  }
  return ignored;
}

std::string PrecisionRemark(const BenchmarkFlags& flags,
                            const tensorflow::GraphDef& graph) {
  const std::string found = IsInt8(graph) ? "int8" : "fp32";
  if (flags.precision.empty() || flags.precision == found) return "";
  return absl::StrCat("--precision ", flags.precision,
                      " is ignored: ", flags.in_graph, " is a graph of ",
                      found);
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
  CPU_ZERO(&allowed);
  CPU_ZERO(&wanted);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
    return absl::InternalError(std::strerror(errno));
  }
  for (int cpu : cpus) {
    if (cpu >= 0 && cpu < kMostCpus && CPU_ISSET(cpu, &allowed)) {
      CPU_SET(cpu, &wanted);
    }
  }
  if (CPU_COUNT(&wanted) == 0) {
    return absl::FailedPreconditionError(
        "this process may use none of its CPUs");
  }
  if (sched_setaffinity(0, sizeof(wanted), &wanted) != 0) {
    return absl::InternalError(std::strerror(errno));
  }
  return absl::OkStatus();
}

}  // namespace requant
