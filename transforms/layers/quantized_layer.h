#ifndef REQUANT_TRANSFORMS_LAYERS_QUANTIZED_LAYER_H_
#define REQUANT_TRANSFORMS_LAYERS_QUANTIZED_LAYER_H_

// The quantized layers that fuse_quantized_matmul_and_requantize fuses, as they
// are found in a graph:
//
//   QuantizedMatMulWithBias[AndRelu]:
//     a, weights, bias, min_a, max_a, min_w, max_w -> qint32, min, max
//   Requantize:
//     qint32, min, max, requested min, requested max -> quint8, min, max
//
// or, when there is no Relu, as quantize_eightbit leaves them:
//
//   QuantizedMatMulWithBiasAndDequantize:
//     a, weights, bias, min_a, max_a, min_w, max_w, unused, unused -> float
//
// The fused kernels add a qint32 bias to the accumulator as it is. With a the
// quint8 code of x = min_a + a·sa (MIN_FIRST), Σ x·w = sa·sw·Σ a·wq +
// min_a·sw·Σ wq, so
//
//   bias_q = rint(b·S + Σ_k wq[k][j] · 255·min_a/(max_a − min_a)),
//   S = 1/(sa·sw) = 255·127 / ((max_a − min_a)·max|w|).
//
// For SCALED inputs (min_a has no part) sa = max(|min_a|, |max_a|)/255 and the
// sum falls away. The kernels' own handling of a float bias is wrong for
// MIN_FIRST with min_a < 0 on TensorFlow >= 2.14.

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant {

inline constexpr char kQuantizedMatMul[] = "QuantizedMatMulWithBias";
inline constexpr char kQuantizedMatMulRelu[] = "QuantizedMatMulWithBiasAndRelu";
inline constexpr char kFusedRelu[] =
    "QuantizedMatMulWithBiasAndReluAndRequantize";
inline constexpr char kFusedFloat[] = "QuantizedMatMulWithBiasAndDequantize";

// Inputs of the two matmul ops, and the first ones of both fused ops.
enum MatMulInput { kA, kWeights, kBias, kMinA, kMaxA, kMinW, kMaxW, kInputs };
// Inputs of Requantize.
enum RequantizeInput { kAccumulator, kAccMin, kAccMax, kOutMin, kOutMax };

struct Range {
  float min;
  float max;
};

// What gives a layer its input.
enum class LayerSource { kQuantize, kFusedLayer, kOther };

// One layer, with everything its rewrite needs.
struct QuantizedLayer {
  tensorflow::NodeDef* matmul;
  tensorflow::NodeDef* requantize = nullptr;
  bool relu;
  bool scaled;  // input_quant_mode is SCALED, but for ShiftedInput
  // The ends of the input's range, by the names of their tensors.
  std::string min_a;
  std::string max_a;
  LayerSource source;
  Range input;
  // The range of a Requantize; unused without one.
  Range output = {0, 0};
  float weight_min;
  float weight_max;
  tensorflow::Tensor weights;
  tensorflow::Tensor bias;
};

// Returns the float that `node` reads at `input` when it is constant in the
// graph: a scalar Const, or the Minimum or Maximum of such, possibly through
// Identity nodes.
std::optional<float> ConstantInput(const GraphIndex& index,
                                   const tensorflow::NodeDef& node, int input);

// Returns the range that a QuantizeV2 node really uses, and gives as its second
// and third output, for a constant one that is requested: it includes zero and
// is not narrower than ensure_minimum_range. Nothing when the requested range
// is not constant or refused by the kernel.
std::optional<Range> QuantizeV2Range(const GraphIndex& index,
                                     const tensorflow::NodeDef& quantize);

LayerSource SourceOf(const GraphIndex& index,
                     const tensorflow::NodeDef& matmul);

// Reads and checks a layer. Ranges, weights and biases that are not constant,
// and what the fused kernels cannot do, are errors that name the node and what
// to do. `compat` reads ranges as the original did.
absl::StatusOr<QuantizedLayer> ReadLayer(const GraphIndex& index,
                                         tensorflow::NodeDef* matmul,
                                         tensorflow::NodeDef* requantize,
                                         bool compat);

// Does the same without a Requantize and the output's range.
absl::StatusOr<QuantizedLayer> ReadMatMul(const GraphIndex& index,
                                          tensorflow::NodeDef* matmul,
                                          bool compat);

// QuantizeV2 in SCALED mode without narrow_range writes the range of qint8
// weights as −128s…127s; their scale is s, but the kernels take max(|min|,
// |max|)/127. Makes such a range symmetric, unless a qint32 bias is at the
// scale of the range as it is.
void MakeWeightRangeSymmetric(QuantizedLayer* layer);

// Returns the layer's float bias by the formula above. One that is no int32 is
// an error.
absl::StatusOr<tensorflow::Tensor> QuantizedBias(const QuantizedLayer& layer);

// Returns that bias by the original's formula, in float arithmetic: the scale
// is of max(|min|, |max|), the kernel's of max − min, and the result is
// truncated.
tensorflow::Tensor CompatBias(const QuantizedLayer& layer);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_LAYERS_QUANTIZED_LAYER_H_
