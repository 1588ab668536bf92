// How long transforms take per node on graphs of 10k, 100k and 1M nodes, next
// to TensorFlow's own where it has one. See benchmarks/README.md.

#include <gflags/gflags.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files/file.h"
#include "base/process/subprocess.h"
#include "base/program/flags.h"
#include "base/status_macros.h"
#include "benchmarks/decoder_graph.h"
#include "graph/const_node.h"
#include "graph/graph_index.h"
#include "graph/graph_io.h"
#include "graph/tensorflow_library.h"
#include "graph/verify/verify.h"
#include "ranges/range_table.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor.h"
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
DEFINE_string(work_dir, "/tmp", "Where range tables and logs are written.");

namespace requant {
namespace {

using tensorflow::DataType;
using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::Tensor;

// A long chain of quantized layers with dynamic ranges, eleven nodes each.
class ChainBuilder {
 public:
  explicit ChainBuilder(int nodes) : layers_(nodes / 11) {
    weights_.flat<tensorflow::qint8>().setConstant(3);
    bias_.flat<float>().setConstant(0.5f);
    Node("x", "Placeholder", {}, {{"dtype", tensorflow::DT_FLOAT}});
    Tensor axes(tensorflow::DT_INT32, {2});
    axes.flat<int>()(0) = 0;
    axes.flat<int>()(1) = 1;
    *graph_.add_node() = MakeConst("axes", axes);
    std::string last = "x";
    for (int i = 0; i < layers_; ++i) last = Layer(Name(i), last);
  }

  GraphDef TakeGraph() { return std::move(graph_); }
  int layers() const { return layers_; }
  static std::string Name(int i) {
    return absl::StrCat("import/dnn/hiddenlayer_", i);
  }

 private:
  std::string Layer(const std::string& name, const std::string& input) {
    const auto float_type = std::make_pair("T", tensorflow::DT_FLOAT);
    Node(name + "_min", "Min", {input, "axes"}, {float_type});
    Node(name + "_max", "Max", {input, "axes"}, {float_type});
    Node(name + "_quantize", "QuantizeV2",
         {input, name + "_min", name + "_max"}, {{"T", tensorflow::DT_QUINT8}});
    *graph_.add_node() = MakeConst(name + "_weights", weights_);
    *graph_.add_node() = MakeConst(name + "_bias", bias_);
    *graph_.add_node() = MakeScalarConst(name + "_weight_min", -1);
    *graph_.add_node() = MakeScalarConst(name + "_weight_max", 1);
    const std::string q = name + "_quantize", m = name + "_matmul";
    Node(m, "QuantizedMatMulWithBiasAndRelu",
         {q, name + "_weights", name + "_bias", q + ":1", q + ":2",
          name + "_weight_min", name + "_weight_max"},
         {{"T1", tensorflow::DT_QUINT8},
          {"T2", tensorflow::DT_QINT8},
          {"Toutput", tensorflow::DT_QINT32}});
    const std::string r = name + "_range";
    Node(r, "RequantizationRange", {m, m + ":1", m + ":2"},
         {{"Tinput", tensorflow::DT_QINT32}});
    Node(name, "Requantize", {m, m + ":1", m + ":2", r, r + ":1"},
         {{"Tinput", tensorflow::DT_QINT32},
          {"out_type", tensorflow::DT_QUINT8}});
    Node(name + "_float", "Dequantize", {name, name + ":1", name + ":2"},
         {{"T", tensorflow::DT_QUINT8}});
    return name + "_float";
  }

  void Node(const std::string& name, const std::string& op,
            const std::vector<std::string>& inputs,
            const std::vector<std::pair<std::string, DataType>>& types) {
    NodeDef* node = graph_.add_node();
    node->set_name(name);
    node->set_op(op);
    for (const std::string& input : inputs) node->add_input(input);
    for (const auto& [attribute, type] : types) {
      (*node->mutable_attr())[attribute].set_type(type);
    }
  }

  GraphDef graph_;
  int layers_;
  Tensor weights_{tensorflow::DT_QINT8, {4, 4}};
  Tensor bias_{tensorflow::DT_FLOAT, {4}};
};

// CPU time of this process: other work on the machine does not count.
double CpuSeconds(const std::function<void()>& work) {
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

// In a child: runs one transform on the graph in a file and prints the CPU time
// it took.
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
  absl::Status status;
  const double seconds =
      CpuSeconds([&] { status = transform->run(context, &graph); });
  REQUANT_RETURN_IF_ERROR(status);
  if (!out.empty()) {
    REQUANT_RETURN_IF_ERROR(WriteGraph(graph, out, GraphFormat::kBinary));
  }
  std::printf("%.9f\n", seconds);
  return absl::OkStatus();
}

// The median of several runs, each in a process of its own as transform_graph
// runs them: in one process the allocator's state would carry over.
absl::StatusOr<double> MedianSeconds(const std::string& text,
                                     const std::string& in,
                                     const std::string& out) {
  std::vector<double> seconds;
  REQUANT_ASSIGN_OR_RETURN(const std::string self, OwnPath());
  for (int i = 0; i < FLAGS_repeats; ++i) {
    ChildOptions child;
    child.argv = {self, "--one_transform=" + text, "--one_input=" + in,
                  "--one_output=" + out};
    child.on_stdout = [&](std::string_view line) {
      double value;
      if (absl::SimpleAtod(line, &value)) seconds.push_back(value);
    };
    REQUANT_ASSIGN_OR_RETURN(const ChildResult result, RunChild(child));
    if (result.exit_code != 0 || seconds.size() != static_cast<size_t>(i + 1)) {
      return absl::InternalError(absl::StrCat("failed: ", text));
    }
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

struct Row {
  std::string name;
  std::vector<double> nanoseconds_per_node;
};

class Benchmark {
 public:
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
    return absl::StrCat(FLAGS_work_dir, "/requant_bench_", name);
  }

  absl::Status RunSize(int size) {
    ChainBuilder builder(size);
    const int layers = builder.layers();
    {
      const GraphDef dynamic = builder.TakeGraph();
      nodes_ = dynamic.node_size();
      REQUANT_RETURN_IF_ERROR(MeasureFiles(dynamic, Path("dynamic.pb")));
    }
    REQUANT_RETURN_IF_ERROR(WriteRanges(layers));
    const std::string logging =
        "insert_logging(op=RequantizationRange, show_name=true, "
        "message=\"__requant_min_max:\")";
    const std::string freeze = absl::StrCat(
        "freeze_requantization_ranges(min_max_log_file=\"", Path("log"), "\")");
    for (const std::string& transform : {logging, freeze}) {
      if (!FLAGS_stock) continue;
      REQUANT_RETURN_IF_ERROR(
          Measure("stock:" + transform, Path("dynamic.pb"), ""));
    }
    REQUANT_RETURN_IF_ERROR(Measure(logging, Path("dynamic.pb"), ""));
    REQUANT_RETURN_IF_ERROR(
        Measure(freeze, Path("dynamic.pb"), Path("range.pb")));
    REQUANT_RETURN_IF_ERROR(
        Measure(absl::StrCat("freeze_min(ranges_file=\"", Path("min"), "\")"),
                Path("range.pb"), Path("min.pb")));
    REQUANT_RETURN_IF_ERROR(
        Measure(absl::StrCat("freeze_max(ranges_file=\"", Path("max"), "\")"),
                Path("min.pb"), Path("max.pb")));
    REQUANT_RETURN_IF_ERROR(
        Measure("fuse_quantized_matmul_and_requantize", Path("max.pb"), ""));
    for (const char* name :
         {"dynamic.pb", "range.pb", "min.pb", "max.pb", "log", "min", "max"}) {
      unlink(Path(name).c_str());
    }
    return MeasureQdq(size);
  }

  // On a graph whose nodes are in functions, each tensor with its range.
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
    REQUANT_RETURN_IF_ERROR(
        Measure(absl::StrCat("insert_qdq(method=minmax, ranges_file=\"",
                             Path("ranges"), "\")"),
                Path("decoder.pb"), ""));
    for (const char* name : {"decoder.pb", "ranges"}) {
      unlink(Path(name).c_str());
    }
    return absl::OkStatus();
  }

  // Reading, writing and verifying the graph.
  absl::Status MeasureFiles(const GraphDef& graph, const std::string& path) {
    absl::Status status;
    Record("(write)", CpuSeconds([&] {
             status = WriteGraph(graph, path, GraphFormat::kBinary);
           }));
    REQUANT_RETURN_IF_ERROR(status);
    Record("(read)", CpuSeconds([&] { status = ReadGraph(path).status(); }));
    REQUANT_RETURN_IF_ERROR(status);
    size_t problems = 0;
    Record("(verify)", CpuSeconds([&] {
             auto found = VerifyGraph(graph);
             status = found.status();
             if (found.ok()) problems = found->size();
           }));
    REQUANT_RETURN_IF_ERROR(status);
    if (problems > 0)
      return absl::InternalError("the benchmark's graph is bad");
    return absl::OkStatus();
  }

  // One observation per layer, so that reading them costs as little as it can.
  absl::Status WriteRanges(int layers) {
    std::string text;
    RangeTable min_table, max_table;
    for (int i = 0; i < layers; ++i) {
      const std::string name = ChainBuilder::Name(i);
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
    auto row = std::find_if(rows_.begin(), rows_.end(),
                            [&](const Row& r) { return r.name == name; });
    if (row == rows_.end()) row = rows_.insert(rows_.end(), Row{name, {}});
    row->nanoseconds_per_node.push_back(seconds * 1e9 / nodes_);
  }

  const Row* Find(const std::string& name) const {
    for (const Row& row : rows_) {
      if (row.name == name) return &row;
    }
    return nullptr;
  }

  void Print(const std::vector<int>& sizes) const {
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

  std::vector<Row> rows_;
  int nodes_ = 0;
};

int Main(int argc, char** argv) {
  std::vector<std::string> positional;
  const ProgramHelp help = {"transform_benchmark",
                            "Measures transforms on graphs of several sizes.",
                            "bazel run //benchmarks:transform_benchmark",
                            {__FILE__},
                            ""};
  if (auto code = ParseFlags(argc, argv, help, &positional)) return *code;
  if (!FLAGS_one_transform.empty()) {
    const absl::Status status =
        RunOne(FLAGS_one_transform, FLAGS_one_input, FLAGS_one_output);
    std::fflush(stdout);
    // Tearing a million nodes down has no part in the figures.
    std::_Exit(status.ok() ? kExitOk
                           : ReportFailure("transform_benchmark", status));
  }
  std::vector<int> sizes;
  for (const auto& text : absl::StrSplit(FLAGS_sizes, ',')) {
    int size;
    if (!absl::SimpleAtoi(text, &size) || size < 100) {
      return ReportUsage("transform_benchmark", "--sizes takes numbers");
    }
    sizes.push_back(size);
  }
  const absl::Status status = Benchmark().Run(sizes);
  return status.ok() ? kExitOk : ReportFailure("transform_benchmark", status);
}

}  // namespace
}  // namespace requant

int main(int argc, char** argv) { return requant::Main(argc, argv); }
