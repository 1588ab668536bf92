#include "runtime/tensorflow_check.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "google/protobuf/text_format.h"
#include "graph/tensorflow_library.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/public/session.h"

namespace requant {
namespace {

constexpr int kRows = 4, kDepth = 64, kColumns = 16;

// All scales are 1 (ranges 0…255 and -127…127), so that the layer's float
// outputs are its integer sums. The input is fed: on a constant one TensorFlow
// would take another kernel.
constexpr char kLayer[] = R"pb(
  node {
    name: "x"
    op: "Placeholder"
    attr {
      key: "dtype"
      value { type: DT_FLOAT }
    }
  }
  node {
    name: "x_min"
    op: "Const"
    attr {
      key: "dtype"
      value { type: DT_FLOAT }
    }
    attr {
      key: "value"
      value {
        tensor {
          dtype: DT_FLOAT
          tensor_shape {}
          float_val: 0
        }
      }
    }
  }
  node {
    name: "x_max"
    op: "Const"
    attr {
      key: "dtype"
      value { type: DT_FLOAT }
    }
    attr {
      key: "value"
      value {
        tensor {
          dtype: DT_FLOAT
          tensor_shape {}
          float_val: 255
        }
      }
    }
  }
  node {
    name: "weights"
    op: "Const"
    attr {
      key: "dtype"
      value { type: DT_QINT8 }
    }
    attr {
      key: "value"
      value {
        tensor {
          dtype: DT_QINT8
          tensor_shape {
            dim { size: 64 }
            dim { size: 16 }
          }
        }
      }
    }
  }
  node {
    name: "bias"
    op: "Const"
    attr {
      key: "dtype"
      value { type: DT_FLOAT }
    }
    attr {
      key: "value"
      value {
        tensor {
          dtype: DT_FLOAT
          tensor_shape { dim { size: 16 } }
          float_val: 3
        }
      }
    }
  }
  node {
    name: "weights_min"
    op: "Const"
    attr {
      key: "dtype"
      value { type: DT_FLOAT }
    }
    attr {
      key: "value"
      value {
        tensor {
          dtype: DT_FLOAT
          tensor_shape {}
          float_val: -127
        }
      }
    }
  }
  node {
    name: "weights_max"
    op: "Const"
    attr {
      key: "dtype"
      value { type: DT_FLOAT }
    }
    attr {
      key: "value"
      value {
        tensor {
          dtype: DT_FLOAT
          tensor_shape {}
          float_val: 127
        }
      }
    }
  }
  node {
    name: "quantized"
    op: "QuantizeV2"
    input: "x"
    input: "x_min"
    input: "x_max"
    attr {
      key: "T"
      value { type: DT_QUINT8 }
    }
    attr {
      key: "mode"
      value { s: "MIN_FIRST" }
    }
  }
  node {
    name: "y"
    op: "QuantizedMatMulWithBiasAndDequantize"
    input: "quantized"
    input: "weights"
    input: "bias"
    input: "quantized:1"
    input: "quantized:2"
    input: "weights_min"
    input: "weights_max"
    input: "weights_min"
    input: "weights_max"
    attr {
      key: "T1"
      value { type: DT_QUINT8 }
    }
    attr {
      key: "T2"
      value { type: DT_QINT8 }
    }
    attr {
      key: "Tbias"
      value { type: DT_FLOAT }
    }
    attr {
      key: "Toutput"
      value { type: DT_FLOAT }
    }
    attr {
      key: "input_quant_mode"
      value { s: "MIN_FIRST" }
    }
  }
)pb";
constexpr int kBias = 3;

struct Factors {
  // kRows by kDepth and kDepth by kColumns.
  std::vector<int> x, weights;
};

Factors SevenBitFactors() {
  Factors factors;
  for (int i = 0; i < kRows * kDepth; ++i) {
    factors.x.push_back(i * 37 % 256);
  }
  for (int i = 0; i < kDepth * kColumns; ++i) {
    factors.weights.push_back(i * 29 % 127 - 63);
  }
  return factors;
}

Factors LargestFactors() {
  return {std::vector<int>(kRows * kDepth, 255),
          std::vector<int>(kDepth * kColumns, 127)};
}

int Expected(const Factors& factors, int row, int column) {
  int sum = kBias;
  for (int k = 0; k < kDepth; ++k) {
    sum += factors.x[row * kDepth + k] * factors.weights[k * kColumns + column];
  }
  return sum;
}

absl::StatusOr<tensorflow::GraphDef> LayerWithWeights(
    const std::vector<int>& weights) {
  tensorflow::GraphDef graph;
  if (!google::protobuf::TextFormat::ParseFromString(kLayer, &graph)) {
    return absl::InternalError("the layer's text is malformed");
  }
  std::string bytes;
  for (int weight : weights) bytes.push_back(static_cast<char>(weight));
  for (tensorflow::NodeDef& node : *graph.mutable_node()) {
    if (node.name() != "weights") continue;
    (*node.mutable_attr())["value"].mutable_tensor()->set_tensor_content(bytes);
  }
  return graph;
}

absl::StatusOr<tensorflow::Tensor> RunLayer(const Factors& factors) {
  REQUANT_ASSIGN_OR_RETURN(const tensorflow::GraphDef graph,
                           LayerWithWeights(factors.weights));
  tensorflow::Session* created = nullptr;
  REQUANT_RETURN_IF_ERROR(
      tensorflow::NewSession(tensorflow::SessionOptions(), &created));
  const std::unique_ptr<tensorflow::Session> session(created);
  REQUANT_RETURN_IF_ERROR(session->Create(graph));
  tensorflow::Tensor x(tensorflow::DT_FLOAT, {kRows, kDepth});
  for (int i = 0; i < kRows * kDepth; ++i) {
    x.flat<float>()(i) = factors.x[i];
  }
  std::vector<tensorflow::Tensor> outputs;
  REQUANT_RETURN_IF_ERROR(session->Run({{"x", x}}, {"y"}, {}, &outputs));
  if (outputs.size() != 1 || outputs[0].dtype() != tensorflow::DT_FLOAT ||
      outputs[0].NumElements() != kRows * kColumns) {
    return absl::InternalError("the int8 layer's output has the wrong shape");
  }
  return outputs[0];
}

// OK when every output is the integer sum.
absl::Status CompareWithSums(const Factors& factors,
                             const tensorflow::Tensor& output) {
  for (int i = 0; i < kRows * kColumns; ++i) {
    const int want = Expected(factors, i / kColumns, i % kColumns);
    const float got = output.flat<float>()(i);
    if (got != want) {
      return absl::DataLossError(absl::StrCat(
          "an int8 layer of 7-bit weights gave ", got, " instead of ", want));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> LoadedTensorFlowVersion() {
  REQUANT_ASSIGN_OR_RETURN(void* version, TensorFlowSymbol("TF_Version"));
  return std::string(reinterpret_cast<const char* (*)()>(version)());
}

absl::StatusOr<Int8Sums> RunInt8Layer() {
  REQUANT_RETURN_IF_ERROR(LoadTensorFlow());
  const Factors small = SevenBitFactors();
  REQUANT_ASSIGN_OR_RETURN(const tensorflow::Tensor small_output,
                           RunLayer(small));
  REQUANT_RETURN_IF_ERROR(CompareWithSums(small, small_output));
  const Factors largest = LargestFactors();
  REQUANT_ASSIGN_OR_RETURN(const tensorflow::Tensor largest_output,
                           RunLayer(largest));
  return CompareWithSums(largest, largest_output).ok() ? Int8Sums::kExact
                                                       : Int8Sums::kSaturating;
}

}  // namespace requant
