#include "graph/testing/gptj_model.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/substitute.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "google/protobuf/text_format.h"
#include "graph/graph_io.h"
#include "graph/testing/testing.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"
#include "tensorflow/core/util/tensor_bundle/tensor_bundle.h"

namespace requant {
namespace {

using tensorflow::MetaGraphDef;

// The nodes that tf.tensordot($1, variable $2, 1) creates under the name $0 for
// results of $3 columns.
constexpr char kProjection[] = R"(
  $0/ReadVariableOp = ReadVariableOp($2) dtype=float
  $0/axes = int32<1>{2}
  $0/free = int32<2>{0,1}
  $0/Shape = Shape($1) T=float out_type=int32
  $0/GatherV2/axis = int32{0}
  $0/GatherV2 = GatherV2($0/Shape:output:0, $0/free:output:0,
      $0/GatherV2/axis:output:0) Tparams=int32 Tindices=int32 Taxis=int32
  $0/GatherV2_1/axis = int32{0}
  $0/GatherV2_1 = GatherV2($0/Shape:output:0, $0/axes:output:0,
      $0/GatherV2_1/axis:output:0) Tparams=int32 Tindices=int32 Taxis=int32
  $0/Const = int32<1>{0}
  $0/Prod = Prod($0/GatherV2:output:0, $0/Const:output:0) T=int32 Tidx=int32
  $0/Const_1 = int32<1>{0}
  $0/Prod_1 = Prod($0/GatherV2_1:output:0, $0/Const_1:output:0) T=int32
      Tidx=int32
  $0/concat/axis = int32{0}
  $0/concat = ConcatV2($0/free:output:0, $0/axes:output:0,
      $0/concat/axis:output:0) T=int32 Tidx=int32 N=2
  $0/stack = Pack($0/Prod:output:0, $0/Prod_1:output:0) T=int32 N=2
  $0/transpose = Transpose($1, $0/concat:output:0) T=float Tperm=int32
  $0/Reshape = Reshape($0/transpose:y:0, $0/stack:output:0) T=float
      Tshape=int32
  $0/MatMul = MatMul($0/Reshape:output:0, $0/ReadVariableOp:value:0) T=float
  $0/Const_2 = int32<1>{$3}
  $0/concat_1/axis = int32{0}
  $0/concat_1 = ConcatV2($0/GatherV2:output:0, $0/Const_2:output:0,
      $0/concat_1/axis:output:0) T=int32 Tidx=int32 N=2
  $0 = Reshape($0/MatMul:product:0, $0/concat_1:output:0) T=float Tshape=int32
)";

// As many nodes of each kind as rotary positions have.
constexpr char kRotation[] = R"(
  $0/Sin = Sin($1) T=float
  $0/Cos = Cos($1) T=float
  $0/mul = Mul($1, $0/Sin:y:0) T=float
  $0/Neg = Neg($1) T=float
  $0/mul_1 = Mul($0/Neg:y:0, $0/Cos:y:0) T=float
  $0/add = AddV2($0/mul:z:0, $0/mul_1:z:0) T=float
)";

// Builds a function that runs the layers in sequence.
class BodyBuilder {
 public:
  explicit BodyBuilder(const GptjShape& shape) : shape_(shape) {
    std::string last = "x";
    for (int i = 0; i < shape.layers; ++i) {
      last = Layer(absl::StrCat("StatefulPartitionedCall/transformer/h_._", i),
                   last);
    }
    result_ = Projection("StatefulPartitionedCall/lm_head", last);
  }

  std::string Text(const std::string& name) const {
    return Function(name, arguments_, {{"logits", result_}}, GraphText(body_));
  }
  int variables() const { return arguments_.size() - 1; }

 private:
  void Add(const std::string& lines, const std::string& name,
           const std::string& x, const std::string& more = "") {
    absl::SubstituteAndAppend(&body_, lines, name, x, more, shape_.width);
  }

  std::string Projection(const std::string& layer, const std::string& x) {
    const std::string variable = absl::StrCat("v", arguments_.size());
    arguments_.push_back(variable + ":resource");
    Add(kProjection, layer + "/Tensordot", x, variable);
    return layer + "/Tensordot:output:0";
  }

  // Adds attention and feed-forward that read the same values in parallel.
  std::string Layer(const std::string& name, const std::string& x) {
    Add(kRotation, name + "/attn/q", Projection(name + "/attn/q_proj", x));
    Add(kRotation, name + "/attn/k", Projection(name + "/attn/k_proj", x));
    Add(R"(
      $0/MatMul = BatchMatMulV2($0/q/add:z:0, $0/k/add:z:0) T=float adj_y=true
      $0/Softmax = Softmax($0/MatMul:output:0) T=float
      $0/MatMul_1 = BatchMatMulV2($0/Softmax:softmax:0, $1) T=float
    )",
        name + "/attn", Projection(name + "/attn/v_proj", x));
    const std::string attention =
        Projection(name + "/attn/out_proj", name + "/attn/MatMul_1:output:0");
    Add("$0/mlp/Tanh = Tanh($1) T=float\n", name,
        Projection(name + "/mlp/fc_in", x));
    const std::string outer =
        Projection(name + "/mlp/fc_out", name + "/mlp/Tanh:y:0");
    Add("$0/add = AddV2($1, $2) T=float\n", name, attention, outer);
    Add("$0/add_1 = AddV2($0/add:z:0, $1) T=float\n", name, x);
    return name + "/add_1:z:0";
  }

  const GptjShape shape_;
  std::vector<std::string> arguments_ = {"x"};
  std::string body_;
  std::string result_;
};

// Returns variables, and a call of `function` with all of them.
std::string CallWithVariables(const std::string& function, int variables) {
  const std::string call = "StatefulPartitionedCall";
  std::string nodes = "serving_default_x = Placeholder dtype=float\n";
  std::string inputs = "serving_default_x", types = "float";
  for (int i = 1; i <= variables; ++i) {
    absl::SubstituteAndAppend(&nodes,
                              "Variable_$0 = VarHandleOp dtype=float shape=<*> "
                              "shared_name='Variable_$0' container=''\n",
                              i);
    absl::StrAppend(&inputs, ", Variable_", i);
    absl::StrAppend(&types, ",resource");
  }
  return absl::Substitute("$0$1 = $1($2) Tin=[$3] Tout=[float] f=@$4\n", nodes,
                          call, inputs, types, function);
}

// A MetaGraph except for its graph.
constexpr char kMetaGraph[] = R"(
  meta_info_def { tags: 'serve' }
  signature_def { key: 'serving_default' value {
    method_name: 'tensorflow/serving/predict'
    inputs { key: 'x' value { name: 'serving_default_x:0' dtype: DT_FLOAT } }
    outputs { key: 'logits'
              value { name: 'StatefulPartitionedCall:0' dtype: DT_FLOAT } } } }
)";

MetaGraphDef GptjMetaGraph(const GptjShape& shape) {
  MetaGraphDef meta;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kMetaGraph, &meta));
  const BodyBuilder body(shape);
  std::vector<std::string> functions;
  for (int i = 0; i < shape.functions; ++i) {
    functions.push_back(body.Text(absl::StrCat("__inference_body_", i)));
  }
  *meta.mutable_graph_def() = GraphFromText(
      absl::StrCat(CallWithVariables("__inference_body_0", body.variables()),
                   Library(functions), "versions { producer: 1882 }"));
  return meta;
}

}  // namespace

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
