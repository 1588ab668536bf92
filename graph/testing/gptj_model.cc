#include "graph/testing/gptj_model.h"

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "graph/const_node.h"
#include "graph/graph_io.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"
#include "tensorflow/core/util/tensor_bundle/tensor_bundle.h"

namespace requant {
namespace {

using tensorflow::DataType;
using tensorflow::FunctionDef;
using tensorflow::GraphDef;
using tensorflow::MetaGraphDef;
using tensorflow::NodeDef;
using tensorflow::Tensor;

using Types = std::vector<std::pair<std::string, DataType>>;
using Names = std::vector<std::string>;

const std::pair<std::string, DataType> kT = {"T", tensorflow::DT_FLOAT};

void SetNode(const std::string& name, const std::string& op,
             const Names& inputs, const Types& types, NodeDef* node) {
  node->set_name(name);
  node->set_op(op);
  for (const std::string& input : inputs) node->add_input(input);
  for (const auto& [attribute, type] : types) {
    (*node->mutable_attr())[attribute].set_type(type);
  }
}

// A function that runs the layers one after the other.
class BodyBuilder {
 public:
  BodyBuilder(const std::string& name, const GptjShape& shape) : shape_(shape) {
    function_.mutable_signature()->set_name(name);
    Argument("x", tensorflow::DT_FLOAT);
    std::string last = "x";
    for (int i = 0; i < shape.layers; ++i) {
      last = Layer(absl::StrCat("StatefulPartitionedCall/transformer/h_._", i),
                   last);
    }
    auto* result = function_.mutable_signature()->add_output_arg();
    result->set_name("logits");
    result->set_type(tensorflow::DT_FLOAT);
    (*function_.mutable_ret())["logits"] =
        Projection("StatefulPartitionedCall/lm_head", last);
  }

  FunctionDef Take() && { return std::move(function_); }

 private:
  void Argument(const std::string& name, DataType type) {
    auto* argument = function_.mutable_signature()->add_input_arg();
    argument->set_name(name);
    argument->set_type(type);
  }

  // Adds a node and returns its first output, `output` of the op.
  std::string Node(const std::string& name, const std::string& op,
                   const std::string& output, const Names& inputs,
                   const Types& types = {kT}) {
    SetNode(name, op, inputs, types, function_.add_node_def());
    return absl::StrCat(name, ":", output, ":0");
  }

  std::string Const(const std::string& name, const std::vector<int>& values) {
    Tensor tensor(tensorflow::DT_INT32, {static_cast<int64_t>(values.size())});
    for (size_t i = 0; i < values.size(); ++i)
      tensor.flat<int>()(i) = values[i];
    *function_.add_node_def() = MakeConst(name, tensor);
    return absl::StrCat(name, ":output:0");
  }

  std::string Scalar(const std::string& name, int value) {
    Tensor tensor(tensorflow::DT_INT32, {});
    tensor.scalar<int>()() = value;
    *function_.add_node_def() = MakeConst(name, tensor);
    return absl::StrCat(name, ":output:0");
  }

  std::string Gather(const std::string& name, const std::string& shape,
                     const std::string& indices) {
    return Node(name, "GatherV2", "output",
                {shape, indices, Scalar(name + "/axis", 0)},
                {{"Tparams", tensorflow::DT_INT32},
                 {"Tindices", tensorflow::DT_INT32},
                 {"Taxis", tensorflow::DT_INT32}});
  }

  std::string Product(const std::string& name, const std::string& values,
                      const std::string& axis) {
    return Node(name, "Prod", "output", {values, axis},
                {{"T", tensorflow::DT_INT32}, {"Tidx", tensorflow::DT_INT32}});
  }

  std::string Concat(const std::string& name, const std::string& a,
                     const std::string& b) {
    const std::string output =
        Node(name, "ConcatV2", "output", {a, b, Scalar(name + "/axis", 0)},
             {{"T", tensorflow::DT_INT32}, {"Tidx", tensorflow::DT_INT32}});
    (*LastNode()->mutable_attr())["N"].set_i(2);
    return output;
  }

  NodeDef* LastNode() {
    return function_.mutable_node_def(function_.node_def_size() - 1);
  }

  std::string Reshape(const std::string& name, const std::string& values,
                      const std::string& shape) {
    return Node(name, "Reshape", "output", {values, shape},
                {kT, {"Tshape", tensorflow::DT_INT32}});
  }

  // What tf.tensordot(x, variable, 1) makes.
  std::string Projection(const std::string& layer, const std::string& x) {
    const std::string name = layer + "/Tensordot";
    const std::string variable =
        absl::StrCat("v", function_.signature().input_arg_size());
    Argument(variable, tensorflow::DT_RESOURCE);
    const std::string weights =
        Node(name + "/ReadVariableOp", "ReadVariableOp", "value", {variable},
             {{"dtype", tensorflow::DT_FLOAT}});
    const std::string axes = Const(name + "/axes", {2});
    const std::string free = Const(name + "/free", {0, 1});
    const std::string shape = Node(name + "/Shape", "Shape", "output", {x},
                                   {kT, {"out_type", tensorflow::DT_INT32}});
    const std::string free_dims = Gather(name + "/GatherV2", shape, free);
    const std::string axes_dims = Gather(name + "/GatherV2_1", shape, axes);
    const std::string rows =
        Product(name + "/Prod", free_dims, Const(name + "/Const", {0}));
    const std::string columns =
        Product(name + "/Prod_1", axes_dims, Const(name + "/Const_1", {0}));
    const std::string order = Concat(name + "/concat", free, axes);
    const std::string flat =
        Node(name + "/stack", "Pack", "output", {rows, columns},
             {{"T", tensorflow::DT_INT32}});
    (*LastNode()->mutable_attr())["N"].set_i(2);
    const std::string turned =
        Node(name + "/transpose", "Transpose", "y", {x, order},
             {kT, {"Tperm", tensorflow::DT_INT32}});
    const std::string matrix = Reshape(name + "/Reshape", turned, flat);
    const std::string product =
        Node(name + "/MatMul", "MatMul", "product", {matrix, weights});
    const std::string result_shape =
        Concat(name + "/concat_1", free_dims,
               Const(name + "/Const_2", {shape_.width}));
    return Reshape(name, product, result_shape);
  }

  // Attention and feed-forward side by side on the same values.
  std::string Layer(const std::string& name, const std::string& x) {
    const std::string q =
        Rotated(name + "/attn/q", Projection(name + "/attn/q_proj", x));
    const std::string k =
        Rotated(name + "/attn/k", Projection(name + "/attn/k_proj", x));
    const std::string v = Projection(name + "/attn/v_proj", x);
    const std::string scores =
        Node(name + "/attn/MatMul", "BatchMatMulV2", "output", {q, k});
    (*LastNode()->mutable_attr())["adj_y"].set_b(true);
    const std::string weights =
        Node(name + "/attn/Softmax", "Softmax", "softmax", {scores});
    const std::string mixed =
        Node(name + "/attn/MatMul_1", "BatchMatMulV2", "output", {weights, v});
    const std::string attention = Projection(name + "/attn/out_proj", mixed);
    const std::string inner = Node(name + "/mlp/Tanh", "Tanh", "y",
                                   {Projection(name + "/mlp/fc_in", x)});
    const std::string outer = Projection(name + "/mlp/fc_out", inner);
    return Node(name + "/add_1", "AddV2", "z",
                {Node(name + "/add", "AddV2", "z", {attention, outer}), x});
  }

  // The nodes of rotary positions, by count.
  std::string Rotated(const std::string& name, const std::string& x) {
    const std::string sine = Node(name + "/Sin", "Sin", "y", {x});
    const std::string cosine = Node(name + "/Cos", "Cos", "y", {x});
    return Node(name + "/add", "AddV2", "z",
                {Node(name + "/mul", "Mul", "z", {x, sine}),
                 Node(name + "/mul_1", "Mul", "z",
                      {Node(name + "/Neg", "Neg", "y", {x}), cosine})});
  }

  const GptjShape shape_;
  FunctionDef function_;
};

// Variables, and a call of the first function with all of them.
void AddCall(const FunctionDef& function, GraphDef* graph) {
  SetNode("serving_default_x", "Placeholder", {},
          {{"dtype", tensorflow::DT_FLOAT}}, graph->add_node());
  NodeDef call;
  SetNode("StatefulPartitionedCall", "StatefulPartitionedCall",
          {"serving_default_x"}, {}, &call);
  auto& types = *(*call.mutable_attr())["Tin"].mutable_list();
  types.add_type(tensorflow::DT_FLOAT);
  for (int i = 1; i < function.signature().input_arg_size(); ++i) {
    NodeDef* variable = graph->add_node();
    SetNode(absl::StrCat("Variable_", i), "VarHandleOp", {},
            {{"dtype", tensorflow::DT_FLOAT}}, variable);
    (*variable->mutable_attr())["shape"].mutable_shape()->set_unknown_rank(
        true);
    (*variable->mutable_attr())["shared_name"].set_s(variable->name());
    (*variable->mutable_attr())["container"].set_s("");
    call.add_input(variable->name());
    types.add_type(tensorflow::DT_RESOURCE);
  }
  (*call.mutable_attr())["Tout"].mutable_list()->add_type(tensorflow::DT_FLOAT);
  (*call.mutable_attr())["f"].mutable_func()->set_name(
      function.signature().name());
  *graph->add_node() = std::move(call);
}

}  // namespace

MetaGraphDef GptjMetaGraph(const GptjShape& shape) {
  MetaGraphDef meta;
  meta.mutable_meta_info_def()->add_tags("serve");
  GraphDef& graph = *meta.mutable_graph_def();
  graph.mutable_versions()->set_producer(1882);
  for (int i = 0; i < shape.functions; ++i) {
    *graph.mutable_library()->add_function() =
        BodyBuilder(absl::StrCat("__inference_body_", i), shape).Take();
  }
  AddCall(graph.library().function(0), &graph);
  auto& signature = (*meta.mutable_signature_def())["serving_default"];
  signature.set_method_name("tensorflow/serving/predict");
  auto& input = (*signature.mutable_inputs())["x"];
  input.set_name("serving_default_x:0");
  input.set_dtype(tensorflow::DT_FLOAT);
  auto& output = (*signature.mutable_outputs())["logits"];
  output.set_name("StatefulPartitionedCall:0");
  output.set_dtype(tensorflow::DT_FLOAT);
  return meta;
}

absl::Status WriteGptjModel(const std::string& directory,
                            const GptjShape& shape, int64_t variable_bytes) {
  std::error_code error;
  std::filesystem::create_directories(directory + "/variables", error);
  tensorflow::SavedModel model;
  model.set_saved_model_schema_version(1);
  *model.add_meta_graphs() = GptjMetaGraph(shape);
  REQUANT_RETURN_IF_ERROR(WriteFileAtomically(directory + "/saved_model.pb",
                                              DeterministicBytes(model)));
  const std::string prefix = directory + "/variables/variables";
  tensorflow::BundleWriter writer(tensorflow::Env::Default(), prefix);
  REQUANT_RETURN_IF_ERROR(
      writer.Add("Variable_1", Tensor(tensorflow::DT_FLOAT, {2, 2})));
  REQUANT_RETURN_IF_ERROR(writer.Finish());
  if (truncate((prefix + ".data-00000-of-00001").c_str(), variable_bytes) !=
      0) {
    return absl::ErrnoToStatus(errno, "making a file of variables");
  }
  return absl::OkStatus();
}

}  // namespace requant
