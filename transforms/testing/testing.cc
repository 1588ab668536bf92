#include "transforms/testing/testing.h"

#include "base/files/file.h"
#include "base/status_macros.h"
#include "transforms/pipeline_parser.h"
#include "transforms/registry.h"
#include "transforms/transform.h"

namespace requant {
namespace {

absl::Status Run(const std::string& transform, TransformContext* context,
                 tensorflow::GraphDef* graph) {
  REQUANT_ASSIGN_OR_RETURN(const std::vector<TransformCall> calls,
                           ParsePipeline(transform));
  if (calls.size() != 1) return absl::InvalidArgumentError("one transform");
  REQUANT_ASSIGN_OR_RETURN(TransformRegistry * registry,
                           TransformRegistry::Get());
  REQUANT_ASSIGN_OR_RETURN(const RegisteredTransform* registered,
                           registry->Find(calls[0].name));
  REQUANT_ASSIGN_OR_RETURN(context->parameters,
                           ResolveParameters(registered->spec, calls[0]));
  return registered->run(*context, graph);
}

}  // namespace

TransformRun RunTransform(const std::string& transform,
                          const tensorflow::GraphDef& graph,
                          const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs) {
  TransformRun run;
  run.graph = graph;
  TransformContext context;
  context.inputs = inputs;
  context.outputs = outputs;
  run.status = Run(transform, &context, &run.graph);
  run.notes = context.notes;
  run.warnings = context.warnings;
  return run;
}

TransformRun MustTransform(const std::string& transform,
                           const tensorflow::GraphDef& graph,
                           const std::vector<std::string>& inputs,
                           const std::vector<std::string>& outputs) {
  TransformRun run = RunTransform(transform, graph, inputs, outputs);
  EXPECT_OK(run.status);
  return run;
}

std::string WriteTestFile(const std::string& name, const std::string& content) {
  const std::string path = testing::TempDir() + name;
  EXPECT_TRUE(WriteFileAtomically(path, content).ok());
  return path;
}

}  // namespace requant
