#ifndef REQUANT_TRANSFORMS_LAYERS_FLOAT_LAYER_H_
#define REQUANT_TRANSFORMS_LAYERS_FLOAT_LAYER_H_

// The float layers of a graph that can be computed in eight bits:
//
//   MatMul(x, weights) [+ bias] [Relu | Relu6]
//
// with constant weights and bias, found by what the nodes are, not by names.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant {

// A string attribute of nodes that compute a range at run time: the name of the
// float tensor, such as "dnn/Relu:0", whose range it is.
inline constexpr char kRangeOfAttribute[] = "_requant_range_of";

struct FloatLayer {
  tensorflow::NodeDef* matmul = nullptr;
  // BiasAdd, Add or AddV2 with a constant vector; nullptr when there is none.
  tensorflow::NodeDef* bias_add = nullptr;
  // Relu or Relu6; nullptr when there is none.
  tensorflow::NodeDef* activation = nullptr;
  // The Const that holds the weights, possibly through Identity nodes, and
  // whether the MatMul transposes it.
  const tensorflow::NodeDef* weights_node = nullptr;
  bool transposed = false;
  // float [inputs, outputs], transposed already.
  tensorflow::Tensor weights;
  // The Const that holds the bias; nullptr when there is none.
  const tensorflow::NodeDef* bias_node = nullptr;
  // float [outputs]; zeros when there is none.
  tensorflow::Tensor bias;
  // The tensors that go in, before Identity nodes, and come out; always with a
  // port: "x/Relu:0".
  std::string input;
  std::string output;

  // Returns the node that gives `output`.
  tensorflow::NodeDef* last() const {
    if (activation != nullptr) return activation;
    return bias_add != nullptr ? bias_add : matmul;
  }
};

// A MatMul that is no such layer.
struct SkippedMatMul {
  std::string name;
  // A phrase: "it multiplies two activations".
  std::string reason;
};

struct FloatLayers {
  // Both in the order of the graph's nodes.
  std::vector<FloatLayer> layers;
  std::vector<SkippedMatMul> skipped;
};

struct FloatLayerOptions {
  // The graph's outputs. A layer ends with a node that is one of them.
  std::vector<std::string> outputs;
  // Types and names of nodes that are to stay as they are: such a MatMul is
  // skipped, and a layer ends before such another node.
  std::vector<std::string> excluded_ops;
  std::vector<std::string> excluded_nodes;
};

// Finds the layers of the graph. A node that something else reads too, also by
// a control edge, is the last one of its layer. The pointers are good as long
// as the index's nodes are.
FloatLayers FindFloatLayers(const GraphIndex& index,
                            const FloatLayerOptions& options = {});

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

struct LayerTableRow {
  std::string name;
  std::vector<std::string> cells;
};

// Returns the rows as aligned lines; all have as many cells as the first, which
// is the heading.
std::vector<std::string> LayerTable(const std::vector<LayerTableRow>& rows);

// Returns why `graph`, whose search gave `found`, has no layer to quantize, and
// what to do: "no MatMul has constant float weights; …".
std::string WhyNoLayers(const tensorflow::GraphDef& graph,
                        const FloatLayers& found);

// Fails if a node to exclude is not in the graph; warns if no node is of a type
// to exclude.
absl::Status CheckExcluded(const FloatLayerOptions& options,
                           const GraphIndex& index,
                           std::vector<std::string>* warnings);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_LAYERS_FLOAT_LAYER_H_
