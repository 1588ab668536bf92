#include "runtime/calibration/quantize.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <future>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/files/file.h"
#include "base/program/isolation.h"
#include "base/status_macros.h"
#include "graph/graph_index.h"
#include "graph/graph_io.h"
#include "ranges/range_table.h"
#include "runtime/calibration/calibrate.h"
#include "runtime/calibration/calibration_report.h"
#include "runtime/session/job_reports.h"
#include "runtime/session/model.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "transforms/layers/float_layer.h"
#include "transforms/pipeline.h"
#include "transforms/pipeline_parser.h"
#include "transforms/registry.h"

namespace requant {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;

// A file without a name, for readers that take a path.
class MemoryFile {
 public:
  MemoryFile() = default;
  ~MemoryFile() {
    if (fd_ >= 0) close(fd_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  absl::Status Write(std::string_view content) {
    fd_ = memfd_create("ranges", MFD_CLOEXEC);
    if (fd_ < 0) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "cannot keep the ranges in memory: ", std::strerror(errno)));
    }
    return WriteAll(fd_, content);
  }
  std::string path() const { return absl::StrCat("/proc/self/fd/", fd_); }

 private:
  int fd_ = -1;
};

class Quantization {
 public:
  explicit Quantization(const QuantizeOptions& options) : options_(options) {}

  absl::StatusOr<QuantizedGraph> Run() {
    // While the graph is calibrated.
    auto registry = std::async(std::launch::async, TransformRegistry::Get);
    std::vector<std::string> ranges_files = options_.ranges_files;
    MemoryFile table;
    if (ranges_files.empty()) {
      REQUANT_RETURN_IF_ERROR(Calibrate(&table));
      ranges_files = {table.path()};
    } else {
      REQUANT_RETURN_IF_ERROR(Load());
    }
    result_.before = SizeOf(graph_);
    const int64_t matmuls = QuantizedMatMuls();
    REQUANT_ASSIGN_OR_RETURN(const TransformRegistry* transforms,
                             registry.get());
    REQUANT_RETURN_IF_ERROR(RunPipeline(Calls(ranges_files), *transforms,
                                        PipelineSettings(), &graph_));
    if (QuantizedMatMuls() == matmuls) return NothingQuantized();
    result_.after = SizeOf(graph_);
    REQUANT_ASSIGN_OR_RETURN(result_.graph, SerializeGraph(graph_));
    return std::move(result_);
  }

 private:
  // Takes the graph and its outputs from the model.
  absl::Status Take(const Model& model, GraphDef* graph) {
    graph_ = *graph;
    std::vector<std::string> names = options_.outputs;
    const PredictionSpec& prediction =
        options_.calibration.dataset().prediction();
    if (!prediction.tensor().empty()) {
      names.insert(names.begin(), prediction.tensor());
    }
    for (const std::string& name : names) {
      REQUANT_ASSIGN_OR_RETURN(const std::string tensor,
                               model.OutputTensor(name));
      const std::string node(ParseTensorName(tensor).node);
      if (std::find(outputs_.begin(), outputs_.end(), node) == outputs_.end()) {
        outputs_.push_back(node);
      }
    }
    return absl::OkStatus();
  }

  absl::Status Load() {
    const CalibrateJob& job = options_.calibration;
    SetActivity(absl::StrCat("loading ", job.model().path()));
    return Model::Load(job.model(), job.session(), take_).status();
  }

  absl::Status Calibrate(MemoryFile* file) {
    REQUANT_ASSIGN_OR_RETURN(const RangeTable table,
                             ObserveRanges(options_.calibration, take_,
                                           /*for_file=*/options_.keep_ranges));
    for (const std::string& warning : CalibrationWarnings(table)) {
      SayWarning(warning);
    }
    for (const auto& [name, entry] : table.entries()) {
      result_.calibration_records =
          std::max(result_.calibration_records, entry.records);
    }
    REQUANT_ASSIGN_OR_RETURN(std::string content, SerializeRangeTable(table));
    REQUANT_RETURN_IF_ERROR(file->Write(content));
    if (options_.keep_ranges) result_.ranges = std::move(content);
    return absl::OkStatus();
  }

  std::vector<TransformCall> Calls(
      const std::vector<std::string>& ranges_files) const {
    TransformCall quantize = {
        "quantize_static",
        {{"ranges_file", ranges_files},
         {"target", {options_.target}},
         {"method", {options_.method}},
         {"value_percentile", {absl::StrCat(options_.value_percentile)}}}};
    if (!options_.excluded_ops.empty()) {
      quantize.parameters["excluded_ops"] = options_.excluded_ops;
    }
    if (!options_.excluded_nodes.empty()) {
      quantize.parameters["excluded_nodes"] = options_.excluded_nodes;
    }
    const TransformCall strip = {"strip_unused_nodes", {}};
    return {std::move(quantize), strip, {"quantize_embeddings", {}}, strip};
  }

  PipelineOptions PipelineSettings() {
    PipelineOptions options;
    options.outputs = outputs_;
    options.on_start = [](std::string_view name, int index, int count) {
      SetActivity(index == 0 ? std::string("checking the graph")
                             : absl::StrCat("the transform \"", name, "\" (",
                                            index, " of ", count, ")"));
    };
    options.on_note = [this](std::string_view note) {
      // That nothing was unused is no news.
      if (absl::StartsWith(note, "strip_unused_nodes:")) return;
      absl::ConsumePrefix(&note, "quantize_static: ");
      absl::ConsumePrefix(&note, "quantize_embeddings: ");
      result_.notes.emplace_back(note);
    };
    options.on_warning = SayWarning;
    return options;
  }

  absl::Status NothingQuantized() {
    REQUANT_ASSIGN_OR_RETURN(const GraphIndex index,
                             GraphIndex::Create(&graph_));
    const FloatLayers found = FindFloatLayers(
        index, {outputs_, options_.excluded_ops, options_.excluded_nodes});
    return absl::FailedPreconditionError(
        absl::StrCat(options_.calibration.model().path(),
                     " has nothing to quantize: ", WhyNoLayers(graph_, found)));
  }

  int64_t QuantizedMatMuls() const {
    return std::count_if(
        graph_.node().begin(), graph_.node().end(), [](const NodeDef& node) {
          return absl::StartsWith(node.op(), "QuantizedMatMul");
        });
  }

  const QuantizeOptions& options_;
  const Model::GraphInspector take_ = [this](const Model& model,
                                             GraphDef* graph) {
    return Take(model, graph);
  };
  GraphDef graph_;
  // Names of nodes.
  std::vector<std::string> outputs_;
  QuantizedGraph result_;
};

}  // namespace

absl::StatusOr<QuantizedGraph> Quantize(const QuantizeOptions& options) {
  return Quantization(options).Run();
}

}  // namespace requant
