#include "benchmarks/wide_deep_graph.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmarks/wide_deep_records.h"
#include "graph/const_node.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"

namespace requant {
namespace {

using tensorflow::DataType;
using tensorflow::NodeDef;
using tensorflow::Tensor;
using tensorflow::TensorShape;

constexpr int kColumns = 26;
constexpr int kBuckets = 1000;
constexpr int kEmbedding = 32;

class Builder {
 public:
  NodeDef& Add(const std::string& name, const std::string& op,
               const std::vector<std::string>& inputs,
               const std::vector<std::pair<std::string, DataType>>& types) {
    NodeDef& node = *graph.add_node();
    node.set_name(name);
    node.set_op(op);
    for (const std::string& input : inputs) node.add_input(input);
    for (const auto& [key, type] : types) {
      (*node.mutable_attr())[key].set_type(type);
    }
    return node;
  }
  std::string Constant(const std::string& name, const Tensor& value) {
    *graph.add_node() = MakeConst(name, value);
    return name;
  }
  std::string Number(const std::string& name, float value) {
    return Constant(name, Tensor(value));
  }
  std::string Integers(const std::string& name,
                       const std::vector<int32_t>& values) {
    Tensor tensor(tensorflow::DT_INT32,
                  TensorShape({static_cast<int64_t>(values.size())}));
    std::copy(values.begin(), values.end(), tensor.flat<int32_t>().data());
    return Constant(name, tensor);
  }
  std::string RandomFloats(const std::string& name, const TensorShape& shape) {
    Tensor tensor(tensorflow::DT_FLOAT, shape);
    auto flat = tensor.flat<float>();
    std::uniform_real_distribution<float> uniform(0, 1);
    for (int64_t i = 0; i < flat.size(); ++i) flat(i) = uniform(random_);
    return Constant(name, tensor);
  }
  std::string RandomWeights(const std::string& name, int rows, int columns) {
    Tensor tensor(tensorflow::DT_QINT8, {rows, columns});
    auto flat = tensor.flat<tensorflow::qint8>();
    std::uniform_int_distribution<int> uniform(-63, 63);
    for (int64_t i = 0; i < flat.size(); ++i) {
      flat(i) = static_cast<int8_t>(uniform(random_));
    }
    return Constant(name, tensor);
  }

  // The rows of a table of [columns, buckets, width] that the pairs choose, as
  // [batch, columns * width].
  std::string Gathered(const std::string& name, const TensorShape& table,
                       int width) {
    Add(absl::StrCat(name, "/gather"), "GatherNd",
        {RandomFloats(absl::StrCat(name, "/table"), table),
         "new_categorical_placeholder"},
        {{"Tparams", tensorflow::DT_FLOAT},
         {"Tindices", tensorflow::DT_INT64}});
    Add(name, "Reshape",
        {absl::StrCat(name, "/gather"),
         Integers(absl::StrCat(name, "/shape"), {-1, kColumns * width})},
        {{"T", tensorflow::DT_FLOAT}, {"Tshape", tensorflow::DT_INT32}});
    return name;
  }

  // A quantized layer; `input` has outputs for its values, minimum and maximum.
  NodeDef& Layer(const std::string& name, const std::string& op,
                 const std::string& input, int rows, int columns,
                 DataType output_type) {
    Tensor bias(tensorflow::DT_QINT32, TensorShape({columns}));
    bias.flat<tensorflow::qint32>().setZero();
    NodeDef& node = Add(
        name, op,
        {input, RandomWeights(absl::StrCat(name, "/weights"), rows, columns),
         Constant(absl::StrCat(name, "/bias"), bias), absl::StrCat(input, ":1"),
         absl::StrCat(input, ":2"),
         Number(absl::StrCat(name, "/weights_min"), -0.05f),
         Number(absl::StrCat(name, "/weights_max"), 0.05f),
         Number(absl::StrCat(name, "/frozen_min"), 0),
         Number(absl::StrCat(name, "/frozen_max"), 2)},
        {{"T1", tensorflow::DT_QUINT8},
         {"T2", tensorflow::DT_QINT8},
         {"Tbias", tensorflow::DT_QINT32},
         {"Toutput", output_type}});
    (*node.mutable_attr())["input_quant_mode"].set_s("MIN_FIRST");
    return node;
  }

  tensorflow::GraphDef graph;

 private:
  std::mt19937 random_{1};
};

void AddInputs(Builder* builder) {
  const auto placeholder = [&](const std::string& name, DataType type,
                               int width) {
    NodeDef& node = builder->Add(name, "Placeholder", {}, {{"dtype", type}});
    auto* shape = (*node.mutable_attr())["shape"].mutable_shape();
    shape->add_dim()->set_size(-1);
    shape->add_dim()->set_size(width);
  };
  placeholder("new_numeric_placeholder", tensorflow::DT_FLOAT, kNumeric);
  placeholder("new_categorical_placeholder", tensorflow::DT_INT64, 2);
}

// Adds the deep part; returns its logits.
std::string AddDeepPart(Builder* builder) {
  const std::string embeddings = builder->Gathered(
      "embeddings", {kColumns, kBuckets, kEmbedding}, kEmbedding);
  builder->Constant("axis", Tensor(int32_t{1}));
  NodeDef& concat = builder->Add(
      "deep_input", "ConcatV2", {embeddings, "new_numeric_placeholder", "axis"},
      {{"T", tensorflow::DT_FLOAT}, {"Tidx", tensorflow::DT_INT32}});
  (*concat.mutable_attr())["N"].set_i(2);
  NodeDef& quantize =
      builder->Add("quantize", "QuantizeV2",
                   {"deep_input", builder->Number("input_min", 0),
                    builder->Number("input_max", 1)},
                   {{"T", tensorflow::DT_QUINT8}});
  (*quantize.mutable_attr())["mode"].set_s("MIN_FIRST");
  constexpr char kHidden[] = "QuantizedMatMulWithBiasAndReluAndRequantize";
  const int input_width = kColumns * kEmbedding + kNumeric;
  builder->Layer("hidden_0", kHidden, "quantize", input_width, 1024,
                 tensorflow::DT_QUINT8);
  builder->Layer("hidden_1", kHidden, "hidden_0", 1024, 512,
                 tensorflow::DT_QUINT8);
  builder->Layer("hidden_2", kHidden, "hidden_1", 512, 256,
                 tensorflow::DT_QUINT8);
  builder->Layer("deep", "QuantizedMatMulWithBiasAndDequantize", "hidden_2",
                 256, 1, tensorflow::DT_FLOAT);
  return "deep";
}

// Adds the wide part: the sum of one weight per column.
std::string AddWidePart(Builder* builder) {
  const std::string weights =
      builder->Gathered("wide_weights", {kColumns, kBuckets}, 1);
  NodeDef& sum = builder->Add(
      "wide", "Sum", {weights, builder->Integers("wide_axis", {1})},
      {{"T", tensorflow::DT_FLOAT}, {"Tidx", tensorflow::DT_INT32}});
  (*sum.mutable_attr())["keep_dims"].set_b(true);
  return "wide";
}

}  // namespace

tensorflow::GraphDef Int8WideDeepGraph() {
  Builder builder;
  AddInputs(&builder);
  builder.Add("logits", "AddV2", {AddDeepPart(&builder), AddWidePart(&builder)},
              {{"T", tensorflow::DT_FLOAT}});
  builder.Add("zeros", "ZerosLike", {"logits"}, {{"T", tensorflow::DT_FLOAT}});
  NodeDef& both = builder.Add(
      "two_class_logits", "ConcatV2", {"zeros", "logits", "axis"},
      {{"T", tensorflow::DT_FLOAT}, {"Tidx", tensorflow::DT_INT32}});
  (*both.mutable_attr())["N"].set_i(2);
  builder.Add("head/predictions/probabilities", "Softmax", {"two_class_logits"},
              {{"T", tensorflow::DT_FLOAT}});
  return builder.graph;
}

}  // namespace requant
