#ifndef REQUANT_TRANSFORMS_EIGHTBIT_EXPOSE_MATMULS_H_
#define REQUANT_TRANSFORMS_EIGHTBIT_EXPOSE_MATMULS_H_

// Rewrites products with constant weights so that FindFloatLayers finds them.

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "transforms/layers/float_layer.h"

namespace requant {

// A string attribute of the MatMuls for which something was rewritten: the name
// of the node whose exclusion leaves everything as it is.
inline constexpr char kExposedAttribute[] = "_requant_exposed";

// Turns BatchMatMul, Einsum and _FusedMatMul nodes that are plain products
// (plain_product.h) into Reshape, MatMul and Reshape, and moves biases and
// activations from behind a Reshape of a MatMul's result before it. Names of
// nodes that others read, and of outputs, stay. Returns the number of MatMuls
// with kExposedAttribute; if it is 0, the graph is unchanged.
absl::StatusOr<int> ExposeMatMuls(const FloatLayerOptions& options,
                                  tensorflow::GraphDef* graph);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_EIGHTBIT_EXPOSE_MATMULS_H_
