#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "graph/const_node.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "transforms/transform.h"

// A dynamic layer is QuantizedMatMulWithBias[AndRelu] -> Requantize, with the
// output range computed by RequantizationRange or frozen to constants:
//
//   a, weights, bias, min_a, max_a, min_w, max_w -> qint32, min, max
//   qint32, min, max, requested min, requested max -> quint8, min, max
//
// With Relu it becomes one QuantizedMatMulWithBiasAndReluAndRequantize, under
// the Requantize's name. Without Relu that kernel, and …AndRequantize too,
// would clip negative outputs to 0; so it becomes …AndDequantize, whose float
// output replaces the Dequantize behind it and is quantized again for whoever
// reads the quint8.
//
// Both kernels add a qint32 bias to the accumulator as it is. With a the quint8
// code of x = min_a + a·sa (MIN_FIRST), Σ x·w = sa·sw·Σ a·wq + min_a·sw·Σ wq,
// so
//
//   bias_q = rint(b·S + Σ_k wq[k][j] · 255·min_a/(max_a − min_a)),
//   S = 1/(sa·sw) = 255·127 / ((max_a − min_a)·max|w|).
//
// For SCALED inputs (min_a has no part) sa = max(|min_a|, |max_a|)/255 and the
// sum falls away. The kernels' own handling of a float bias is wrong for
// MIN_FIRST with min_a < 0 on TensorFlow >= 2.14, so a float bias is never
// emitted.

namespace requant {
namespace {

using tensorflow::DataType;
using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::Tensor;

constexpr char kMatMul[] = "QuantizedMatMulWithBias";
constexpr char kMatMulRelu[] = "QuantizedMatMulWithBiasAndRelu";
constexpr char kFusedRelu[] = "QuantizedMatMulWithBiasAndReluAndRequantize";
constexpr char kFusedFloat[] = "QuantizedMatMulWithBiasAndDequantize";

// Inputs of the two matmul ops, and of both fused ones.
enum MatMulInput { kA, kWeights, kBias, kMinA, kMaxA, kMinW, kMaxW, kInputs };
// Inputs of Requantize.
enum RequantizeInput { kAccumulator, kAccMin, kAccMax, kOutMin, kOutMax };

struct Range {
  float min;
  float max;
};

// What gives a layer its input.
enum class Source { kQuantize, kFusedLayer, kOther };

// One layer to fuse, with everything the rewrite needs.
struct Layer {
  NodeDef* matmul;
  NodeDef* requantize = nullptr;
  bool relu;
  bool scaled;  // input_quant_mode is SCALED
  Source source;
  Range input;
  Range output;
  float weight_min;
  float weight_max;
  Tensor weights;
  Tensor bias;
};

std::string StringAttribute(const NodeDef& node, const std::string& name,
                            const std::string& otherwise) {
  const auto found = node.attr().find(name);
  return found == node.attr().end() ? otherwise : found->second.s();
}

bool BoolAttribute(const NodeDef& node, const std::string& name) {
  const auto found = node.attr().find(name);
  return found != node.attr().end() && found->second.b();
}

// A float that is constant in the graph: a scalar Const, possibly behind
// Identity nodes.
std::optional<float> ConstantInput(const GraphIndex& index, const NodeDef& node,
                                   int input) {
  const NodeDef* producer = index.Producer(node, input);
  for (int hops = 0; producer != nullptr && hops < 8; ++hops) {
    if (producer->op() != "Identity") break;
    producer = index.Producer(*producer, 0);
  }
  if (producer == nullptr) return std::nullopt;
  const auto value = ScalarConstValue(*producer);
  if (!value.ok() || !std::isfinite(*value)) return std::nullopt;
  return *value;
}

// The range that QuantizeV2 really uses for a requested one: it includes zero
// and is not narrower than ensure_minimum_range.
std::optional<Range> QuantizeV2Range(const GraphIndex& index,
                                     const NodeDef& quantize, bool compat) {
  const auto min = ConstantInput(index, quantize, 1);
  const auto max = ConstantInput(index, quantize, 2);
  if (!min || !max || *min > *max) return std::nullopt;
  const auto attribute = quantize.attr().find("ensure_minimum_range");
  const float minimum_range =
      attribute == quantize.attr().end() ? 0.01f : attribute->second.f();
  // The original took the requested one.
  if (compat) return Range{*min, *max};
  // Without a sign bit SCALED codes start at 0.
  if (StringAttribute(quantize, "mode", "MIN_COMBINED") == "SCALED") {
    return Range{0, std::max(std::fabs(*min), std::fabs(*max))};
  }
  const float low = std::min(0.0f, *min);
  const float epsilon =
      std::max(1.0f, std::max(std::fabs(*min), std::fabs(*max))) *
      minimum_range;
  return Range{low, std::max(0.0f, std::max(*max, low + epsilon))};
}

bool IsFusableReluLayer(const GraphIndex& index, const NodeDef& requantize) {
  const NodeDef* matmul = index.Producer(requantize, kAccumulator);
  return matmul != nullptr && matmul->op() == kMatMulRelu;
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
    return QuantizeV2Range(index, *producer, compat);
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

absl::StatusOr<Tensor> ConstantTensor(const GraphIndex& index,
                                      const NodeDef& node, int input,
                                      std::string_view what) {
  const NodeDef* producer = index.Producer(node, input);
  for (int hops = 0; producer != nullptr && hops < 8; ++hops) {
    if (producer->op() != "Identity") break;
    producer = index.Producer(*producer, 0);
  }
  if (producer == nullptr || producer->op() != "Const") {
    return absl::FailedPreconditionError(
        absl::StrCat("the ", what, " of \"", node.name(),
                     "\" are not constant; run fold_constants first"));
  }
  return ConstValue(*producer);
}

// The fused kernels take and give quint8 only.
absl::Status CheckTypes(const Layer& layer) {
  for (const auto& [node, attribute] :
       {std::pair{layer.matmul, "T1"}, {layer.requantize, "out_type"}}) {
    const auto found = node->attr().find(attribute);
    if (found == node->attr().end() ||
        found->second.type() == tensorflow::DT_QUINT8) {
      continue;
    }
    return absl::UnimplementedError(absl::StrCat(
        "\"", node->name(), "\" has ", attribute, " = ",
        tensorflow::DataTypeString(found->second.type()),
        ", and the fused kernel has only quint8; quantize this layer to it"));
  }
  return absl::OkStatus();
}

absl::Status CheckShapes(const Layer& layer) {
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

absl::Status CheckRanges(const Layer& layer) {
  const float input_width = layer.scaled ? std::max(std::fabs(layer.input.min),
                                                    std::fabs(layer.input.max))
                                         : layer.input.max - layer.input.min;
  const float weight_width =
      std::max(std::fabs(layer.weight_min), std::fabs(layer.weight_max));
  if (!(input_width > 0) || !(weight_width > 0) ||
      !(layer.output.max > (layer.relu ? 0 : layer.output.min))) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "\"%s\" has an empty range: input [%g, %g], weights [%g, %g], output "
        "[%g, %g]",
        layer.matmul->name(), layer.input.min, layer.input.max,
        layer.weight_min, layer.weight_max, layer.output.min,
        layer.output.max));
  }
  return absl::OkStatus();
}

Source SourceOf(const GraphIndex& index, const NodeDef& matmul) {
  const NodeDef* source = index.Producer(matmul, kA);
  if (source == nullptr) return Source::kOther;
  if (source->op() == "QuantizeV2") return Source::kQuantize;
  const bool fused =
      source->op() == kFusedRelu ||
      (source->op() == "Requantize" && IsFusableReluLayer(index, *source));
  return fused ? Source::kFusedLayer : Source::kOther;
}

// Reads all but the Requantize and the output's range.
absl::StatusOr<Layer> ReadMatMul(const GraphIndex& index, NodeDef* matmul,
                                 bool compat) {
  Layer layer;
  layer.matmul = matmul;
  layer.relu = matmul->op() == kMatMulRelu;
  layer.scaled =
      StringAttribute(*matmul, "input_quant_mode", "MIN_FIRST") == "SCALED";
  layer.source = SourceOf(index, *matmul);
  const auto input = InputRange(index, *matmul, compat);
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
  REQUANT_ASSIGN_OR_RETURN(layer.weights,
                           ConstantTensor(index, *matmul, kWeights, "weights"));
  REQUANT_ASSIGN_OR_RETURN(layer.bias,
                           ConstantTensor(index, *matmul, kBias, "biases"));
  REQUANT_RETURN_IF_ERROR(CheckShapes(layer));
  return layer;
}

absl::StatusOr<Layer> ReadLayer(const GraphIndex& index, NodeDef* matmul,
                                NodeDef* requantize, bool compat) {
  const auto out_min = ConstantInput(index, *requantize, kOutMin);
  const auto out_max = ConstantInput(index, *requantize, kOutMax);
  if (!out_min || !out_max) {
    return DynamicRange(*requantize, "output", "freeze_requantization_ranges");
  }
  REQUANT_ASSIGN_OR_RETURN(Layer layer, ReadMatMul(index, matmul, compat));
  layer.requantize = requantize;
  layer.output = {*out_min, *out_max};
  REQUANT_RETURN_IF_ERROR(CheckTypes(layer));
  REQUANT_RETURN_IF_ERROR(CheckRanges(layer));
  return layer;
}

// QuantizeV2 in SCALED mode without narrow_range writes the range of qint8
// weights as −128s…127s; their scale is s, but the kernels take max(|min|,
// |max|)/127.
void MakeWeightRangeSymmetric(Layer* layer) {
  // A qint32 bias is at the scale of the range as it is.
  if (layer->bias.dtype() == tensorflow::DT_QINT32) return;
  const float ratio = -layer->weight_min / layer->weight_max;
  if (layer->weight_max > 0 && std::fabs(ratio - 128.0f / 127.0f) < 1e-5f) {
    layer->weight_min = -layer->weight_max;
  }
}

std::vector<int64_t> ColumnSums(const Tensor& weights) {
  const auto matrix = weights.matrix<tensorflow::qint8>();
  std::vector<int64_t> sums(matrix.dimension(1), 0);
  for (int64_t row = 0; row < matrix.dimension(0); ++row) {
    for (int64_t column = 0; column < matrix.dimension(1); ++column) {
      sums[column] += matrix(row, column).value;
    }
  }
  return sums;
}

// NaN gives 0.
int32_t ClampToInt32(double value) {
  if (std::isnan(value)) return 0;
  return static_cast<int32_t>(
      std::clamp<double>(value, std::numeric_limits<int32_t>::min(),
                         std::numeric_limits<int32_t>::max()));
}

// See the formula at the top of this file.
absl::StatusOr<Tensor> QuantizedBias(const Layer& layer) {
  const double weight_range =
      std::max(std::fabs(layer.weight_min), std::fabs(layer.weight_max));
  const double input_range =
      layer.scaled
          ? std::max(std::fabs(layer.input.min), std::fabs(layer.input.max))
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

// The original's formula, in its float arithmetic: the scale takes max(|min|,
// |max|) where the kernel takes max − min, and the result is truncated. What is
// fed neither by a QuantizeV2 nor by a fused layer keeps its bias.
Tensor CompatBias(const Layer& layer) {
  const float weight_range =
      std::max(std::fabs(layer.weight_min), std::fabs(layer.weight_max));
  const float input_range =
      std::max(std::fabs(layer.input.min), std::fabs(layer.input.max));
  const float scale = 255.0f * 127.0f / (input_range * weight_range);
  const float zero_point =
      layer.source == Source::kQuantize
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

// Fuses layers one by one.
class Fuser {
 public:
  Fuser(TransformContext* context, GraphIndex* index)
      : context_(context),
        index_(index),
        compat_(context->parameters.Bool("compat")) {}

  absl::Status Fuse(Layer layer) {
    if (!compat_) MakeWeightRangeSymmetric(&layer);
    return layer.relu ? FuseRelu(layer) : FuseFloat(layer);
  }

  // What the original does to a layer without Relu, which it does not fuse.
  absl::Status QuantizeBiasOnly(const Layer& layer) {
    REQUANT_ASSIGN_OR_RETURN(std::string bias, AddBias(layer));
    index_->SetInput(layer.matmul, kBias, std::move(bias));
    (*layer.matmul->mutable_attr())["Tbias"].set_type(BiasType(layer));
    return absl::OkStatus();
  }

  const std::vector<std::string>& fused() const { return fused_; }

 private:
  absl::StatusOr<std::string> AddConst(const std::string& name,
                                       const Tensor& value) {
    const std::string free = index_->FreeName(name);
    REQUANT_RETURN_IF_ERROR(index_->Add(MakeConst(free, value)).status());
    return free;
  }

  DataType BiasType(const Layer& layer) const {
    return compat_ && layer.source == Source::kOther ? layer.bias.dtype()
                                                     : tensorflow::DT_QINT32;
  }

  // The input that takes the place of the layer's bias.
  absl::StatusOr<std::string> AddBias(const Layer& layer) {
    if (BiasType(layer) == layer.bias.dtype()) {
      return layer.matmul->input(kBias);
    }
    REQUANT_ASSIGN_OR_RETURN(
        const Tensor bias, compat_ ? CompatBias(layer) : QuantizedBias(layer));
    return AddConst(layer.matmul->name() + "/bias_qint32", bias);
  }

  // Inputs of the fused node: those of the matmul with the bias replaced and
  // the weight range as `layer` has it, then the output range.
  absl::StatusOr<std::vector<std::string>> FusedInputs(const Layer& layer) {
    std::vector<std::string> inputs(layer.matmul->input().begin(),
                                    layer.matmul->input().begin() + kInputs);
    const std::string& base = layer.matmul->name();
    REQUANT_ASSIGN_OR_RETURN(inputs[kBias], AddBias(layer));
    if (ConstantInput(*index_, *layer.matmul, kMinW) != layer.weight_min) {
      REQUANT_ASSIGN_OR_RETURN(
          inputs[kMinW],
          AddConst(base + "/weight_min", Tensor(layer.weight_min)));
    }
    inputs.push_back(layer.requantize->input(kOutMin));
    inputs.push_back(layer.requantize->input(kOutMax));
    // The kernel's code 0 means 0 whatever minimum it is told, and the next
    // layer must be told the same.
    if (layer.relu && !compat_ && layer.output.min != 0) {
      REQUANT_ASSIGN_OR_RETURN(
          inputs[kInputs],
          AddConst(layer.requantize->name() + "/output_min", Tensor(0.0f)));
    }
    return inputs;
  }

  // Turns `node` into a fused op, under the name it has.
  void Become(NodeDef* node, const std::string& op, DataType output,
              const Layer& layer, std::vector<std::string> inputs) {
    // Control inputs of all old nodes still order the new one.
    for (const NodeDef* old : {layer.matmul, layer.requantize, node}) {
      for (const std::string& input : old->input()) {
        if (absl::StartsWith(input, "^") &&
            std::find(inputs.begin(), inputs.end(), input) == inputs.end()) {
          inputs.push_back(input);
        }
      }
    }
    const std::string device = layer.matmul->device();
    index_->SetInputs(node, std::move(inputs));
    node->set_op(op);
    node->set_device(device);
    auto& attributes = *node->mutable_attr();
    attributes.clear();
    attributes["T1"].set_type(tensorflow::DT_QUINT8);
    attributes["T2"].set_type(tensorflow::DT_QINT8);
    attributes["Tbias"].set_type(BiasType(layer));
    attributes["Toutput"].set_type(output);
    if (!compat_ || layer.scaled) {
      attributes["input_quant_mode"].set_s(layer.scaled ? "SCALED"
                                                        : "MIN_FIRST");
    }
    fused_.push_back(node->name());
  }

  absl::Status FuseRelu(const Layer& layer) {
    REQUANT_ASSIGN_OR_RETURN(std::vector<std::string> inputs,
                             FusedInputs(layer));
    Become(layer.requantize, kFusedRelu, tensorflow::DT_QUINT8, layer,
           std::move(inputs));
    return RemoveUnread(layer.matmul);
  }

  bool IsOutput(const NodeDef& node) const {
    if (context_->outputs.empty()) return !index_->HasUses(node.name());
    return std::any_of(context_->outputs.begin(), context_->outputs.end(),
                       [&](const std::string& output) {
                         return ParseTensorName(output).node == node.name();
                       });
  }

  // Whether `node` dequantizes to float over the range of `requantize`.
  static bool IsDequantizeOf(const NodeDef& requantize, const NodeDef& node) {
    const auto type = node.attr().find("dtype");
    return node.op() == "Dequantize" && node.input_size() >= 3 &&
           node.input(1) == FormatTensorName(requantize.name(), 1) &&
           node.input(2) == FormatTensorName(requantize.name(), 2) &&
           (type == node.attr().end() ||
            type->second.type() == tensorflow::DT_FLOAT);
  }

  // The nodes that only turn the layer's quint8 output into float.
  std::vector<NodeDef*> Dequantizers(const NodeDef& requantize) const {
    std::vector<NodeDef*> found;
    for (const Use& use : index_->Uses(requantize.name())) {
      if (use.input == 0 && use.port == 0 &&
          IsDequantizeOf(requantize, *use.node)) {
        found.push_back(use.node);
      }
    }
    std::sort(found.begin(), found.end(),
              [](NodeDef* a, NodeDef* b) { return a->name() < b->name(); });
    return found;
  }

  absl::Status FuseFloat(const Layer& layer) {
    REQUANT_ASSIGN_OR_RETURN(std::vector<std::string> inputs,
                             FusedInputs(layer));
    NodeDef* requantize = layer.requantize;
    const bool is_output = IsOutput(*requantize);
    const std::vector<NodeDef*> dequantizers = Dequantizers(*requantize);
    NodeDef* fused;
    if (dequantizers.empty()) {
      NodeDef node;
      node.set_name(index_->FreeName(requantize->name() + "/dequantized"));
      REQUANT_ASSIGN_OR_RETURN(fused, index_->Add(std::move(node)));
    } else {
      fused = dequantizers.front();
    }
    Become(fused, kFusedFloat, tensorflow::DT_FLOAT, layer, std::move(inputs));
    for (NodeDef* other : dequantizers) {
      if (other != fused) {
        REQUANT_RETURN_IF_ERROR(ReplaceDequantizer(other, *fused));
      }
    }
    if (index_->HasUses(requantize->name()) || is_output) {
      QuantizeAgain(requantize, *fused);
    } else {
      REQUANT_RETURN_IF_ERROR(RemoveUnread(requantize));
    }
    return RemoveUnread(layer.matmul);
  }

  absl::Status ReplaceDequantizer(NodeDef* dequantizer, const NodeDef& fused) {
    if (IsOutput(*dequantizer)) {
      index_->SetInputs(dequantizer, {fused.name()});
      dequantizer->set_op("Identity");
      dequantizer->clear_attr();
      (*dequantizer->mutable_attr())["T"].set_type(tensorflow::DT_FLOAT);
      return absl::OkStatus();
    }
    index_->RedirectUses({dequantizer->name(), 0}, {fused.name(), 0});
    index_->RedirectUses({dequantizer->name(), kControlPort},
                         {fused.name(), kControlPort});
    return index_->Remove(std::string(dequantizer->name()));
  }

  // Turns the Requantize into a QuantizeV2 of the float output; both have the
  // outputs quint8, min, max.
  void QuantizeAgain(NodeDef* requantize, const NodeDef& fused) {
    index_->SetInputs(requantize, {fused.name(), requantize->input(kOutMin),
                                   requantize->input(kOutMax)});
    requantize->set_op("QuantizeV2");
    auto& attributes = *requantize->mutable_attr();
    attributes.clear();
    attributes["T"].set_type(tensorflow::DT_QUINT8);
    attributes["mode"].set_s("MIN_FIRST");
    // A Requantize takes its range as it is, however narrow.
    attributes["ensure_minimum_range"].set_f(0);
  }

  // Removes a node that nothing reads any more, and then the constants that
  // only it read.
  absl::Status RemoveUnread(NodeDef* node) {
    if (index_->HasUses(node->name()) || IsNamedOutput(*node)) {
      return absl::OkStatus();
    }
    std::vector<std::string> producers;
    for (const std::string& input : node->input()) {
      producers.emplace_back(ParseTensorName(input).node);
    }
    REQUANT_RETURN_IF_ERROR(index_->Remove(std::string(node->name())));
    for (const std::string& name : producers) {
      NodeDef* producer = index_->Find(name);
      if (producer != nullptr && producer->op() == "Const") {
        REQUANT_RETURN_IF_ERROR(RemoveUnread(producer));
      }
    }
    return absl::OkStatus();
  }

  bool IsNamedOutput(const NodeDef& node) const {
    return !context_->outputs.empty() && IsOutput(node);
  }

  TransformContext* context_;
  GraphIndex* index_;
  const bool compat_;
  std::vector<std::string> fused_;
};

// Requantize nodes that complete a layer. In compat mode only those with Relu,
// as in the original.
std::vector<std::pair<NodeDef*, NodeDef*>> FindLayers(GraphIndex& index,
                                                      GraphDef* graph,
                                                      bool compat) {
  std::vector<std::pair<NodeDef*, NodeDef*>> layers;
  for (NodeDef& node : *graph->mutable_node()) {
    if (node.op() != "Requantize" || node.input_size() < kOutMax + 1) continue;
    NodeDef* matmul = index.Producer(node, kAccumulator);
    if (matmul == nullptr || matmul->input_size() < kInputs) continue;
    if (matmul->op() == kMatMulRelu || (matmul->op() == kMatMul && !compat)) {
      layers.emplace_back(matmul, &node);
    }
  }
  return layers;
}

// Matmuls without Relu whose bias the original makes qint32.
absl::StatusOr<std::vector<Layer>> LayersForBiasOnly(const GraphIndex& index,
                                                     GraphDef* graph) {
  std::vector<Layer> layers;
  for (NodeDef& node : *graph->mutable_node()) {
    if (node.op() != kMatMul || node.input_size() < kInputs ||
        SourceOf(index, node) == Source::kOther) {
      continue;
    }
    REQUANT_ASSIGN_OR_RETURN(Layer layer,
                             ReadMatMul(index, &node, /*compat=*/true));
    layers.push_back(std::move(layer));
  }
  return layers;
}

absl::Status FuseQuantizedMatMulAndRequantize(TransformContext& context,
                                              GraphDef* graph) {
  const bool compat = context.parameters.Bool("compat");
  REQUANT_ASSIGN_OR_RETURN(GraphIndex index, GraphIndex::Create(graph));
  // All layers are read before the first is changed: a layer's input range
  // comes from the layer before it.
  std::vector<Layer> layers;
  for (auto [matmul, requantize] : FindLayers(index, graph, compat)) {
    REQUANT_ASSIGN_OR_RETURN(Layer layer,
                             ReadLayer(index, matmul, requantize, compat));
    layers.push_back(std::move(layer));
  }
  std::vector<Layer> bias_only;
  if (compat) {
    REQUANT_ASSIGN_OR_RETURN(bias_only, LayersForBiasOnly(index, graph));
  }
  Fuser fuser(&context, &index);
  for (Layer& layer : layers) {
    REQUANT_RETURN_IF_ERROR(fuser.Fuse(std::move(layer)));
  }
  for (const Layer& layer : bias_only) {
    REQUANT_RETURN_IF_ERROR(fuser.QuantizeBiasOnly(layer));
  }
  index.Commit();
  context.notes.push_back(
      layers.empty() ? "no layer to fuse"
                     : absl::StrCat("fuses ", layers.size(), " layer",
                                    layers.size() == 1 ? "" : "s", ": ",
                                    absl::StrJoin(fuser.fused(), ", ")));
  return absl::OkStatus();
}

REQUANT_REGISTER_TRANSFORM(
    FuseQuantizedMatMulAndRequantize,
    {"fuse_quantized_matmul_and_requantize",
     "Fuses each quantized matmul with the Requantize behind it into one op.",
     "A layer with Relu becomes QuantizedMatMulWithBiasAndReluAndRequantize; "
     "one without becomes QuantizedMatMulWithBiasAndDequantize, because the "
     "requantizing kernel would clip its negative outputs. Biases become "
     "qint32 "
     "at the kernel's own scale, with the zero point of inputs that can be "
     "negative folded in. Ranges that are not constant are an error. Running "
     "it "
     "again changes nothing.",
     {{"compat", ParameterType::kBool,
       "Compute biases exactly as the original did, mistakes included, and "
       "do not fuse layers without Relu.",
       "false"}},
     "freeze_requantization_ranges, freeze_min and freeze_max"});

}  // namespace
}  // namespace requant
