#include "transforms/testing/testing.h"

#include <algorithm>

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

// Returns whether two attributes have the same value, even if they store equal
// tensors in different ways.
bool SameAttribute(const tensorflow::AttrValue& a,
                   const tensorflow::AttrValue& b) {
  Tensor first, second;
  if (!a.has_tensor() || !first.FromProto(a.tensor()) ||
      !second.FromProto(b.tensor())) {
    return a.ShortDebugString() == b.ShortDebugString();
  }
  return first.dtype() == second.dtype() && first.shape() == second.shape() &&
         first.SummarizeValue(-1) == second.SummarizeValue(-1);
}

MATCHER_P(HasNodeLike, node,
          absl::StrCat(negation ? "lacks" : "has", " the node ",
                       node.ShortDebugString())) {
  const auto found = std::find_if(
      arg.node().begin(), arg.node().end(),
      [&](const NodeDef& other) { return other.name() == node.name(); });
  if (found == arg.node().end()) return false;
  *result_listener << "which has " << found->ShortDebugString();
  return found->op() == node.op() &&
         std::equal(node.input().begin(), node.input().end(),
                    found->input().begin(), found->input().end()) &&
         std::all_of(node.attr().begin(), node.attr().end(),
                     [&](const auto& attribute) {
                       const auto other = found->attr().find(attribute.first);
                       return other != found->attr().end() &&
                              SameAttribute(attribute.second, other->second);
                     });
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

std::string TransformError(const std::string& transform,
                           const tensorflow::GraphDef& graph) {
  const absl::Status status = RunTransform(transform, graph).status;
  EXPECT_FALSE(status.ok()) << transform;
  return std::string(status.message());
}

tensorflow::GraphDef WithNodes(tensorflow::GraphDef graph,
                               const std::string& lines) {
  const GraphDef replacements = GraphFromText(lines);
  for (const NodeDef& node : replacements.node()) {
    *(HasNode(graph, node.name()) ? MutableNode(&graph, node.name())
                                  : graph.add_node()) = node;
  }
  return graph;
}

testing::Matcher<const tensorflow::GraphDef&> HasNodes(
    const std::string& lines) {
  std::vector<testing::Matcher<const tensorflow::GraphDef&>> all;
  const GraphDef nodes = GraphFromText(lines);
  for (const NodeDef& node : nodes.node()) {
    all.push_back(HasNodeLike(node));
  }
  return testing::AllOfArray(all);
}

std::string WriteTestFile(const std::string& name, const std::string& content) {
  const std::string path = testing::TempDir() + name;
  EXPECT_TRUE(WriteFileAtomically(path, content).ok());
  return path;
}

}  // namespace requant
