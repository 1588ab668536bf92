#ifndef REQUANT_TRANSFORMS_EIGHTBIT_QUANTIZE_EIGHTBIT_H_
#define REQUANT_TRANSFORMS_EIGHTBIT_QUANTIZE_EIGHTBIT_H_

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "transforms/transform.h"

namespace requant {

// Is the transform quantize_eightbit, with its parameters in `context`: turns
// the float layers of *graph into eight-bit ones whose ranges are computed in
// every run, and returns how many they are; with none the graph is as it was.
// On an error the content of *graph no longer counts.
absl::StatusOr<int> QuantizeEightbit(TransformContext& context,
                                     tensorflow::GraphDef* graph);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_EIGHTBIT_QUANTIZE_EIGHTBIT_H_
