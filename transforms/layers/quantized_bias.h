#ifndef REQUANT_TRANSFORMS_LAYERS_QUANTIZED_BIAS_H_
#define REQUANT_TRANSFORMS_LAYERS_QUANTIZED_BIAS_H_

// The biases of fused layers.
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

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/tensor.h"
#include "transforms/layers/quantized_layer.h"

namespace requant {

// QuantizeV2 in SCALED mode without narrow_range writes the range of qint8
// weights as −128s…127s; their scale is s, but the kernels take max(|min|,
// |max|)/127. Makes such a range symmetric, unless a qint32 bias is at the
// scale of the range as it is.
void MakeWeightRangeSymmetric(QuantizedLayer* layer);

// The layer's float bias by the formula above. One that is no int32 is an
// error.
absl::StatusOr<tensorflow::Tensor> QuantizedBias(const QuantizedLayer& layer);

// The original's formula, in its float arithmetic: the scale takes max(|min|,
// |max|) where the kernel takes max − min, and the result is truncated.
tensorflow::Tensor CompatBias(const QuantizedLayer& layer);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_LAYERS_QUANTIZED_BIAS_H_
