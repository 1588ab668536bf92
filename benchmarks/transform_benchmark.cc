// Measures how long transforms take per node on graphs of 10k, 100k and 1M
// nodes, next to TensorFlow's own if there is one. See benchmarks/README.md.

#include <gflags/gflags.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/files/file.h"
#include "base/process/subprocess.h"
#include "base/status_macros.h"
#include "benchmarks/frame.h"
#include "benchmarks/graphs.h"
#include "graph/graph_index.h"
#include "graph/graph_io.h"
#include "graph/tensorflow_library.h"
#include "graph/verify/verify.h"
#include "ranges/range_table.h"
#include "runtime/statistics/timing.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "transforms/pipeline_parser.h"
#include "transforms/qdq/qdq_sites.h"
#include "transforms/registry.h"
#include "transforms/transform.h"

DEFINE_string(sizes, "10000,100000,1000000", "Numbers of nodes to measure.");
DEFINE_int32(repeats, 3, "Runs per measurement; the median counts.");
DEFINE_bool(stock, true, "Measure TensorFlow's own transforms too.");
DEFINE_string(one_transform, "", "In a child: the transform to run.");
DEFINE_string(one_input, "", "In a child: the graph to read.");
DEFINE_string(one_output, "", "In a child: where to write the result.");

namespace requant {
namespace {

using tensorflow::GraphDef;

// Runs in a child: applies one transform to the graph in a file and reports the
// CPU time it took.
absl::Status RunOne(const std::string& text, const std::string& in,
                    const std::string& out) {
  REQUANT_ASSIGN_OR_RETURN(TransformRegistry * registry,
                           TransformRegistry::Get());
  REQUANT_ASSIGN_OR_RETURN(const auto calls, ParsePipeline(text));
  REQUANT_ASSIGN_OR_RETURN(const RegisteredTransform* transform,
                           registry->Find(calls[0].name));
  TransformContext context;
  REQUANT_ASSIGN_OR_RETURN(context.parameters,
                           ResolveParameters(transform->spec, calls[0]));
  REQUANT_ASSIGN_OR_RETURN(GraphDef graph, ReadGraph(in));
  REQUANT_ASSIGN_OR_RETURN(
      const Cost cost, CostOf([&] { return transform->run(context, &graph); }));
  if (!out.empty()) {
    REQUANT_RETURN_IF_ERROR(WriteGraph(graph, out, GraphFormat::kBinary));
  }
  ReportToParent(absl::StrFormat("%.9f", cost.cpu));
  return absl::OkStatus();
}

// Returns the median of several runs, each in its own process like those of
// transform_graph, because the allocator's state would carry over within one.
absl::StatusOr<double> MedianSeconds(const std::string& text,
                                     const std::string& in,
                                     const std::string& out) {
  std::vector<double> seconds;
  for (int i = 0; i < FLAGS_repeats; ++i) {
    REQUANT_ASSIGN_OR_RETURN(
        const std::vector<std::string> lines,
        RunSelf({"--one_transform=" + text, "--one_input=" + in,
                 "--one_output=" + out}));
    double value;
    if (!absl::SimpleAtod(lines[0], &value)) {
      return absl::InternalError(absl::StrCat("failed: ", text));
    }
    seconds.push_back(value);
  }
  return Median(seconds);
}

struct Row {
  std::string name;
  std::vector<double> nanoseconds_per_node;
};

class Benchmark {
 public:
  explicit Benchmark(std::string folder) : folder_(std::move(folder)) {}

  absl::Status Run(const std::vector<int>& sizes) {
    REQUANT_RETURN_IF_ERROR(LoadTensorFlow());
    for (int size : sizes) {
      std::fprintf(stderr, "%d nodes\n", size);
      REQUANT_RETURN_IF_ERROR(RunSize(size));
    }
    Print(sizes);
    return absl::OkStatus();
  }

 private:
  std::string Path(const std::string& name) const {
    return absl::StrCat(folder_, "/", name);
  }

  absl::Status RunSize(int size) {
    const int layers = size / kNodesOfChainLayer;
    {
      const GraphDef dynamic = QuantizedChain(layers);
      nodes_ = dynamic.node_size();
      REQUANT_RETURN_IF_ERROR(MeasureFiles(dynamic, Path("dynamic.pb")));
    }
    REQUANT_RETURN_IF_ERROR(WriteRanges(layers));
    const std::string logging =
        "insert_logging(op=RequantizationRange, show_name=true, "
        "message=\"__requant_min_max:\")";
    const std::string freeze = absl::StrCat(
        "freeze_requantization_ranges(min_max_log_file=\"", Path("log"), "\")");
    const auto freeze_by = [&](const std::string& what) {
      return absl::StrCat("freeze_", what, "(ranges_file=\"", Path(what),
                          "\")");
    };
    const struct {
      std::string transform, in, out;
    } measured[] = {
        {"stock:" + logging, Path("dynamic.pb"), ""},
        {"stock:" + freeze, Path("dynamic.pb"), ""},
        {logging, Path("dynamic.pb"), ""},
        {freeze, Path("dynamic.pb"), Path("range.pb")},
        {freeze_by("min"), Path("range.pb"), Path("min.pb")},
        {freeze_by("max"), Path("min.pb"), Path("max.pb")},
        {"fuse_quantized_matmul_and_requantize", Path("max.pb"), ""}};
    for (const auto& [transform, in, out] : measured) {
      if (!FLAGS_stock && absl::StartsWith(transform, "stock:")) continue;
      REQUANT_RETURN_IF_ERROR(Measure(transform, in, out));
    }
    return MeasureQdq(size);
  }

  // Measures a graph of nodes in functions, with a range for each tensor.
  absl::Status MeasureQdq(int size) {
    const GraphDef decoder = DecoderGraph(size);
    nodes_ = CountNodes(decoder);
    REQUANT_RETURN_IF_ERROR(
        WriteGraph(decoder, Path("decoder.pb"), GraphFormat::kBinary));
    REQUANT_ASSIGN_OR_RETURN(const QdqSites found, FindQdqSites(decoder, {}));
    RangeTable table;
    for (const QdqSite& site : found.sites) {
      RangeEntry& entry = table.FindOrAdd(site.range.first, site.range.second);
      if (entry.count == 0) entry.AddRange(-2, 3, {"bench", 1});
    }
    REQUANT_RETURN_IF_ERROR(WriteRangeTable(table, Path("ranges")));
    return Measure(absl::StrCat("insert_qdq(method=minmax, ranges_file=\"",
                                Path("ranges"), "\")"),
                   Path("decoder.pb"), "");
  }

  // Measures reading, writing and verifying the graph.
  absl::Status MeasureFiles(const GraphDef& graph, const std::string& path) {
    REQUANT_RETURN_IF_ERROR(MeasureHere("(write)", [&] {
      return WriteGraph(graph, path, GraphFormat::kBinary);
    }));
    REQUANT_RETURN_IF_ERROR(
        MeasureHere("(read)", [&] { return ReadGraph(path).status(); }));
    return MeasureHere("(verify)", [&]() -> absl::Status {
      REQUANT_ASSIGN_OR_RETURN(const auto problems, VerifyGraph(graph));
      if (problems.empty()) return absl::OkStatus();
      return absl::InternalError("the benchmark's graph is bad");
    });
  }

  absl::Status MeasureHere(const std::string& name,
                           const std::function<absl::Status()>& work) {
    REQUANT_ASSIGN_OR_RETURN(const Cost cost, CostOf(work));
    Record(name, cost.cpu);
    return absl::OkStatus();
  }

  // Writes one observation per layer, so that reading costs little.
  absl::Status WriteRanges(int layers) {
    std::string text;
    RangeTable min_table, max_table;
    for (int i = 0; i < layers; ++i) {
      const std::string name = ChainLayerName(i);
      absl::StrAppend(&text, ";", name,
                      "_range__print__;__requant_min_max:[0][6.5]\n");
      min_table.FindOrAdd(name + "_min").AddMin(-1, {"bench", i});
      max_table.FindOrAdd(name + "_max").AddMax(2, {"bench", i});
    }
    REQUANT_RETURN_IF_ERROR(WriteFileAtomically(Path("log"), text));
    REQUANT_RETURN_IF_ERROR(WriteRangeTable(min_table, Path("min")));
    return WriteRangeTable(max_table, Path("max"));
  }

  absl::Status Measure(const std::string& text, const std::string& in,
                       const std::string& out) {
    REQUANT_ASSIGN_OR_RETURN(const double seconds,
                             MedianSeconds(text, in, out));
    Record(text.substr(0, text.find('(')), seconds);
    return absl::OkStatus();
  }

  void Record(const std::string& name, double seconds) {
    Row* row = Find(name);
    if (row == nullptr) row = &rows_.emplace_back(Row{name, {}});
    row->nanoseconds_per_node.push_back(seconds * 1e9 / nodes_);
  }

  Row* Find(const std::string& name) {
    for (Row& row : rows_) {
      if (row.name == name) return &row;
    }
    return nullptr;
  }

  void Print(const std::vector<int>& sizes) {
    std::printf("%-38s", "CPU ns per node");
    for (int size : sizes) std::printf("%12d", size);
    std::printf("%14s%14s\n", "last/first", "stock/ours");
    for (const Row& row : rows_) {
      std::printf("%-38s", row.name.c_str());
      for (double ns : row.nanoseconds_per_node) std::printf("%12.0f", ns);
      std::printf("%14.2f", row.nanoseconds_per_node.back() /
                                row.nanoseconds_per_node.front());
      if (const Row* stock = Find("stock:" + row.name)) {
        std::printf("%14.1f", stock->nanoseconds_per_node.back() /
                                  row.nanoseconds_per_node.back());
      }
      std::printf("\n");
    }
  }

  const std::string folder_;
  std::vector<Row> rows_;
  int nodes_ = 0;
};

absl::Status Run() {
  if (!FLAGS_one_transform.empty()) {
    const absl::Status status =
        RunOne(FLAGS_one_transform, FLAGS_one_input, FLAGS_one_output);
    // Freeing a million nodes must not count.
    if (status.ok()) std::_Exit(kExitOk);
    return status;
  }
  REQUANT_ASSIGN_OR_RETURN(const std::vector<int> sizes,
                           NumbersOf("--sizes", FLAGS_sizes, 100));
  return WithFolder(
      [&](const std::string& folder) { return Benchmark(folder).Run(sizes); });
}

}  // namespace
}  // namespace requant

int main(int argc, char** argv) {
  return requant::BenchmarkMain(
      argc, argv,
      {"transform_benchmark",
       "Measures transforms on graphs of several sizes.",
       "bazel run //benchmarks:transform_benchmark",
       {__FILE__},
       ""},
      requant::Run);
}
