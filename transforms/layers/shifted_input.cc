#include "transforms/layers/shifted_input.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/const_node.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "transforms/layers/quantized_layer.h"
#include "transforms/layers/quantized_weights.h"
#include "transforms/layers/tensor_pattern.h"

namespace requant {
namespace {

using tensorflow::NodeDef;
using tensorflow::Tensor;

bool HasMode(const NodeDef& node, const std::string& attribute,
             const std::string& mode) {
  const auto found = node.attr().find(attribute);
  return found != node.attr().end() && found->second.s() == mode;
}

// Whether `node` reads output `port` of `producer` at `input`.
bool Reads(const NodeDef& node, int input, const NodeDef& producer, int port) {
  if (input >= node.input_size()) return false;
  const TensorName name = ParseTensorName(node.input(input));
  return name.node == producer.name() && name.port == port;
}

// The constant that `node` reads at `input`.
std::optional<Tensor> ConstantAt(const GraphIndex& index, const NodeDef& node,
                                 int input) {
  const NodeOutput source = TensorSource(index, node, input);
  if (source.node == nullptr) return std::nullopt;
  auto value = ConstValue(*source.node);
  if (!value.ok()) return std::nullopt;
  return *value;
}

// Whether `sums` are the column sums of the weights, up to rounding.
bool AreColumnSums(const Tensor& sums, const Tensor& weights,
                   float weight_max) {
  if (sums.dtype() != tensorflow::DT_FLOAT ||
      weights.dtype() != tensorflow::DT_QINT8 || weights.dims() != 2 ||
      sums.NumElements() != weights.dim_size(1)) {
    return false;
  }
  const std::vector<int64_t> codes = ColumnSums(weights);
  const double step = weight_max / 127.0;
  for (size_t j = 0; j < codes.size(); ++j) {
    const double expected = codes[j] * step;
    if (!(std::fabs(sums.flat<float>()(j) - expected) <=
          1e-5 * (std::fabs(expected) + step))) {
      return false;
    }
  }
  return true;
}

const NodeDef* BiasBehindShift(const GraphIndex& index, const NodeDef& matmul,
                               const NodeDef& quantize) {
  const NodeDef* add = index.Producer(matmul, kBias);
  if (add == nullptr || add->op() != "AddV2") return nullptr;
  const NodeDef* shift = index.Producer(*add, 1);
  if (shift == nullptr || shift->op() != "Mul" ||
      !Reads(*shift, 0, quantize, 1)) {
    return nullptr;
  }
  const auto sums = ConstantAt(index, *shift, 1);
  const auto weights = ConstantAt(index, matmul, kWeights);
  const auto weight_max = ConstantInput(index, matmul, kMaxW);
  if (!sums || !weights || !weight_max ||
      !AreColumnSums(*sums, *weights, *weight_max)) {
    return nullptr;
  }
  return TensorSource(index, *add, 0).node;
}

}  // namespace

std::optional<ShiftedInput> ShiftedInputOf(const GraphIndex& index,
                                           const NodeDef& matmul) {
  const NodeDef* quantize = index.Producer(matmul, kA);
  if (quantize == nullptr || quantize->op() != "QuantizeV2" ||
      !HasMode(*quantize, "mode", "MIN_FIRST") ||
      !HasMode(matmul, "input_quant_mode", "SCALED") ||
      ConstantInput(index, matmul, kMinA) != 0.0f) {
    return std::nullopt;
  }
  const NodeDef* width = index.Producer(matmul, kMaxA);
  if (width == nullptr || width->op() != "Sub" ||
      !Reads(*width, 0, *quantize, 2) || !Reads(*width, 1, *quantize, 1)) {
    return std::nullopt;
  }
  const NodeDef* bias = BiasBehindShift(index, matmul, *quantize);
  if (bias == nullptr) return std::nullopt;
  return ShiftedInput{quantize, bias};
}

}  // namespace requant
