#ifndef REQUANT_TRANSFORMS_EIGHTBIT_PORTABLE_MATMULS_H_
#define REQUANT_TRANSFORMS_EIGHTBIT_PORTABLE_MATMULS_H_

// The kernels of QuantizedMatMulWithBias… exist only while oneDNN is turned on,
// which TensorFlow does by itself on CPUs with VNNI and elsewhere only if
// TF_ENABLE_ONEDNN_OPTS=1 is in the environment. The kernel of _QuantizedMatMul
// computes the same and always exists, since TensorFlow 2.17.

#include "absl/status/statusor.h"
#include "graph/graph_index.h"

namespace requant {

// Replaces every fused matmul of the graph that quantize_static makes by a
// _QuantizedMatMul of the same name and with the same outputs. Returns how many
// there were. Those of any other form stay.
absl::StatusOr<int> MakeMatMulsPortable(GraphIndex* index);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_EIGHTBIT_PORTABLE_MATMULS_H_
