#include "runtime/calibration/convert.h"

#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "graph/graph_io.h"
#include "graph/saved_model/saved_model_file.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace requant {
namespace {

using tensorflow::FunctionDef;
using tensorflow::GraphDef;

ModelSize SizeOfModel(const GraphDef& graph, int64_t bytes) {
  ModelSize size;
  size.bytes = bytes;
  size.functions = graph.library().function_size();
  size.nodes = graph.node_size();
  for (const FunctionDef& function : graph.library().function()) {
    size.nodes += function.node_def_size();
  }
  return size;
}

absl::Status WriteGraphs(const ConvertOptions& options,
                         const std::string& extracted,
                         const std::string& converted) {
  std::vector<FileToWrite> files;
  if (!options.extracted_graph.empty()) {
    files.push_back({options.extracted_graph,
                     [&](int fd) { return WriteAll(fd, extracted); }});
  }
  if (!options.converted_graph.empty()) {
    files.push_back({options.converted_graph,
                     [&](int fd) { return WriteAll(fd, converted); }});
  }
  const absl::Status status = WriteFilesAtomically(files);
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), "; ", options.files.target,
                                   " is written, its graphs are not"));
}

// Runs the transforms; true when the graph is another one afterwards.
absl::StatusOr<bool> Transform(const ConvertOptions& options,
                               const SavedModelFile& file, GraphDef* graph) {
  const SavedModelReferences references(file.meta(), *graph);
  PipelineOptions pipeline = options.pipeline;
  pipeline.inputs = references.inputs();
  pipeline.outputs = references.outputs();
  const std::string before = DeterministicBytes(*graph);
  REQUANT_RETURN_IF_ERROR(
      RunPipeline(options.calls, *options.registry, pipeline, graph));
  REQUANT_RETURN_IF_ERROR(references.Check(*graph));
  return graph->ByteSizeLong() != before.size() ||
         DeterministicBytes(*graph) != before;
}

}  // namespace

absl::StatusOr<ConvertedModel> Convert(const ConvertOptions& options) {
  REQUANT_ASSIGN_OR_RETURN(
      SavedModelFile file,
      SavedModelFile::Read(options.files.source, options.tags));
  if (!options.signature.empty()) {
    REQUANT_RETURN_IF_ERROR(
        CheckSignature(file.meta(), options.signature, options.files.source));
  }
  REQUANT_RETURN_IF_ERROR(
      CheckVariables(options.files.source, file.meta().graph_def()));
  REQUANT_ASSIGN_OR_RETURN(const std::unique_ptr<SavedModelWriter> writer,
                           SavedModelWriter::Open(options.files));
  if (options.before_transforms) {
    REQUANT_RETURN_IF_ERROR(options.before_transforms());
  }
  ConvertedModel model;
  GraphDef graph = file.TakeGraph();
  model.before = SizeOfModel(graph, file.graph_bytes().size());
  if (!options.calls.empty()) {
    REQUANT_ASSIGN_OR_RETURN(model.changed, Transform(options, file, &graph));
  }
  std::string bytes = file.graph_bytes();
  std::optional<std::string> content;
  if (model.changed) {
    REQUANT_ASSIGN_OR_RETURN(bytes, SerializeGraph(graph));
    REQUANT_ASSIGN_OR_RETURN(content, file.WithGraph(graph, bytes));
  }
  model.after = SizeOfModel(graph, bytes.size());
  REQUANT_RETURN_IF_ERROR(writer->Fill(file.name(), content));
  REQUANT_RETURN_IF_ERROR(writer->Commit());
  REQUANT_RETURN_IF_ERROR(WriteGraphs(options, file.graph_bytes(), bytes));
  model.variables = writer->variables();
  model.notes = writer->notes();
  return model;
}

}  // namespace requant
