#include "transforms/layers/quantized_layer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "graph/const_node.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/types.h"
#include "transforms/layers/quantized_weights.h"
#include "transforms/layers/tensor_pattern.h"

namespace requant {
namespace {

using tensorflow::NodeDef;
using tensorflow::Tensor;

float Magnitude(const Range& range) {
  return std::max(std::fabs(range.min), std::fabs(range.max));
}

// Returns the constant range that a QuantizeV2 node is asked for.
std::optional<Range> RequestedRange(const GraphIndex& index,
                                    const NodeDef& quantize) {
  const auto min = ConstantInput(index, quantize, 1);
  const auto max = ConstantInput(index, quantize, 2);
  if (!min || !max || *min > *max) return std::nullopt;
  return Range{*min, *max};
}

// Returns the range of a layer's input that comes from `quantize`. The original
// used the requested range.
std::optional<Range> SourceRange(const GraphIndex& index,
                                 const NodeDef& quantize, bool compat) {
  return compat ? RequestedRange(index, quantize)
                : QuantizeV2Range(index, quantize);
}

bool IsFusableReluLayer(const GraphIndex& index, const NodeDef& requantize) {
  const NodeDef* matmul = index.Producer(requantize, kAccumulator);
  return matmul != nullptr && matmul->op() == kQuantizedMatMulRelu;
}

// Returns the constant range of the quint8 tensor `input` of `matmul`.
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
                     "\" are not constant; run fold_constants first"));
  }
  return ConstValue(*producer);
}

// Fails for types other than quint8, the only one that the fused kernels take.
absl::Status CheckTypes(const QuantizedLayer& layer) {
  for (const auto& [node, attribute] :
       {std::pair{layer.matmul, "T1"}, {layer.requantize, "out_type"}}) {
    if (node == nullptr) continue;
    const auto type = TypeAttribute(*node, attribute, tensorflow::DT_QUINT8);
    if (type == tensorflow::DT_QUINT8) continue;
    return absl::UnimplementedError(absl::StrCat(
        "\"", node->name(), "\" has ", attribute, " = ",
        tensorflow::DataTypeString(type),
        ", and the fused kernel has only quint8; quantize this layer to it"));
  }
  return absl::OkStatus();
}

absl::Status CheckShapes(const QuantizedLayer& layer) {
  const std::string& name = layer.matmul->name();
  if (BoolAttribute(*layer.matmul, "transpose_b") ||
      BoolAttribute(*layer.matmul, "transpose_a")) {
    return absl::UnimplementedError(
        absl::StrCat("\"", name,
                     "\" multiplies by a transposed matrix, which the fused "
                     "kernel does not; transpose the constant instead"));
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
  const float input_width =
      layer.scaled ? Magnitude(layer.input) : layer.input.max - layer.input.min;
  const float weight_width = Magnitude({layer.weight_min, layer.weight_max});
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

// Returns the value of a constant or, because quantize_eightbit limits ranges,
// of a Minimum or Maximum of constants. `depth` bounds the search.
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
      ConstantOf(index, TensorSource(index, *node, 0).node, depth - 1);
  const auto b =
      ConstantOf(index, TensorSource(index, *node, 1).node, depth - 1);
  if (!a || !b) return std::nullopt;
  return is_minimum ? std::min(*a, *b) : std::max(*a, *b);
}

// Clamps to the range of int32; NaN becomes 0.
int32_t ClampToInt32(double value) {
  if (std::isnan(value)) return 0;
  return static_cast<int32_t>(
      std::clamp<double>(value, std::numeric_limits<int32_t>::min(),
                         std::numeric_limits<int32_t>::max()));
}

// A quantized matmul that reads the QuantizeV2 q and takes its codes as those
// of x − min, as quantize_eightbit writes it: the input is SCALED with min_a =
// 0 and max_a = Sub(q:2, q:1), and the bias is AddV2(b, Mul(q:1, s)) with the
// column sums s of the weights.
struct ShiftedInput {
  const tensorflow::NodeDef* quantize;
  // The node that gives b.
  const tensorflow::NodeDef* bias;
};

// Returns whether `node` reads output `port` of `producer` at `input`.
bool Reads(const NodeDef& node, int input, const NodeDef& producer, int port) {
  if (input >= node.input_size()) return false;
  const TensorName name = ParseTensorName(node.input(input));
  return name.node == producer.name() && name.port == port;
}

// Returns the constant that `node` reads at `input`.
std::optional<Tensor> ConstantAt(const GraphIndex& index, const NodeDef& node,
                                 int input) {
  const NodeOutput source = TensorSource(index, node, input);
  if (source.node == nullptr) return std::nullopt;
  auto value = ConstValue(*source.node);
  if (!value.ok()) return std::nullopt;
  return *value;
}

// Returns whether `sums` are the column sums of the weights, up to rounding.
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

// Returns nullopt if `matmul` has another form.
std::optional<ShiftedInput> ShiftedInputOf(const GraphIndex& index,
                                           const NodeDef& matmul) {
  const NodeDef* quantize = index.Producer(matmul, kA);
  if (quantize == nullptr || quantize->op() != "QuantizeV2" ||
      StringAttribute(*quantize, "mode") != "MIN_FIRST" ||
      StringAttribute(matmul, "input_quant_mode") != "SCALED" ||
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

}  // namespace

std::optional<float> ConstantInput(const GraphIndex& index, const NodeDef& node,
                                   int input) {
  // The depth covers an upper limit, a lower limit, and the constants.
  constexpr int kDepth = 3;
  return ConstantOf(index, TensorSource(index, node, input).node, kDepth);
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
  const float epsilon = std::max(1.0f, Magnitude(*requested)) * minimum_range;
  const float high = std::max(0.0f, std::max(max, low + epsilon));
  if (StringAttribute(quantize, "mode", "MIN_COMBINED") != "SCALED") {
    return Range{low, high};
  }
  const bool is_signed = TypeAttribute(quantize, "T") == tensorflow::DT_QINT8;
  if (StringAttribute(quantize, "round_mode", "HALF_AWAY_FROM_ZERO") ==
      "HALF_TO_EVEN") {
    const float top = std::max(-low, high);
    return Range{is_signed ? -top : 0.0f, top};
  }
  // The other rounding's kernel, for unsigned codes, considers only the
  // positive side.
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
      ConstantTensor(*matmul, TensorSource(index, *matmul, kWeights).node,
                     "weights"));
  REQUANT_ASSIGN_OR_RETURN(
      layer.bias,
      ConstantTensor(
          *matmul,
          shifted ? shifted->bias : TensorSource(index, *matmul, kBias).node,
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

void MakeWeightRangeSymmetric(QuantizedLayer* layer) {
  if (layer->bias.dtype() == tensorflow::DT_QINT32) return;
  const float ratio = -layer->weight_min / layer->weight_max;
  if (layer->weight_max > 0 && std::fabs(ratio - 128.0f / 127.0f) < 1e-5f) {
    layer->weight_min = -layer->weight_max;
  }
}

absl::StatusOr<Tensor> QuantizedBias(const QuantizedLayer& layer) {
  const double weight_range = Magnitude({layer.weight_min, layer.weight_max});
  const double input_range =
      layer.scaled ? Magnitude(layer.input)
                   : static_cast<double>(layer.input.max) - layer.input.min;
  const double scale = 255.0 * 127.0 / (input_range * weight_range);
  const double zero_point =
      layer.scaled ? 0 : 255.0 * layer.input.min / input_range;
  const std::vector<int64_t> sums = ColumnSums(layer.weights);
  Tensor result(tensorflow::DT_QINT32, layer.bias.shape());
  const auto bias = layer.bias.flat<float>();
  auto quantized = result.flat<tensorflow::qint32>();
  for (int64_t j = 0; j < bias.size(); ++j) {
    const double value = std::rint(bias(j) * scale + sums[j] * zero_point);
    if (!(std::fabs(value) <= std::numeric_limits<int32_t>::max())) {
      return absl::OutOfRangeError(absl::StrFormat(
          "bias %d of \"%s\" is %g, which is not an int32 at the layer's scale "
          "(input [%g, %g], weights [%g, %g]); leave this layer in float",
          j, layer.matmul->name(), bias(j), layer.input.min, layer.input.max,
          layer.weight_min, layer.weight_max));
    }
    quantized(j) = static_cast<int32_t>(value);
  }
  return result;
}

Tensor CompatBias(const QuantizedLayer& layer) {
  const float scale = 255.0f * 127.0f /
                      (Magnitude(layer.input) *
                       Magnitude({layer.weight_min, layer.weight_max}));
  const float zero_point =
      layer.source == LayerSource::kQuantize
          ? 255.0f * layer.input.min / (layer.input.max - layer.input.min)
          : 0.0f;
  const std::vector<int64_t> sums = ColumnSums(layer.weights);
  Tensor result(tensorflow::DT_QINT32, layer.bias.shape());
  const auto bias = layer.bias.flat<float>();
  auto quantized = result.flat<tensorflow::qint32>();
  for (int64_t j = 0; j < bias.size(); ++j) {
    quantized(j) = ClampToInt32(
        std::trunc(bias(j) * scale + zero_point * static_cast<float>(sums[j])));
  }
  return result;
}

}  // namespace requant
