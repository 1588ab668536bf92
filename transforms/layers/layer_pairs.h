#ifndef REQUANT_TRANSFORMS_LAYERS_LAYER_PAIRS_H_
#define REQUANT_TRANSFORMS_LAYERS_LAYER_PAIRS_H_

// The layers of a float graph and what became of them in a graph made from it.

#include <string>
#include <vector>

#include "graph/graph_index.h"

namespace requant {

// What the numbers of a tensor stand for. The eight-bit codes come with a
// range, min and max.
enum class LayerCoding {
  // Themselves.
  kFloat,
  // The lowest code for min, the highest for max.
  kMinFirst,
  // The code 0 for 0, the highest for the larger of |min| and |max|.
  kScaled,
};

struct LayerPair {
  // The MatMul's name in the float graph; of an input, its node's.
  std::string name;
  // The layer's output, or input, there and in the other graph: "dnn/Relu:0".
  std::string float_tensor;
  std::string tensor;
  LayerCoding coding = LayerCoding::kFloat;
  // The codes' range; empty for kFloat.
  std::string min_tensor;
  std::string max_tensor;
};

struct LayerPairs {
  // In the order of the float graph; an input before its layer.
  std::vector<LayerPair> pairs;
  // Layers of the float graph that the other one has no tensor for.
  std::vector<std::string> unmatched;
};

// Finds the float graph's layers (FindFloatLayers) in `other`. The MatMul M's
// is the tensor of codes of M_eightbit_requantize, as quantize_eightbit and
// quantize_static call it, or else the float tensor under the name that it has
// in the float graph. A layer's input that is quantized as it is, by the
// QuantizeV2 that quantize_eightbit calls M_eightbit_quantize_X, is a pair of
// its own, before the layer's. Names match also if only one of them begins with
// "import/". `outputs` are those of the float graph.
LayerPairs FindLayerPairs(const GraphIndex& float_graph,
                          const GraphIndex& other,
                          const std::vector<std::string>& outputs);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_LAYERS_LAYER_PAIRS_H_
