#include "runtime/session/tensorflow_check.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/const_node.h"
#include "graph/tensorflow_library.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/public/session.h"

namespace requant {
namespace {

using tensorflow::DataType;
using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::Tensor;

constexpr int kBias = 3;
// Outputs of the layer with Relu are clipped to this.
constexpr float kLargestOutput = 1 << 20;

// A layer of ordinary size. For smaller ones oneDNN uses other instructions.
constexpr int kRows = 512, kDepth = 845, kColumns = 1024;

struct Layer {
  int rows, depth, columns;
  // Have shapes [rows, depth] and [depth, columns].
  std::vector<int> x, weights;
};

Layer SevenBitLayer(int rows, int depth, int columns) {
  Layer layer = {rows, depth, columns, {}, {}};
  for (int i = 0; i < rows * depth; ++i) layer.x.push_back(i * 37 % 256);
  for (int i = 0; i < depth * columns; ++i) {
    layer.weights.push_back(i * 29 % 127 - 63);
  }
  return layer;
}

Layer LargestFactors(int rows, int depth, int columns) {
  return {rows, depth, columns, std::vector<int>(rows * depth, 255),
          std::vector<int>(depth * columns, 127)};
}

int Expected(const Layer& layer, int row, int column) {
  int sum = kBias;
  for (int k = 0; k < layer.depth; ++k) {
    sum += layer.x[row * layer.depth + k] *
           layer.weights[k * layer.columns + column];
  }
  return sum;
}

NodeDef Node(const std::string& name, const std::string& op,
             const std::vector<std::string>& inputs,
             const std::vector<std::pair<std::string, DataType>>& types) {
  NodeDef node;
  node.set_name(name);
  node.set_op(op);
  for (const std::string& input : inputs) node.add_input(input);
  for (const auto& [attribute, type] : types) {
    (*node.mutable_attr())[attribute].set_type(type);
  }
  return node;
}

// Returns the layer as the two ops that quantized graphs have: one has the
// float outputs "y", the other has Relu and outputs "codes". All scales except
// that of the codes are 1 (ranges 0…255 and -127…127), so that the float
// outputs are the integer sums. The input is fed because TensorFlow would use
// another kernel for a constant one.
GraphDef GraphOf(const Layer& layer) {
  Tensor weights(tensorflow::DT_QINT8, {layer.depth, layer.columns});
  for (size_t i = 0; i < layer.weights.size(); ++i) {
    weights.flat<tensorflow::qint8>()(i) = layer.weights[i];
  }
  Tensor bias(tensorflow::DT_FLOAT, {layer.columns});
  bias.flat<float>().setConstant(kBias);
  GraphDef graph;
  *graph.add_node() =
      Node("x", "Placeholder", {}, {{"dtype", tensorflow::DT_FLOAT}});
  *graph.add_node() = MakeConst("weights", weights);
  *graph.add_node() = MakeConst("bias", bias);
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, float>>{{"zero", 0},
                                                  {"x_max", 255},
                                                  {"weights_min", -127},
                                                  {"weights_max", 127},
                                                  {"top", kLargestOutput}}) {
    *graph.add_node() = MakeScalarConst(name, value);
  }
  NodeDef* quantized = graph.add_node();
  *quantized = Node("quantized", "QuantizeV2", {"x", "zero", "x_max"},
                    {{"T", tensorflow::DT_QUINT8}});
  (*quantized->mutable_attr())["mode"].set_s("MIN_FIRST");
  const auto add = [&](const std::string& name, const std::string& op,
                       DataType output) {
    NodeDef* matmul = graph.add_node();
    *matmul = Node(name, op,
                   {"quantized", "weights", "bias", "quantized:1",
                    "quantized:2", "weights_min", "weights_max", "zero", "top"},
                   {{"T1", tensorflow::DT_QUINT8},
                    {"T2", tensorflow::DT_QINT8},
                    {"Tbias", tensorflow::DT_FLOAT},
                    {"Toutput", output}});
    (*matmul->mutable_attr())["input_quant_mode"].set_s("MIN_FIRST");
  };
  add("y", "QuantizedMatMulWithBiasAndDequantize", tensorflow::DT_FLOAT);
  add("codes", "QuantizedMatMulWithBiasAndReluAndRequantize",
      tensorflow::DT_QUINT8);
  return graph;
}

// Fails unless the outputs match the integer sums. If there are many outputs,
// checks only some.
absl::Status RunLayer(const Layer& layer) {
  tensorflow::SessionOptions options;
  options.config.set_intra_op_parallelism_threads(2);
  options.config.set_inter_op_parallelism_threads(2);
  tensorflow::Session* created = nullptr;
  REQUANT_RETURN_IF_ERROR(tensorflow::NewSession(options, &created));
  const std::unique_ptr<tensorflow::Session> session(created);
  REQUANT_RETURN_IF_ERROR(session->Create(GraphOf(layer)));
  Tensor x(tensorflow::DT_FLOAT, {layer.rows, layer.depth});
  std::copy(layer.x.begin(), layer.x.end(), x.flat<float>().data());
  std::vector<Tensor> outputs;
  REQUANT_RETURN_IF_ERROR(
      session->Run({{"x", x}}, {"y", "codes"}, {}, &outputs));
  const int count = layer.rows * layer.columns;
  for (int i = 0; i < count; i += 1 + count / 1000) {
    const int want = Expected(layer, i / layer.columns, i % layer.columns);
    const float got = outputs[0].flat<float>()(i);
    const float code = std::clamp(want / kLargestOutput, 0.f, 1.f) * 255;
    const float got_code = outputs[1].flat<tensorflow::quint8>()(i).value;
    if (got == want && std::fabs(got_code - code) <= 1) continue;
    return absl::DataLossError(
        absl::StrCat("an int8 layer of ", layer.rows, " x ", layer.depth, " x ",
                     layer.columns, " gave ", got, " and the code ", got_code,
                     " instead of ", want, " and ", code));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> LoadedTensorFlowVersion() {
  REQUANT_ASSIGN_OR_RETURN(void* version, TensorFlowSymbol("TF_Version"));
  return std::string(reinterpret_cast<const char* (*)()>(version)());
}

absl::StatusOr<Int8Sums> RunInt8Layers() {
  REQUANT_RETURN_IF_ERROR(LoadTensorFlow());
  REQUANT_RETURN_IF_ERROR(RunLayer(SevenBitLayer(4, 64, 16)));
  REQUANT_RETURN_IF_ERROR(RunLayer(SevenBitLayer(kRows, kDepth, kColumns)));
  return RunLayer(LargestFactors(4, 64, 16)).ok() ? Int8Sums::kExact
                                                  : Int8Sums::kSaturating;
}

}  // namespace requant
