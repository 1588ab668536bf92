#ifndef REQUANT_TRANSFORMS_EIGHTBIT_LAYER_RESHAPES_H_
#define REQUANT_TRANSFORMS_EIGHTBIT_LAYER_RESHAPES_H_

// Moves Reshapes out of and from between float layers, as a part of
// ExposeMatMuls. Both functions set kExposedAttribute on the MatMuls of the
// layers that they change.

#include "absl/status/status.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "transforms/layers/float_layer.h"

namespace requant {

// Moves a constant bias, Relu and Relu6 from behind a Reshape of a MatMul's
// result before it.
absl::Status MoveBiases(const FloatLayerOptions& options,
                        tensorflow::GraphDef* graph);

// Makes layers read the matrix that another layer gives, rather than the same
// values after they were reshaped and back: only then do codes go from one to
// the other. Considers only pairs of layers of which one is marked.
absl::Status JoinLayers(const FloatLayerOptions& options,
                        tensorflow::GraphDef* graph);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_EIGHTBIT_LAYER_RESHAPES_H_
