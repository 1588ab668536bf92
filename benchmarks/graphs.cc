#include "benchmarks/graphs.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/records/record_format.h"
#include "graph/const_node.h"
#include "tensorflow/core/example/example.pb.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "transforms/layers/graph_builder.h"

namespace requant {
namespace {

using tensorflow::DataType;
using tensorflow::DT_FLOAT;
using tensorflow::DT_INT32;
using tensorflow::DT_INT64;
using tensorflow::DT_QINT32;
using tensorflow::DT_QINT8;
using tensorflow::DT_QUINT8;
using tensorflow::DT_RESOURCE;
using tensorflow::FunctionDef;
using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::Tensor;
using tensorflow::TensorShape;

// Each function returns the name of what it adds.
class Builder {
 public:
  std::string Add(const std::string& name, const std::string& op,
                  const std::vector<std::string>& inputs,
                  const AttributeTypes& types) {
    *graph.add_node() = MakeNode(name, op, inputs, types);
    return name;
  }
  // Returns the attributes of the node that was added last.
  auto& Attributes() {
    return *graph.mutable_node(graph.node_size() - 1)->mutable_attr();
  }
  std::string Placeholder(const std::string& name, DataType type,
                          const std::vector<int>& shape = {}) {
    Add(name, "Placeholder", {}, {{"dtype", type}});
    for (int size : shape) {
      Attributes()["shape"].mutable_shape()->add_dim()->set_size(size);
    }
    return name;
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
    Tensor tensor(DT_INT32, TensorShape({static_cast<int64_t>(values.size())}));
    std::copy(values.begin(), values.end(), tensor.flat<int32_t>().data());
    return Constant(name, tensor);
  }
  std::string RandomFloats(const std::string& name, const TensorShape& shape) {
    Tensor tensor(DT_FLOAT, shape);
    auto flat = tensor.flat<float>();
    std::uniform_real_distribution<float> uniform(0, 1);
    for (int64_t i = 0; i < flat.size(); ++i) flat(i) = uniform(random_);
    return Constant(name, tensor);
  }
  std::string RandomWeights(const std::string& name, int rows, int columns) {
    Tensor tensor(DT_QINT8, {rows, columns});
    auto flat = tensor.flat<tensorflow::qint8>();
    std::uniform_int_distribution<int> uniform(-63, 63);
    for (int64_t i = 0; i < flat.size(); ++i) {
      flat(i) = static_cast<int8_t>(uniform(random_));
    }
    return Constant(name, tensor);
  }

  GraphDef graph;

 private:
  std::mt19937 random_{1};
};

std::string AddChainLayer(const std::string& name, const std::string& input,
                          Builder* builder) {
  Tensor weights(DT_QINT8, {4, 4}), bias(DT_FLOAT, {4});
  weights.flat<tensorflow::qint8>().setConstant(3);
  bias.flat<float>().setConstant(0.5f);
  const std::string q = name + "_quantize", m = name + "_matmul",
                    r = name + "_range";
  builder->Add(name + "_min", "Min", {input, "axes"}, {{"T", DT_FLOAT}});
  builder->Add(name + "_max", "Max", {input, "axes"}, {{"T", DT_FLOAT}});
  builder->Add(q, "QuantizeV2", {input, name + "_min", name + "_max"},
               {{"T", DT_QUINT8}});
  builder->Add(m, "QuantizedMatMulWithBiasAndRelu",
               {q, builder->Constant(name + "_weights", weights),
                builder->Constant(name + "_bias", bias), q + ":1", q + ":2",
                builder->Number(name + "_weight_min", -1),
                builder->Number(name + "_weight_max", 1)},
               {{"T1", DT_QUINT8}, {"T2", DT_QINT8}, {"Toutput", DT_QINT32}});
  builder->Add(r, "RequantizationRange", {m, m + ":1", m + ":2"},
               {{"Tinput", DT_QINT32}});
  builder->Add(name, "Requantize", {m, m + ":1", m + ":2", r, r + ":1"},
               {{"Tinput", DT_QINT32}, {"out_type", DT_QUINT8}});
  return builder->Add(name + "_float", "Dequantize",
                      {name, name + ":1", name + ":2"}, {{"T", DT_QUINT8}});
}

constexpr int kNodesOfLayer = 11;
constexpr int kNodesOfSmallFunction = 1000;
constexpr int kWidth = 4;

// Adds queries and keys of the same reshaped values, their product, and what
// follows it.
std::string AddDecoderLayer(const std::string& name, const std::string& input,
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
    last = AddDecoderLayer(absl::StrCat("transformer/h_._", i, "/attn"), last,
                           function);
  }
  (*function->mutable_ret())["y"] = last;
}

std::string AddCall(const std::string& function, const std::string& input,
                    Builder* builder) {
  const std::string name =
      builder->Add(absl::StrCat("call_", function), "StatefulPartitionedCall",
                   {input, "v"}, {});
  auto& attributes = builder->Attributes();
  attributes["f"].mutable_func()->set_name(function);
  attributes["Tin"].mutable_list()->add_type(DT_FLOAT);
  attributes["Tin"].mutable_list()->add_type(DT_RESOURCE);
  attributes["Tout"].mutable_list()->add_type(DT_FLOAT);
  return name;
}

constexpr int kColumns = 26;
constexpr int kBuckets = 1000;
constexpr int kEmbedding = 32;

// Adds the rows of a table of [columns, buckets, width] that the pairs choose,
// as [batch, columns * width].
std::string AddGathered(const std::string& name, const TensorShape& table,
                        int width, Builder* builder) {
  builder->Add(name + "/gather", "GatherNd",
               {builder->RandomFloats(name + "/table", table),
                "new_categorical_placeholder"},
               {{"Tparams", DT_FLOAT}, {"Tindices", DT_INT64}});
  return builder->Add(
      name, "Reshape",
      {name + "/gather",
       builder->Integers(name + "/shape", {-1, kColumns * width})},
      {{"T", DT_FLOAT}, {"Tshape", DT_INT32}});
}

// Adds a quantized layer; `input` gives its values, minimum and maximum.
std::string AddInt8Layer(const std::string& name, const std::string& input,
                         int rows, int columns, Builder* builder) {
  const bool last = columns == 1;
  Tensor bias(DT_QINT32, TensorShape({columns}));
  bias.flat<tensorflow::qint32>().setZero();
  builder->Add(name,
               last ? "QuantizedMatMulWithBiasAndDequantize"
                    : "QuantizedMatMulWithBiasAndReluAndRequantize",
               {input, builder->RandomWeights(name + "/weights", rows, columns),
                builder->Constant(name + "/bias", bias), input + ":1",
                input + ":2", builder->Number(name + "/weights_min", -0.05f),
                builder->Number(name + "/weights_max", 0.05f),
                builder->Number(name + "/frozen_min", 0),
                builder->Number(name + "/frozen_max", 2)},
               {{"T1", DT_QUINT8},
                {"T2", DT_QINT8},
                {"Tbias", DT_QINT32},
                {"Toutput", last ? DT_FLOAT : DT_QUINT8}});
  builder->Attributes()["input_quant_mode"].set_s("MIN_FIRST");
  return name;
}

// Adds the deep part; returns its logits.
std::string AddDeepPart(Builder* builder) {
  const std::string embeddings = AddGathered(
      "embeddings", {kColumns, kBuckets, kEmbedding}, kEmbedding, builder);
  builder->Constant("axis", Tensor(int32_t{1}));
  builder->Add("deep_input", "ConcatV2",
               {embeddings, "new_numeric_placeholder", "axis"},
               {{"T", DT_FLOAT}, {"Tidx", DT_INT32}});
  builder->Attributes()["N"].set_i(2);
  builder->Add("quantize", "QuantizeV2",
               {"deep_input", builder->Number("input_min", 0),
                builder->Number("input_max", 1)},
               {{"T", DT_QUINT8}});
  builder->Attributes()["mode"].set_s("MIN_FIRST");
  std::string last = "quantize";
  int width = kColumns * kEmbedding + kNumeric, number = 0;
  for (int columns : {1024, 512, 256, 1}) {
    last =
        AddInt8Layer(columns == 1 ? "deep" : absl::StrCat("hidden_", number++),
                     last, width, columns, builder);
    width = columns;
  }
  return last;
}

// Adds the wide part: the sum of one weight per column.
std::string AddWidePart(Builder* builder) {
  const std::string weights =
      AddGathered("wide_weights", {kColumns, kBuckets}, 1, builder);
  builder->Add("wide", "Sum", {weights, builder->Integers("wide_axis", {1})},
               {{"T", DT_FLOAT}, {"Tidx", DT_INT32}});
  builder->Attributes()["keep_dims"].set_b(true);
  return "wide";
}

}  // namespace

std::string ChainLayerName(int layer) {
  return absl::StrCat("import/dnn/hiddenlayer_", layer);
}

GraphDef QuantizedChain(int layers) {
  Builder builder;
  std::string last = builder.Placeholder("x", DT_FLOAT);
  builder.Integers("axes", {0, 1});
  for (int i = 0; i < layers; ++i) {
    last = AddChainLayer(ChainLayerName(i), last, &builder);
  }
  return std::move(builder.graph);
}

GraphDef DecoderGraph(int nodes) {
  Builder builder;
  std::string last = builder.Placeholder("x", DT_FLOAT);
  builder.Add("v", "VarHandleOp", {}, {{"dtype", DT_FLOAT}});
  for (int i = 0; i < 2; ++i) {
    builder.Attributes()["shape"].mutable_shape()->add_dim()->set_size(kWidth);
  }
  int number = 0;
  for (int left = nodes; left > 0; ++number) {
    const int size = number == 0 ? std::max(1, nodes / 2)
                                 : std::min(left, kNodesOfSmallFunction);
    const std::string name = absl::StrCat("part_", number);
    AddFunction(name, std::max(1, size / kNodesOfLayer), &builder.graph);
    last = AddCall(name, last, &builder);
    left -= size;
  }
  return std::move(builder.graph);
}

GraphDef Int8WideDeepGraph() {
  Builder builder;
  builder.Placeholder("new_numeric_placeholder", DT_FLOAT, {-1, kNumeric});
  builder.Placeholder("new_categorical_placeholder", DT_INT64, {-1, 2});
  // In this order: the random numbers follow it.
  const std::string deep = AddDeepPart(&builder);
  builder.Add("logits", "AddV2", {deep, AddWidePart(&builder)},
              {{"T", DT_FLOAT}});
  builder.Add("zeros", "ZerosLike", {"logits"}, {{"T", DT_FLOAT}});
  builder.Add("two_class_logits", "ConcatV2", {"zeros", "logits", "axis"},
              {{"T", DT_FLOAT}, {"Tidx", DT_INT32}});
  builder.Attributes()["N"].set_i(2);
  builder.Add("head/predictions/probabilities", "Softmax", {"two_class_logits"},
              {{"T", DT_FLOAT}});
  return std::move(builder.graph);
}

absl::Status WriteWideDeepRecords(const std::string& path, int records) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("cannot write ", path));
  }
  std::mt19937 random(1);
  std::uniform_real_distribution<float> numeric(0, 1);
  bool written = true;
  for (int r = 0; r < records; ++r) {
    tensorflow::Example example;
    auto& features = *example.mutable_features()->mutable_feature();
    for (int i = 0; i < kNumeric; ++i) {
      features["numeric_1"].mutable_float_list()->add_value(numeric(random));
    }
    for (int i = 0; i < kCategorical; i += 2) {
      features["string_1"].mutable_int64_list()->add_value(i / 2);
      features["string_1"].mutable_int64_list()->add_value(random() % 1000);
    }
    features["label"].mutable_int64_list()->add_value(random() % 2);
    std::string record;
    AppendRecord(example.SerializeAsString(), &record);
    written &=
        std::fwrite(record.data(), 1, record.size(), file) == record.size();
  }
  written &= std::fclose(file) == 0;
  if (written) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("cannot write ", path));
}

DatasetSpec WideDeepDataset(const std::string& path) {
  DatasetSpec spec;
  spec.mutable_tfrecord()->add_files(path);
  InputSpec& numeric = *spec.add_input();
  numeric.set_feature("numeric_1");
  numeric.set_placeholder("new_numeric_placeholder");
  numeric.set_dtype("float");
  numeric.add_shape(kNumeric);
  InputSpec& categorical = *spec.add_input();
  categorical.set_feature("string_1");
  categorical.set_placeholder("new_categorical_placeholder");
  categorical.set_dtype("int64");
  categorical.add_shape(kCategorical);
  categorical.add_feed_shape(-1);
  categorical.add_feed_shape(2);
  spec.mutable_label()->set_feature("label");
  spec.mutable_label()->set_dtype("int64");
  spec.mutable_prediction()->set_tensor("head/predictions/probabilities");
  return spec;
}

}  // namespace requant
