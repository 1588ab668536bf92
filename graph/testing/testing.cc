#include "graph/testing/testing.h"

#include <memory>

#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "google/protobuf/text_format.h"
#include "graph/const_node.h"
#include "graph/tensorflow_library.h"
#include "tensorflow/core/public/session.h"

namespace requant {

GraphDef GraphFromText(const std::string& text) {
  GraphDef graph;
  const std::string whole = GraphText(text);
  // Unlike ParseFromString, this accepts the library in several pieces.
  if (!google::protobuf::TextFormat::MergeFromString(whole, &graph)) {
    ADD_FAILURE() << "the test's graph does not parse:\n" << whole;
  }
  return graph;
}

const NodeDef& NodeNamed(const GraphDef& graph, const std::string& name) {
  for (const NodeDef& node : graph.node()) {
    if (node.name() == name) return node;
  }
  ADD_FAILURE() << "no node named " << name;
  return NodeDef::default_instance();
}

bool HasNode(const GraphDef& graph, const std::string& name) {
  return testing::Value(NodesOf(graph), Contains(name));
}

NodeDef* MutableNode(GraphDef* graph, const std::string& name) {
  for (NodeDef& node : *graph->mutable_node()) {
    if (node.name() == name) return &node;
  }
  ADD_FAILURE() << "no node named " << name;
  return graph->add_node();
}

std::vector<std::string> NodesOf(const GraphDef& graph, const std::string& op) {
  std::vector<std::string> names;
  for (const NodeDef& node : graph.node()) {
    if (op.empty() || node.op() == op) names.push_back(node.name());
  }
  return names;
}

Tensor ConstNamed(const GraphDef& graph, const std::string& name) {
  const auto value = ConstValue(NodeNamed(graph, name));
  EXPECT_OK(value);
  return value.ok() ? *value : Tensor();
}

float ScalarNamed(const GraphDef& graph, const std::string& name) {
  const auto value = ScalarConstValue(NodeNamed(graph, name));
  EXPECT_OK(value);
  return value.value_or(0);
}

std::string LinesOf(const GraphDef& graph) {
  std::string lines;
  for (const NodeDef& node : graph.node()) {
    absl::StrAppend(&lines, node.name(), " = ", node.op(), "(",
                    absl::StrJoin(node.input(), ", "), ")");
    if (node.op() == "Const") {
      const Tensor value = ConstNamed(graph, node.name());
      absl::StrAppend(&lines, " ", value.DebugString(value.NumElements()));
    }
    if (!node.device().empty()) absl::StrAppend(&lines, " ", node.device());
    lines += "\n";
  }
  for (const auto& function : graph.library().function()) {
    absl::StrAppend(&lines, "function ", function.signature().name(), "\n");
  }
  return lines;
}

void AddNodes(const std::string& lines, GraphDef* graph) {
  graph->MergeFrom(GraphFromText(lines));
}

absl::StatusOr<std::vector<Tensor>> RunGraph(
    const GraphDef& graph,
    const std::vector<std::pair<std::string, Tensor>>& feeds,
    const std::vector<std::string>& fetches) {
  REQUANT_RETURN_IF_ERROR(LoadTensorFlow());
  std::unique_ptr<tensorflow::Session> session(
      tensorflow::NewSession(tensorflow::SessionOptions()));
  if (session == nullptr) return absl::InternalError("no session");
  REQUANT_RETURN_IF_ERROR(session->Create(graph));
  std::vector<Tensor> outputs;
  REQUANT_RETURN_IF_ERROR(session->Run(feeds, fetches, {}, &outputs));
  return outputs;
}

std::vector<Tensor> MustRunGraph(
    const GraphDef& graph,
    const std::vector<std::pair<std::string, Tensor>>& feeds,
    const std::vector<std::string>& fetches) {
  const auto outputs = RunGraph(graph, feeds, fetches);
  EXPECT_OK(outputs);
  return outputs.ok() ? *outputs
                      : std::vector<Tensor>(fetches.size(), Tensor(0.0f));
}

}  // namespace requant
