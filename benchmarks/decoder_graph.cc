#include "benchmarks/decoder_graph.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/const_node.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.pb.h"
#include "transforms/layers/graph_builder.h"

namespace requant {
namespace {

using tensorflow::DT_FLOAT;
using tensorflow::DT_RESOURCE;
using tensorflow::FunctionDef;
using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::Tensor;

constexpr int kNodesOfLayer = 11;
constexpr int kNodesOfSmallFunction = 1000;
constexpr int kWidth = 4;

// Queries and keys from the same reshaped values, their product, and what is
// behind it.
std::string AddLayer(const std::string& name, const std::string& input,
                     FunctionDef* function) {
  const AttributeTypes types = {{"T", DT_FLOAT}};
  const auto add = [&](const char* part, const std::string& op,
                       const std::vector<std::string>& inputs,
                       const AttributeTypes& attributes, const char* output) {
    const std::string node = absl::StrCat(name, "/", part);
    *function->add_node_def() = MakeNode(node, op, inputs, attributes);
    return absl::StrCat(node, ":", output, ":0");
  };
  Tensor shape(tensorflow::DT_INT32, {2});
  shape.flat<int>().setConstant(kWidth);
  *function->add_node_def() = MakeConst(name + "/shape", shape);
  const std::string scaled = add("mul", "Mul", {input, input}, types, "z");
  const std::string flat =
      add("reshape", "Reshape", {scaled, name + "/shape:output:0"}, types,
          "output");
  const std::string query =
      add("query", "MatMul",
          {flat, add("query/read", "ReadVariableOp", {"v"},
                     {{"dtype", DT_FLOAT}}, "value")},
          types, "product");
  const std::string key = add("key", "MatMul",
                              {flat, add("key/read", "ReadVariableOp", {"v"},
                                         {{"dtype", DT_FLOAT}}, "value")},
                              types, "product");
  const std::string scores =
      add("scores", "BatchMatMulV2", {query, key}, types, "output");
  const std::string active =
      add("relu", "Relu", {scores}, types, "activations");
  const std::string bias = add("bias", "AddV2", {active, scaled}, types, "z");
  return add("add", "AddV2", {bias, input}, types, "z");
}

void AddFunction(const std::string& name, int layers, GraphDef* graph) {
  FunctionDef* function = graph->mutable_library()->add_function();
  auto* signature = function->mutable_signature();
  signature->set_name(name);
  auto* x = signature->add_input_arg();
  x->set_name("x");
  x->set_type(DT_FLOAT);
  auto* v = signature->add_input_arg();
  v->set_name("v");
  v->set_type(DT_RESOURCE);
  auto* y = signature->add_output_arg();
  y->set_name("y");
  y->set_type(DT_FLOAT);
  std::string last = "x";
  for (int i = 0; i < layers; ++i) {
    last =
        AddLayer(absl::StrCat("transformer/h_._", i, "/attn"), last, function);
  }
  (*function->mutable_ret())["y"] = last;
}

std::string AddCall(const std::string& function, const std::string& input,
                    GraphDef* graph) {
  NodeDef call = MakeNode(absl::StrCat("call_", function),
                          "StatefulPartitionedCall", {input, "v"}, {});
  auto& attributes = *call.mutable_attr();
  attributes["f"].mutable_func()->set_name(function);
  attributes["Tin"].mutable_list()->add_type(DT_FLOAT);
  attributes["Tin"].mutable_list()->add_type(DT_RESOURCE);
  attributes["Tout"].mutable_list()->add_type(DT_FLOAT);
  *graph->add_node() = call;
  return call.name();
}

}  // namespace

GraphDef DecoderGraph(int nodes) {
  GraphDef graph;
  *graph.add_node() = MakeNode("x", "Placeholder", {}, {{"dtype", DT_FLOAT}});
  NodeDef variable = MakeNode("v", "VarHandleOp", {}, {{"dtype", DT_FLOAT}});
  auto* shape = (*variable.mutable_attr())["shape"].mutable_shape();
  for (int i = 0; i < 2; ++i) shape->add_dim()->set_size(kWidth);
  *graph.add_node() = variable;
  std::string last = "x";
  int number = 0;
  for (int left = nodes; left > 0; ++number) {
    const int size = number == 0 ? std::max(1, nodes / 2)
                                 : std::min(left, kNodesOfSmallFunction);
    const std::string name = absl::StrCat("part_", number);
    AddFunction(name, std::max(1, size / kNodesOfLayer), &graph);
    last = AddCall(name, last, &graph);
    left -= size;
  }
  return graph;
}

}  // namespace requant
