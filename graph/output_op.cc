#include "graph/output_op.h"

#include <string_view>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace requant {
namespace {

using tensorflow::FunctionDef;
using tensorflow::GraphDef;

const FunctionDef* FindFunction(const GraphDef& graph,
                                const std::string& name) {
  for (const FunctionDef& function : graph.library().function()) {
    if (function.signature().name() == name) return &function;
  }
  return nullptr;
}

}  // namespace

std::string OutputOp(const GraphDef& graph, const std::string& tensor) {
  // Hostile graphs may have cycles.
  constexpr int kMostSteps = 1000;
  const auto* nodes = &graph.node();
  std::string at = tensor;
  for (int step = 0; step < kMostSteps; ++step) {
    // In functions, tensors are named "node:output:port".
    const std::string_view name = std::string_view(at).substr(0, at.find(':'));
    int port = 0;
    if (!absl::SimpleAtoi(std::string_view(at).substr(at.rfind(':') + 1),
                          &port) ||
        port < 0) {
      port = 0;
    }
    const auto node = absl::c_find_if(
        *nodes, [&](const auto& any) { return any.name() == name; });
    if (node == nodes->end()) return "";
    const std::string op = node->op();
    if (absl::EndsWith(op, "PartitionedCall")) {
      const auto called = node->attr().find("f");
      if (called == node->attr().end()) return "";
      const FunctionDef* function =
          FindFunction(graph, called->second.func().name());
      if (function == nullptr ||
          port >= function->signature().output_arg_size()) {
        return "";
      }
      const auto result =
          function->ret().find(function->signature().output_arg(port).name());
      if (result == function->ret().end()) return "";
      nodes = &function->node_def();
      at = result->second;
      continue;
    }
    const int input = op == "IdentityN" ? port : 0;
    const bool hands_on = op == "Identity" || op == "IdentityN" ||
                          op == "Reshape" || op == "Squeeze";
    if (!hands_on || input >= node->input_size()) return op;
    at = node->input(input);
  }
  return "";
}

std::set<std::string> SumsAmongOutputs(
    const GraphDef& graph, const tensorflow::SignatureDef& signature) {
  std::set<std::string> sums;
  for (const auto& [name, info] : signature.outputs()) {
    const std::string op = OutputOp(graph, info.name());
    if (op == "Add" || op == "AddV2" || op == "BiasAdd" || op == "MatMul") {
      sums.insert(name);
    }
  }
  return sums;
}

}  // namespace requant
