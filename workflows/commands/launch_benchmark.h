#ifndef REQUANT_WORKFLOWS_COMMANDS_LAUNCH_BENCHMARK_H_
#define REQUANT_WORKFLOWS_COMMANDS_LAUNCH_BENCHMARK_H_

// launch_benchmark: the model zoo's launch_benchmark.py for the published Wide
// & Deep recipe, with its flags. The work is evaluate_graph's.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace requant {

// The model zoo's name for the one model whose records are known.
inline constexpr char kBenchmarkModel[] = "wide_deep_large_ds";

// Is the program's main function.
int LaunchBenchmark(int argc, char** argv);

// Returns arguments with which evaluate_graph does what the flags ask for and
// sends what the graph prints to stderr. The records' declaration is in the
// folder of the shipped workflows. An error is a usage error.
absl::StatusOr<std::vector<std::string>> EvaluateArguments(
    const std::string& workflows_folder);

// Returns one sentence for each flag that is given but has no effect. The
// precision is one of them if it is not that of `graph`, which is int8 if it
// has quantized kernels. If `graph` is an error, nothing is said about it,
// because evaluate_graph will refuse it.
std::vector<std::string> IgnoredFlags(
    const absl::StatusOr<tensorflow::GraphDef>& graph);

// Returns the CPUs of a socket, which a list such as "0-3,8" in its folder,
// `nodes`/nodeN, names. For -1, which means all sockets, returns none.
absl::StatusOr<std::vector<int>> SocketCpus(
    int socket, const std::string& nodes = "/sys/devices/system/node");

// Keeps this process, and what it becomes, on these CPUs, or on all if none is
// given. CPUs that it may not use are left out; fails if none is left.
absl::Status StayOnCpus(const std::vector<int>& cpus);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_COMMANDS_LAUNCH_BENCHMARK_H_
