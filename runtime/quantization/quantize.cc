#include "runtime/quantization/quantize.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <future>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/files/file.h"
#include "base/program/isolation.h"
#include "base/status_macros.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "transforms/pipeline.h"
#include "transforms/pipeline_parser.h"

namespace requant {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;

std::vector<TransformCall> QuantizingCalls(
    const QuantizeParameters& parameters,
    const std::vector<std::string>& ranges_files,
    const std::vector<std::string>& without_ranges, const GraphDef& graph) {
  TransformCall quantize = {
      "quantize_static",
      {{"ranges_file", ranges_files},
       {"target", {parameters.target}},
       {"ops", {parameters.ops}},
       {"method", {parameters.method}},
       {"value_percentile", {absl::StrCat(parameters.value_percentile)}}}};
  std::vector<std::string> nodes = parameters.layers.excluded_nodes;
  // The preparation of the graph may have removed some of them.
  std::set<std::string_view> known;
  for (const NodeDef& node : graph.node()) known.insert(node.name());
  nodes.erase(std::remove_if(nodes.begin(), nodes.end(),
                             [&](const std::string& name) {
                               return known.count(name) == 0;
                             }),
              nodes.end());
  nodes.insert(nodes.end(), without_ranges.begin(), without_ranges.end());
  for (const auto& [parameter, names] :
       {std::pair("excluded_ops", parameters.layers.excluded_ops),
        std::pair("excluded_nodes", nodes)}) {
    if (!names.empty()) quantize.parameters[parameter] = names;
  }
  const TransformCall strip = {"strip_unused_nodes", {}};
  return {std::move(quantize), strip, {"quantize_embeddings", {}}, strip};
}

}  // namespace

absl::StatusOr<std::string> MemoryFile(std::string_view content) {
  const int fd = memfd_create("ranges", MFD_CLOEXEC);
  if (fd < 0) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot keep the ranges in memory: ", std::strerror(errno)));
  }
  REQUANT_RETURN_IF_ERROR(WriteAll(fd, content));
  return absl::StrCat("/proc/self/fd/", fd);
}

absl::StatusOr<std::vector<std::string>> OutputNodes(
    const Model& model, const std::vector<std::string>& names) {
  std::vector<std::string> nodes;
  for (const std::string& name : names) {
    REQUANT_ASSIGN_OR_RETURN(const std::string tensor,
                             model.OutputTensor(name));
    const std::string node(ParseTensorName(tensor).node);
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) {
      nodes.push_back(node);
    }
  }
  return nodes;
}

absl::Status QuantizeGraph(const QuantizeParameters& parameters,
                           const std::vector<std::string>& ranges_files,
                           const std::vector<std::string>& without_ranges,
                           const TransformRegistry& registry,
                           std::vector<std::string>* notes, GraphDef* graph) {
  PipelineOptions options;
  options.outputs = parameters.layers.outputs;
  options.on_note = [notes](std::string_view note) {
    // Users need not hear that nothing was unused.
    if (absl::StartsWith(note, "strip_unused_nodes:")) return;
    absl::ConsumePrefix(&note, "quantize_static: ");
    absl::ConsumePrefix(&note, "quantize_embeddings: ");
    notes->emplace_back(note);
  };
  options.on_warning = SayWarning;
  auto run = std::async(std::launch::async, [&] {
    return RunPipeline(
        QuantizingCalls(parameters, ranges_files, without_ranges, *graph),
        registry, options, graph);
  });
  // Rounding the weights of a large model takes minutes.
  while (run.wait_for(std::chrono::milliseconds(200)) !=
         std::future_status::ready) {
    ReportAlive();
  }
  return run.get();
}

int64_t QuantizedMatMuls(const GraphDef& graph) {
  return std::count_if(graph.node().begin(), graph.node().end(),
                       [](const NodeDef& node) {
                         return node.op() == "_QuantizedMatMul" ||
                                absl::StartsWith(node.op(), "QuantizedMatMul");
                       });
}

}  // namespace requant
