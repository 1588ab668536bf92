#include "benchmarks/graphs.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "base/files/file.h"
#include "base/records/record_format.h"
#include "base/status_macros.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"
#include "graph/const_node.h"
#include "graph/testing/graph_text.h"
#include "tensorflow/core/example/example.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"

namespace requant {
namespace {

using google::protobuf::TextFormat;
using tensorflow::GraphDef;
using tensorflow::Tensor;
using tensorflow::TensorShape;

// Merges the text proto `text` into `message`; a parse failure is a bug in this
// file.
void MergeText(const std::string& text, google::protobuf::Message* message) {
  if (!TextFormat::MergeFromString(text, message)) std::abort();
}

// Adds nodes and functions in the format of graph/testing/graph_text.h.
void AddText(const std::string& lines, GraphDef* graph) {
  MergeText(GraphText(lines), graph);
}

// $0 is the layer's name, $1 its input.
constexpr char kChainLayer[] = R"(
  $0_min = Min($1, axes) T=float
  $0_max = Max($1, axes) T=float
  $0_quantize = QuantizeV2($1, $0_min, $0_max) T=quint8
  $0_weights = qint8<4,4>{3}
  $0_bias = float<4>{0.5}
  $0_weight_min = float{-1}
  $0_weight_max = float{1}
  $0_matmul = QuantizedMatMulWithBiasAndRelu($0_quantize, $0_weights, $0_bias,
      $0_quantize:1, $0_quantize:2, $0_weight_min, $0_weight_max)
      T1=quint8 T2=qint8 Toutput=qint32
  $0_range = RequantizationRange($0_matmul, $0_matmul:1, $0_matmul:2)
      Tinput=qint32
  $0 = Requantize($0_matmul, $0_matmul:1, $0_matmul:2, $0_range, $0_range:1)
      Tinput=qint32 out_type=quint8
  $0_float = Dequantize($0, $0:1, $0:2) T=quint8
)";

constexpr int kNodesOfDecoderLayer = 11;
constexpr int kNodesOfSmallFunction = 1000;

// Queries and keys from the same reshaped values, their product, and what
// follows it, in a function that reads the variable v. $0 is the layer's name,
// $1 its input.
constexpr char kDecoderLayer[] = R"(
  $0/shape = int32<2>{4}
  $0/mul = Mul($1, $1) T=float
  $0/reshape = Reshape($0/mul:z:0, $0/shape:output:0) T=float
  $0/query/read = ReadVariableOp(v) dtype=float
  $0/query = MatMul($0/reshape:output:0, $0/query/read:value:0) T=float
  $0/key/read = ReadVariableOp(v) dtype=float
  $0/key = MatMul($0/reshape:output:0, $0/key/read:value:0) T=float
  $0/scores = BatchMatMulV2($0/query:product:0, $0/key:product:0) T=float
  $0/relu = Relu($0/scores:output:0) T=float
  $0/bias = AddV2($0/relu:activations:0, $0/mul:z:0) T=float
  $0/add = AddV2($0/bias:z:0, $1) T=float
)";

// Returns a function with this many layers, and a call of it with `input`.
std::string DecoderPart(const std::string& name, const std::string& input,
                        int layers) {
  std::string body, last = "x";
  for (int i = 0; i < layers; ++i) {
    const std::string layer = absl::StrCat("transformer/h_._", i, "/attn");
    absl::SubstituteAndAppend(&body, kDecoderLayer, layer, last);
    last = absl::StrCat(layer, "/add:z:0");
  }
  return absl::Substitute(R"(
    call_$0 = StatefulPartitionedCall($1, v) f=@$0 Tin=[float,resource]
        Tout=[float]
    function $0(x, v:resource) -> (y=$2) {
      $3
    })",
                          name, input, last, body);
}

constexpr int kColumns = 26;
constexpr int kBuckets = 1000;
constexpr int kEmbedding = 32;

// The wide part is the sum of one weight per column.
constexpr char kAroundInt8Layers[] = R"(
  new_numeric_placeholder = Placeholder dtype=float shape=<?,13>
  new_categorical_placeholder = Placeholder dtype=int64 shape=<?,2>
  embeddings/gather = GatherNd(embeddings/table, new_categorical_placeholder)
      Tparams=float Tindices=int64
  embeddings/shape = int32<2>{-1,832}
  embeddings = Reshape(embeddings/gather, embeddings/shape) T=float Tshape=int32
  axis = int32{1}
  deep_input = ConcatV2(embeddings, new_numeric_placeholder, axis) T=float N=2
      Tidx=int32
  input_min = float{0}
  input_max = float{1}
  quantize = QuantizeV2(deep_input, input_min, input_max) T=quint8
      mode='MIN_FIRST'
  wide_weights/gather = GatherNd(wide_weights/table,
      new_categorical_placeholder) Tparams=float Tindices=int64
  wide_weights/shape = int32<2>{-1,26}
  wide_weights = Reshape(wide_weights/gather, wide_weights/shape) T=float
      Tshape=int32
  wide_axis = int32<1>{1}
  wide = Sum(wide_weights, wide_axis) T=float Tidx=int32 keep_dims=true
  logits = AddV2(deep, wide) T=float
  zeros = ZerosLike(logits) T=float
  two_class_logits = ConcatV2(zeros, logits, axis) T=float N=2 Tidx=int32
  head/predictions/probabilities = Softmax(two_class_logits) T=float
)";

// $0 is the layer's name, $1 its input, $2 the number of its columns, $3 its op
// and $4 the type of its output.
constexpr char kInt8Layer[] = R"(
  $0/bias = qint32<$2>{0}
  $0/weights_min = float{-0.05}
  $0/weights_max = float{0.05}
  $0/frozen_min = float{0}
  $0/frozen_max = float{2}
  $0 = $3($1, $0/weights, $0/bias, $1:1, $1:2, $0/weights_min, $0/weights_max,
      $0/frozen_min, $0/frozen_max) T1=quint8 T2=qint8 Tbias=qint32 Toutput=$4
      input_quant_mode='MIN_FIRST'
)";

// Adds a constant whose values come from `draw`.
template <typename T, typename Draw>
void AddConstant(const std::string& name, const TensorShape& shape,
                 const Draw& draw, GraphDef* graph) {
  Tensor tensor(tensorflow::DataTypeToEnum<T>::value, shape);
  auto flat = tensor.flat<T>();
  std::generate_n(flat.data(), flat.size(), draw);
  *graph->add_node() = MakeConst(name, tensor);
}

}  // namespace

std::string ChainLayerName(int layer) {
  return absl::StrCat("import/dnn/hiddenlayer_", layer);
}

GraphDef QuantizedChain(int layers) {
  GraphDef graph;
  AddText("x = Placeholder dtype=float; axes = int32<2>{0,1}", &graph);
  std::string last = "x";
  for (int i = 0; i < layers; ++i) {
    const std::string layer = ChainLayerName(i);
    AddText(absl::Substitute(kChainLayer, layer, last), &graph);
    last = layer + "_float";
  }
  return graph;
}

GraphDef DecoderGraph(int nodes) {
  GraphDef graph;
  AddText(
      "x = Placeholder dtype=float; v = VarHandleOp dtype=float shape=<4,4>",
      &graph);
  std::string last = "x";
  int number = 0;
  for (int left = nodes; left > 0; ++number) {
    const int size = number == 0 ? std::max(1, nodes / 2)
                                 : std::min(left, kNodesOfSmallFunction);
    const std::string name = absl::StrCat("part_", number);
    AddText(DecoderPart(name, last, std::max(1, size / kNodesOfDecoderLayer)),
            &graph);
    last = absl::StrCat("call_", name);
    left -= size;
  }
  return graph;
}

GraphDef Int8WideDeepGraph() {
  GraphDef graph;
  AddText(kAroundInt8Layers, &graph);
  std::mt19937 random(1);
  std::uniform_real_distribution<float> real(0, 1);
  std::uniform_int_distribution<int> code(-63, 63);
  const auto float_value = [&] { return real(random); };
  const auto weight = [&] {
    return tensorflow::qint8(static_cast<int8_t>(code(random)));
  };
  AddConstant<float>("embeddings/table", {kColumns, kBuckets, kEmbedding},
                     float_value, &graph);
  AddConstant<float>("wide_weights/table", {kColumns, kBuckets}, float_value,
                     &graph);
  std::string last = "quantize";
  int width = kColumns * kEmbedding + kNumeric;
  for (const int columns : {1024, 512, 256, 1}) {
    const bool is_last = columns == 1;
    const std::string name =
        is_last ? "deep" : absl::StrCat("hidden_", columns);
    AddConstant<tensorflow::qint8>(name + "/weights", {width, columns}, weight,
                                   &graph);
    AddText(absl::Substitute(
                kInt8Layer, name, last, columns,
                is_last ? "QuantizedMatMulWithBiasAndDequantize"
                        : "QuantizedMatMulWithBiasAndReluAndRequantize",
                is_last ? "float" : "quint8"),
            &graph);
    last = name;
    width = columns;
  }
  return graph;
}

absl::Status WriteWideDeepRecords(const std::string& path, int records) {
  constexpr size_t kChunk = 1 << 20;
  return WriteFileAtomically(path, [&](int fd) -> absl::Status {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> numeric(0, 1);
    std::string chunk;
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
      AppendRecord(example.SerializeAsString(), &chunk);
      if (chunk.size() < kChunk) continue;
      REQUANT_RETURN_IF_ERROR(WriteAll(fd, chunk));
      chunk.clear();
    }
    return WriteAll(fd, chunk);
  });
}

DatasetSpec WideDeepDataset(const std::string& path) {
  DatasetSpec spec;
  MergeText(R"(
    input { feature: "numeric_1" placeholder: "new_numeric_placeholder"
            dtype: "float" shape: 13 }
    input { feature: "string_1" placeholder: "new_categorical_placeholder"
            dtype: "int64" shape: 52 feed_shape: [ -1, 2 ] }
    label { feature: "label" dtype: "int64" }
    prediction { tensor: "head/predictions/probabilities" })",
            &spec);
  spec.mutable_tfrecord()->add_files(path);
  return spec;
}

}  // namespace requant
