// Measures how much time and memory requant convert takes on models of 28
// layers and more. See benchmarks/README.md.

#include <gflags/gflags.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/files/file.h"
#include "base/process/sibling_program.h"
#include "base/process/subprocess.h"
#include "base/seconds_since.h"
#include "base/status_macros.h"
#include "benchmarks/frame.h"
#include "graph/graph_index.h"
#include "graph/graph_io.h"
#include "graph/testing/gptj_model.h"

DEFINE_string(layers, "28,112,448", "Numbers of layers to measure.");
DEFINE_int32(repeats, 3, "Runs per measurement; the median counts.");
DEFINE_int64(variable_gigabytes, 24, "Size of the variables, one hole.");

namespace requant {
namespace {

constexpr double kMostGrowth = 1.5;
constexpr double kMostGigabytes = 1;

struct Row {
  int64_t nodes = 0;
  double megabytes = 0;
  Cost cost;
  // The peak memory of any process so far; it never decreases from row to row.
  double peak_gigabytes = 0;
};

rusage ChildrenUsage() {
  rusage usage;
  getrusage(RUSAGE_CHILDREN, &usage);
  return usage;
}

double ChildrenCpuSeconds() {
  const rusage usage = ChildrenUsage();
  const auto seconds = [](const timeval& time) {
    return time.tv_sec + time.tv_usec * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

class Benchmark {
 public:
  Benchmark(std::string converter, std::string folder)
      : converter_(std::move(converter)), folder_(std::move(folder)) {}

  absl::Status Run(const std::vector<int>& layers) {
    // Measures the fixed cost of a program with next to nothing to do.
    REQUANT_ASSIGN_OR_RETURN(const Row least, Measure(1));
    std::printf("%8s%10s%10s%10s%10s%18s%10s\n", "layers", "nodes", "MB",
                "wall s", "CPU s", "CPU us per node", "peak GB");
    std::vector<double> per_node;
    std::vector<Row> rows;
    for (int count : layers) {
      REQUANT_ASSIGN_OR_RETURN(const Row row, Measure(count));
      per_node.push_back((row.cost.cpu - least.cost.cpu) /
                         (row.nodes - least.nodes) * 1e6);
      std::printf("%8d%10ld%10.1f%10.2f%10.2f%18.2f%10.2f\n", count, row.nodes,
                  row.megabytes, row.cost.wall, row.cost.cpu, per_node.back(),
                  row.peak_gigabytes);
      rows.push_back(row);
    }
    Judge("growth from the first to the last", per_node.back() / per_node[0],
          kMostGrowth);
    Judge("peak memory of the first, GB", rows[0].peak_gigabytes,
          kMostGigabytes);
    return absl::OkStatus();
  }

 private:
  static void Judge(const char* what, double value, double most) {
    std::printf("%s: %.2f (at most %.2f: %s)\n", what, value, most,
                MetText(value <= most));
  }

  absl::StatusOr<Row> Measure(int layers) {
    GptjShape shape;
    shape.layers = layers;
    const std::string model = folder_ + "/model";
    RemoveTree(model);
    REQUANT_RETURN_IF_ERROR(
        WriteGptjModel(model, shape, FLAGS_variable_gigabytes * 1'000'000'000));
    Row row;
    REQUANT_ASSIGN_OR_RETURN(const auto graph, ReadGraph(model));
    row.nodes = CountNodes(graph);
    row.megabytes = graph.ByteSizeLong() / 1e6;
    std::vector<Cost> costs;
    for (int i = 0; i < FLAGS_repeats; ++i) {
      REQUANT_ASSIGN_OR_RETURN(const Cost cost, Convert(model));
      costs.push_back(cost);
    }
    std::sort(costs.begin(), costs.end(),
              [](const Cost& a, const Cost& b) { return a.cpu < b.cpu; });
    row.cost = costs[costs.size() / 2];
    row.peak_gigabytes = ChildrenUsage().ru_maxrss * 1024e-9;
    return row;
  }

  absl::StatusOr<Cost> Convert(const std::string& model) {
    ChildOptions child;
    child.argv = {converter_,
                  "--saved_model=" + model,
                  "--output=" + folder_ + "/converted",
                  "--overwrite",
                  "--insert_qdq",
                  "--ranges=fixed(-1,1)",
                  "--extracted_graph_def=",
                  "--converted_graph_def="};
    child.on_stdout = [](std::string_view) {};
    const double cpu = ChildrenCpuSeconds();
    const auto start = std::chrono::steady_clock::now();
    REQUANT_ASSIGN_OR_RETURN(const ChildResult result, RunChild(child));
    if (result.exit_code != 0) return absl::InternalError("convert failed");
    return Cost{SecondsSince(start), ChildrenCpuSeconds() - cpu};
  }

  const std::string converter_;
  const std::string folder_;
};

absl::Status RunBenchmark() {
  REQUANT_ASSIGN_OR_RETURN(const std::vector<int> layers,
                           NumbersOf("--layers", FLAGS_layers, 2));
  if (FLAGS_repeats < 1) {
    return absl::InvalidArgumentError("--repeats must be at least 1");
  }
  REQUANT_ASSIGN_OR_RETURN(const std::string own_path, OwnPath());
  REQUANT_ASSIGN_OR_RETURN(
      const std::string converter,
      SiblingProgram(own_path, "runtime", "convert_model"));
  return WithFolder([&](const std::string& folder) {
    return Benchmark(converter, folder).Run(layers);
  });
}

}  // namespace
}  // namespace requant

int main(int argc, char** argv) {
  return requant::BenchmarkMain(
      argc, argv,
      {"convert_benchmark",
       "Cost of requant convert by the number of layers.",
       "bazel run //benchmarks:convert_benchmark",
       {__FILE__},
       ""},
      requant::RunBenchmark);
}
