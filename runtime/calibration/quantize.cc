#include "runtime/calibration/quantize.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <future>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "graph/diff.h"
#include "graph/graph_index.h"
#include "graph/graph_io.h"
#include "ranges/range_table.h"
#include "runtime/calibration/calibrate.h"
#include "runtime/calibration/calibration_key.h"
#include "runtime/calibration/calibration_report.h"
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

// A file without a name, for who reads by a path.
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
  Quantization(const QuantizeJob& job, const EventSink& send)
      : job_(job), send_(send) {}

  absl::StatusOr<QuantizeResult> Run() {
    // While the graph is calibrated.
    auto registry = std::async(std::launch::async, TransformRegistry::Get);
    std::vector<std::string> ranges_files(job_.ranges_file().begin(),
                                          job_.ranges_file().end());
    MemoryFile table;
    if (ranges_files.empty()) {
      REQUANT_RETURN_IF_ERROR(Calibrate(&table));
      ranges_files = {table.path()};
    } else {
      REQUANT_RETURN_IF_ERROR(Load());
    }
    SetSize(graph_, result_.mutable_before());
    const int64_t matmuls = QuantizedMatMuls();
    REQUANT_ASSIGN_OR_RETURN(const TransformRegistry* transforms,
                             registry.get());
    REQUANT_RETURN_IF_ERROR(RunPipeline(Calls(ranges_files), *transforms,
                                        PipelineSettings(), &graph_));
    if (QuantizedMatMuls() == matmuls) return NothingQuantized();
    SetSize(graph_, result_.mutable_after());
    REQUANT_ASSIGN_OR_RETURN(const std::string content, SerializeGraph(graph_));
    SendFile(send_, content);
    return result_;
  }

 private:
  // Takes the graph and its outputs from the model.
  absl::Status Take(const Model& model, const GraphDef& graph) {
    graph_ = graph;
    std::vector<std::string> names(job_.output().begin(), job_.output().end());
    const PredictionSpec& prediction =
        job_.calibration().dataset().prediction();
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
    const CalibrateJob& job = job_.calibration();
    SendActivity(send_, absl::StrCat("loading ", job.model().path()));
    return Model::Load(job.model(), job.session(),
                       [this](const Model& model, GraphDef* graph) {
                         return Take(model, *graph);
                       })
        .status();
  }

  absl::Status Calibrate(MemoryFile* file) {
    const CalibrateJob& job = job_.calibration();
    auto key =
        std::async(std::launch::async, [&]() -> absl::StatusOr<std::string> {
          return job_.send_ranges() ? CalibrationKey(job) : "";
        });
    REQUANT_ASSIGN_OR_RETURN(
        RangeTable table,
        ObserveRanges(job, send_,
                      [this](const Model& model, const GraphDef& graph) {
                        return Take(model, graph);
                      }));
    for (const std::string& warning : CalibrationWarnings(table)) {
      SendWarning(send_, warning);
    }
    for (const auto& [name, entry] : table.entries()) {
      result_.set_calibration_records(
          std::max(result_.calibration_records(), entry.records));
    }
    REQUANT_ASSIGN_OR_RETURN(std::string made_from, key.get());
    table.set_made_from(std::move(made_from));
    REQUANT_ASSIGN_OR_RETURN(const std::string content,
                             SerializeRangeTable(table));
    if (job_.send_ranges()) SendRanges(send_, content);
    return file->Write(content);
  }

  std::vector<TransformCall> Calls(
      const std::vector<std::string>& ranges_files) const {
    TransformCall quantize = {
        "quantize_static",
        {{"ranges_file", ranges_files},
         {"target", {job_.target()}},
         {"method", {job_.method()}},
         {"value_percentile", {absl::StrCat(job_.value_percentile())}}}};
    for (const std::string& op : job_.excluded_op()) {
      quantize.parameters["excluded_ops"].push_back(op);
    }
    for (const std::string& node : job_.excluded_node()) {
      quantize.parameters["excluded_nodes"].push_back(node);
    }
    const TransformCall strip = {"strip_unused_nodes", {}};
    return {std::move(quantize), strip, {"quantize_embeddings", {}}, strip};
  }

  PipelineOptions PipelineSettings() const {
    PipelineOptions options;
    options.outputs = outputs_;
    options.on_start = [this](std::string_view name, int index, int count) {
      SendActivity(send_, index == 0
                              ? std::string("checking the graph")
                              : absl::StrCat("the transform \"", name, "\" (",
                                             index, " of ", count, ")"));
    };
    options.on_note = [this](std::string_view note) {
      // That nothing was unused is no news.
      if (absl::StartsWith(note, "strip_unused_nodes:")) return;
      absl::ConsumePrefix(&note, "quantize_static: ");
      absl::ConsumePrefix(&note, "quantize_embeddings: ");
      SendNote(send_, std::string(note));
    };
    options.on_warning = [this](std::string_view warning) {
      SendWarning(send_, std::string(warning));
    };
    return options;
  }

  absl::Status NothingQuantized() {
    REQUANT_ASSIGN_OR_RETURN(const GraphIndex index,
                             GraphIndex::Create(&graph_));
    const FloatLayers found = FindFloatLayers(
        index, {outputs_,
                {job_.excluded_op().begin(), job_.excluded_op().end()},
                {job_.excluded_node().begin(), job_.excluded_node().end()}});
    return absl::FailedPreconditionError(
        absl::StrCat(job_.calibration().model().path(),
                     " has nothing to quantize: ", WhyNoLayers(graph_, found)));
  }

  int64_t QuantizedMatMuls() const {
    return std::count_if(
        graph_.node().begin(), graph_.node().end(), [](const NodeDef& node) {
          return absl::StartsWith(node.op(), "QuantizedMatMul");
        });
  }

  static void SetSize(const GraphDef& graph, GraphSizeMessage* message) {
    const GraphSize size = SizeOf(graph);
    message->set_nodes(size.nodes);
    message->set_bytes(size.bytes);
  }

  const QuantizeJob& job_;
  const EventSink& send_;
  GraphDef graph_;
  // Names of nodes.
  std::vector<std::string> outputs_;
  QuantizeResult result_;
};

}  // namespace

absl::StatusOr<QuantizeResult> Quantize(const QuantizeJob& job,
                                        const EventSink& send) {
  return Quantization(job, send).Run();
}

}  // namespace requant
