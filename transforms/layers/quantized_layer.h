#ifndef REQUANT_TRANSFORMS_LAYERS_QUANTIZED_LAYER_H_
#define REQUANT_TRANSFORMS_LAYERS_QUANTIZED_LAYER_H_

// Reads the quantized layers that fuse_quantized_matmul_and_requantize fuses,
// which have this form in a graph:
//
//   QuantizedMatMulWithBias[AndRelu]:
//     a, weights, bias, min_a, max_a, min_w, max_w -> qint32, min, max
//   Requantize:
//     qint32, min, max, requested min, requested max -> quint8, min, max
//
// or, if there is no Relu, the form in which quantize_eightbit leaves them:
//
//   QuantizedMatMulWithBiasAndDequantize:
//     a, weights, bias, min_a, max_a, min_w, max_w, unused, unused -> float
//
// The fused kernels add a qint32 bias directly to the accumulator. With a the
// quint8 code of x = min_a + a·sa (MIN_FIRST), Σ x·w = sa·sw·Σ a·wq +
// min_a·sw·Σ wq, so
//
//   bias_q = rint(b·S + Σ_k wq[k][j] · 255·min_a/(max_a − min_a)),
//   S = 1/(sa·sw) = 255·127 / ((max_a − min_a)·max|w|).
//
// For SCALED inputs, x = a·sa with sa = max(|min_a|, |max_a|)/255, and the sum
// drops out. The kernels' own handling of a float bias is wrong for MIN_FIRST
// with min_a < 0 on TensorFlow >= 2.14.

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

// Inputs of the two matmul ops, and the first inputs of both fused ops.
enum MatMulInput { kA, kWeights, kBias, kMinA, kMaxA, kMinW, kMaxW, kInputs };
// Inputs of Requantize.
enum RequantizeInput { kAccumulator, kAccMin, kAccMax, kOutMin, kOutMax };

struct Range {
  float min;
  float max;
};

// Where a layer's input comes from.
enum class LayerSource { kQuantize, kFusedLayer, kOther };

// One layer with everything that its rewrite needs.
struct QuantizedLayer {
  tensorflow::NodeDef* matmul;
  tensorflow::NodeDef* requantize = nullptr;
  bool relu;
  bool scaled;  // input_quant_mode is SCALED and this is no ShiftedInput
  // The names of the tensors with the ends of the input's range.
  std::string min_a;
  std::string max_a;
  LayerSource source;
  Range input;
  // The range of the Requantize; unused if there is none.
  Range output = {0, 0};
  float weight_min;
  float weight_max;
  tensorflow::Tensor weights;
  tensorflow::Tensor bias;
};

// Returns the float that `node` reads at `input` if it is constant in the
// graph: a scalar Const, or the Minimum or Maximum of such, possibly through
// Identity nodes.
std::optional<float> ConstantInput(const GraphIndex& index,
                                   const tensorflow::NodeDef& node, int input);

// Returns the range that a QuantizeV2 node with a constant requested range
// really uses and gives as its second and third output: it includes zero and is
// not narrower than ensure_minimum_range. Returns nullopt if the requested
// range is not constant or the kernel refuses it.
std::optional<Range> QuantizeV2Range(const GraphIndex& index,
                                     const tensorflow::NodeDef& quantize);

LayerSource SourceOf(const GraphIndex& index,
                     const tensorflow::NodeDef& matmul);

// Reads and checks a layer. Fails, naming the node and what to do, if ranges,
// weights or biases are not constant or the fused kernels cannot handle the
// layer. With `compat`, reads ranges as the original did.
absl::StatusOr<QuantizedLayer> ReadLayer(const GraphIndex& index,
                                         tensorflow::NodeDef* matmul,
                                         tensorflow::NodeDef* requantize,
                                         bool compat);

// Does the same for a layer without a Requantize and an output range.
absl::StatusOr<QuantizedLayer> ReadMatMul(const GraphIndex& index,
                                          tensorflow::NodeDef* matmul,
                                          bool compat);

// QuantizeV2 in SCALED mode without narrow_range writes the range of qint8
// weights as −128s…127s; their scale is s, but the kernels use max(|min|,
// |max|)/127. Makes such a range symmetric, unless a qint32 bias uses the scale
// of the original range.
void MakeWeightRangeSymmetric(QuantizedLayer* layer);

// Returns bias_q of the formula above for the layer's float bias. Fails if it
// does not fit an int32.
absl::StatusOr<tensorflow::Tensor> QuantizedBias(const QuantizedLayer& layer);

// Returns that bias by the original's formula, in float arithmetic: the scale
// is that of max(|min|, |max|), not of max − min as in the kernel, and the
// result is truncated.
tensorflow::Tensor CompatBias(const QuantizedLayer& layer);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_LAYERS_QUANTIZED_LAYER_H_
