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

// The zoo's name of the one model whose records are known.
inline constexpr char kBenchmarkModel[] = "wide_deep_large_ds";

// Does what main does.
int LaunchBenchmark(int argc, char** argv);

// Returns the arguments of evaluate_graph that do what the flags ask for, with
// the records' declaration from the folder of the shipped workflows. What the
// graph prints goes to stderr. An error is one of usage.
absl::StatusOr<std::vector<std::string>> EvaluateArguments(
    const std::string& workflows_folder);

// Returns what to say about flags that are given and do not change what is
// done: one sentence each. One of them is the precision, when it is not that of
// `graph`, which is int8 if it has quantized kernels; an error: nothing is said
// of a graph that evaluate_graph will refuse.
std::vector<std::string> IgnoredFlags(
    const absl::StatusOr<tensorflow::GraphDef>& graph);

// Returns the CPUs of a socket, as a list such as "0-3,8" in the folder `nodes`
// (one folder nodeN per socket). -1 is all sockets: no CPUs.
absl::StatusOr<std::vector<int>> SocketCpus(
    int socket, const std::string& nodes = "/sys/devices/system/node");

// Keeps this process, and what it becomes, on those CPUs; none: on all. CPUs
// that it may not use are left out; fails if none is left.
absl::Status StayOnCpus(const std::vector<int>& cpus);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_COMMANDS_LAUNCH_BENCHMARK_H_
