#include "transforms/layers/quantized_layer.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "graph/const_node.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "transforms/layers/shifted_input.h"

namespace requant {
namespace {

using tensorflow::NodeDef;
using tensorflow::Tensor;

std::string StringAttribute(const NodeDef& node, const std::string& name,
                            const std::string& otherwise) {
  const auto found = node.attr().find(name);
  return found == node.attr().end() ? otherwise : found->second.s();
}

// What gives `node` its input, or nullptr.
const NodeDef* ProducerBehindIdentities(const GraphIndex& index,
                                        const NodeDef& node, int input) {
  const NodeDef* producer = index.Producer(node, input);
  for (int hops = 0; producer != nullptr && hops < 8; ++hops) {
    if (producer->op() != "Identity") break;
    producer = index.Producer(*producer, 0);
  }
  return producer;
}

bool BoolAttribute(const NodeDef& node, const std::string& name) {
  const auto found = node.attr().find(name);
  return found != node.attr().end() && found->second.b();
}

// The constant range that a QuantizeV2 node is told.
std::optional<Range> RequestedRange(const GraphIndex& index,
                                    const NodeDef& quantize) {
  const auto min = ConstantInput(index, quantize, 1);
  const auto max = ConstantInput(index, quantize, 2);
  if (!min || !max || *min > *max) return std::nullopt;
  return Range{*min, *max};
}

// The range of a layer's input that comes from `quantize`. The original took
// the one that was requested.
std::optional<Range> SourceRange(const GraphIndex& index,
                                 const NodeDef& quantize, bool compat) {
  return compat ? RequestedRange(index, quantize)
                : QuantizeV2Range(index, quantize);
}

bool IsFusableReluLayer(const GraphIndex& index, const NodeDef& requantize) {
  const NodeDef* matmul = index.Producer(requantize, kAccumulator);
  return matmul != nullptr && matmul->op() == kQuantizedMatMulRelu;
}

// The constant range of the quint8 tensor `input` of `matmul`.
std::optional<Range> InputRange(const GraphIndex& index, const NodeDef& matmul,
                                bool compat) {
  const auto min = ConstantInput(index, matmul, kMinA);
  const auto max = ConstantInput(index, matmul, kMaxA);
  if (min && max) return Range{*min, *max};
  const NodeDef* producer = index.Producer(matmul, kMinA);
  if (producer == nullptr || producer != index.Producer(matmul, kMaxA) ||
      ParseTensorName(matmul.input(kMinA)).port != 1 ||
      ParseTensorName(matmul.input(kMaxA)).port != 2) {
    return std::nullopt;
  }
  if (producer->op() == "QuantizeV2") {
    return SourceRange(index, *producer, compat);
  }
  int first;
  if (producer->op() == "Requantize") {
    first = kOutMin;
  } else if (producer->op() == kFusedRelu) {
    first = kInputs;
  } else {
    return std::nullopt;
  }
  const auto out_min = ConstantInput(index, *producer, first);
  const auto out_max = ConstantInput(index, *producer, first + 1);
  if (!out_min || !out_max) return std::nullopt;
  // The fused Relu kernel has no zero point: its code 0 means 0.
  const bool relu =
      producer->op() == kFusedRelu || IsFusableReluLayer(index, *producer);
  if (compat) return Range{*out_min, *out_max};
  return Range{relu ? 0.0f : std::min(0.0f, *out_min),
               std::max(0.0f, *out_max)};
}

absl::Status DynamicRange(const NodeDef& layer, std::string_view what,
                          std::string_view transform) {
  return absl::FailedPreconditionError(
      absl::StrCat("the ", what, " range of \"", layer.name(),
                   "\" is not constant; run ", transform, " first"));
}

absl::StatusOr<Tensor> ConstantTensor(const NodeDef& node,
                                      const NodeDef* producer,
                                      std::string_view what) {
  if (producer == nullptr || producer->op() != "Const") {
    return absl::FailedPreconditionError(
        absl::StrCat("the ", what, " of \"", node.name(),
                     "\" are not constant; run "
                     "fold_constants first"));
  }
  return ConstValue(*producer);
}

// The fused kernels take and give quint8 only.
absl::Status CheckTypes(const QuantizedLayer& layer) {
  for (const auto& [node, attribute] :
       {std::pair{layer.matmul, "T1"}, {layer.requantize, "out_type"}}) {
    if (node == nullptr) continue;
    const auto found = node->attr().find(attribute);
    if (found == node->attr().end() ||
        found->second.type() == tensorflow::DT_QUINT8) {
      continue;
    }
    return absl::UnimplementedError(
        absl::StrCat("\"", node->name(), "\" has ", attribute, " = ",
                     tensorflow::DataTypeString(found->second.type()),
                     ", and the fused kernel has only quint8; "
                     "quantize this layer to it"));
  }
  return absl::OkStatus();
}

absl::Status CheckShapes(const QuantizedLayer& layer) {
  const std::string& name = layer.matmul->name();
  if (BoolAttribute(*layer.matmul, "transpose_b") ||
      BoolAttribute(*layer.matmul, "transpose_a")) {
    return absl::UnimplementedError(
        absl::StrCat("\"", name,
                     "\" multiplies by a transposed matrix, "
                     "which the fused "
                     "kernel does not; transpose the constant "
                     "instead"));
  }
  if (layer.weights.dtype() != tensorflow::DT_QINT8 ||
      layer.weights.dims() != 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the weights of \"", name, "\" are ",
        tensorflow::DataTypeString(layer.weights.dtype()), " of shape ",
        layer.weights.shape().DebugString(), ", not a qint8 matrix"));
  }
  const bool bias_type_ok = layer.bias.dtype() == tensorflow::DT_FLOAT ||
                            layer.bias.dtype() == tensorflow::DT_QINT32;
  if (!bias_type_ok || layer.bias.NumElements() != layer.weights.dim_size(1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the bias of \"", name, "\" is ",
                     tensorflow::DataTypeString(layer.bias.dtype()),
                     " of shape ", layer.bias.shape().DebugString(), ", not ",
                     layer.weights.dim_size(1), " float or qint32 values"));
  }
  return absl::OkStatus();
}

absl::Status CheckRanges(const QuantizedLayer& layer) {
  const float input_width = layer.scaled ? std::max(std::fabs(layer.input.min),
                                                    std::fabs(layer.input.max))
                                         : layer.input.max - layer.input.min;
  const float weight_width =
      std::max(std::fabs(layer.weight_min), std::fabs(layer.weight_max));
  const bool empty_output =
      layer.requantize != nullptr &&
      !(layer.output.max > (layer.relu ? 0 : layer.output.min));
  if (!(input_width > 0) || !(weight_width > 0) || empty_output) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "\"%s\" has an empty range: input [%g, %g], weights [%g, %g], output "
        "[%g, %g]; leave this layer in float by excluded_nodes",
        layer.matmul->name(), layer.input.min, layer.input.max,
        layer.weight_min, layer.weight_max, layer.output.min,
        layer.output.max));
  }
  return absl::OkStatus();
}

// The constant that `node` is or, as quantize_eightbit limits ranges, the
// Minimum or Maximum of constants. `depth` bounds the nodes looked at.
std::optional<float> ConstantOf(const GraphIndex& index, const NodeDef* node,
                                int depth) {
  if (node == nullptr || depth == 0) return std::nullopt;
  const bool is_minimum = node->op() == "Minimum";
  if (!is_minimum && node->op() != "Maximum") {
    const auto value = ScalarConstValue(*node);
    if (!value.ok() || !std::isfinite(*value)) return std::nullopt;
    return *value;
  }
  const auto a =
      ConstantOf(index, ProducerBehindIdentities(index, *node, 0), depth - 1);
  const auto b =
      ConstantOf(index, ProducerBehindIdentities(index, *node, 1), depth - 1);
  if (!a || !b) return std::nullopt;
  return is_minimum ? std::min(*a, *b) : std::max(*a, *b);
}

}  // namespace

std::optional<float> ConstantInput(const GraphIndex& index, const NodeDef& node,
                                   int input) {
  // A limit from above, one from below, and the constants.
  constexpr int kDepth = 3;
  return ConstantOf(index, ProducerBehindIdentities(index, node, input),
                    kDepth);
}

std::optional<Range> QuantizeV2Range(const GraphIndex& index,
                                     const NodeDef& quantize) {
  const auto requested = RequestedRange(index, quantize);
  if (!requested) return std::nullopt;
  const auto [min, max] = *requested;
  const auto attribute = quantize.attr().find("ensure_minimum_range");
  const float minimum_range =
      attribute == quantize.attr().end() ? 0.01f : attribute->second.f();
  const float low = std::min(0.0f, min);
  const float epsilon =
      std::max(1.0f, std::max(std::fabs(min), std::fabs(max))) * minimum_range;
  const float high = std::max(0.0f, std::max(max, low + epsilon));
  if (StringAttribute(quantize, "mode", "MIN_COMBINED") != "SCALED") {
    return Range{low, high};
  }
  const auto type = quantize.attr().find("T");
  const bool is_signed = type != quantize.attr().end() &&
                         type->second.type() == tensorflow::DT_QINT8;
  if (StringAttribute(quantize, "round_mode", "HALF_AWAY_FROM_ZERO") ==
      "HALF_TO_EVEN") {
    const float top = std::max(-low, high);
    return Range{is_signed ? -top : 0.0f, top};
  }
  // The kernel that rounds the other way looks at the positive side only when
  // its codes have no sign.
  if (is_signed || high <= 0) return std::nullopt;
  return Range{0, high};
}

LayerSource SourceOf(const GraphIndex& index, const NodeDef& matmul) {
  const NodeDef* source = index.Producer(matmul, kA);
  if (source == nullptr) return LayerSource::kOther;
  if (source->op() == "QuantizeV2") return LayerSource::kQuantize;
  const bool fused =
      source->op() == kFusedRelu ||
      (source->op() == "Requantize" && IsFusableReluLayer(index, *source));
  return fused ? LayerSource::kFusedLayer : LayerSource::kOther;
}

absl::StatusOr<QuantizedLayer> ReadMatMul(const GraphIndex& index,
                                          NodeDef* matmul, bool compat) {
  QuantizedLayer layer;
  layer.matmul = matmul;
  layer.relu = matmul->op() == kQuantizedMatMulRelu;
  layer.source = SourceOf(index, *matmul);
  const auto shifted = ShiftedInputOf(index, *matmul);
  layer.scaled = !shifted && StringAttribute(*matmul, "input_quant_mode",
                                             "MIN_FIRST") == "SCALED";
  layer.min_a = shifted ? FormatTensorName(shifted->quantize->name(), 1)
                        : matmul->input(kMinA);
  layer.max_a = shifted ? FormatTensorName(shifted->quantize->name(), 2)
                        : matmul->input(kMaxA);
  const auto input = shifted ? SourceRange(index, *shifted->quantize, compat)
                             : InputRange(index, *matmul, compat);
  if (!input)
    return DynamicRange(*matmul, "input", "freeze_min and freeze_max");
  layer.input = *input;
  const auto weight_min = ConstantInput(index, *matmul, kMinW);
  const auto weight_max = ConstantInput(index, *matmul, kMaxW);
  if (!weight_min || !weight_max) {
    return DynamicRange(*matmul, "weight", "fold_constants");
  }
  layer.weight_min = *weight_min;
  layer.weight_max = *weight_max;
  REQUANT_ASSIGN_OR_RETURN(
      layer.weights,
      ConstantTensor(*matmul,
                     ProducerBehindIdentities(index, *matmul, kWeights),
                     "weights"));
  REQUANT_ASSIGN_OR_RETURN(
      layer.bias,
      ConstantTensor(*matmul,
                     shifted ? shifted->bias
                             : ProducerBehindIdentities(index, *matmul, kBias),
                     "biases"));
  REQUANT_RETURN_IF_ERROR(CheckShapes(layer));
  REQUANT_RETURN_IF_ERROR(CheckTypes(layer));
  REQUANT_RETURN_IF_ERROR(CheckRanges(layer));
  return layer;
}

absl::StatusOr<QuantizedLayer> ReadLayer(const GraphIndex& index,
                                         NodeDef* matmul, NodeDef* requantize,
                                         bool compat) {
  const auto out_min = ConstantInput(index, *requantize, kOutMin);
  const auto out_max = ConstantInput(index, *requantize, kOutMax);
  if (!out_min || !out_max) {
    return DynamicRange(*requantize, "output", "freeze_requantization_ranges");
  }
  REQUANT_ASSIGN_OR_RETURN(QuantizedLayer layer,
                           ReadMatMul(index, matmul, compat));
  layer.requantize = requantize;
  layer.output = {*out_min, *out_max};
  REQUANT_RETURN_IF_ERROR(CheckTypes(layer));
  REQUANT_RETURN_IF_ERROR(CheckRanges(layer));
  return layer;
}

}  // namespace requant
