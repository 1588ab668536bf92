#ifndef REQUANT_TRANSFORMS_LAYERS_SHIFTED_INPUT_H_
#define REQUANT_TRANSFORMS_LAYERS_SHIFTED_INPUT_H_

// A quantized matmul behind the QuantizeV2 q that takes its codes as those of
// x − min, as quantize_eightbit makes it: the input is SCALED with min_a = 0
// and max_a = Sub(q:2, q:1), and the bias is AddV2(b, Mul(q:1, s)) with the
// column sums s of the weights.

#include <optional>

#include "graph/graph_index.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace requant {

struct ShiftedInput {
  const tensorflow::NodeDef* quantize;
  // What gives b.
  const tensorflow::NodeDef* bias;
};

// nullopt when `matmul` has another form.
std::optional<ShiftedInput> ShiftedInputOf(const GraphIndex& index,
                                           const tensorflow::NodeDef& matmul);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_LAYERS_SHIFTED_INPUT_H_
