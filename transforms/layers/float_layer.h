#ifndef REQUANT_TRANSFORMS_LAYERS_FLOAT_LAYER_H_
#define REQUANT_TRANSFORMS_LAYERS_FLOAT_LAYER_H_

// Finds the float layers of a graph that can be computed in eight bits:
//
//   MatMul(x, weights) [+ bias] [Relu | Relu6]
//
// with constant weights and bias, by the ops of the nodes, not by names.

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant {

// A string attribute of nodes that compute a range at run time: the name of the
// float tensor with that range, such as "dnn/Relu:0".
inline constexpr char kRangeOfAttribute[] = "_requant_range_of";

struct FloatLayer {
  tensorflow::NodeDef* matmul = nullptr;
  // BiasAdd, Add or AddV2 with a constant vector; nullptr if there is none.
  tensorflow::NodeDef* bias_add = nullptr;
  // Relu or Relu6; nullptr if there is none.
  tensorflow::NodeDef* activation = nullptr;
  // The Const that holds the weights, possibly through Identity nodes, and
  // whether the MatMul transposes it.
  const tensorflow::NodeDef* weights_node = nullptr;
  bool transposed = false;
  // float [inputs, outputs], already transposed.
  tensorflow::Tensor weights;
  // The Const that holds the bias; nullptr if there is none.
  const tensorflow::NodeDef* bias_node = nullptr;
  // float [outputs]; zeros if there is none.
  tensorflow::Tensor bias;
  // The input, before Identity nodes, and the output, both always with a port:
  // "x/Relu:0".
  std::string input;
  std::string output;

  // Returns the node that gives `output`.
  tensorflow::NodeDef* last() const {
    if (activation != nullptr) return activation;
    return bias_add != nullptr ? bias_add : matmul;
  }
};

// A MatMul that is not part of such a layer.
struct SkippedMatMul {
  std::string name;
  // A phrase such as "it multiplies two activations".
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
  // The ops and names of nodes to leave as they are: a MatMul among them is
  // skipped, and a layer ends before any other of them.
  std::vector<std::string> excluded_ops;
  std::vector<std::string> excluded_nodes;
};

// Finds the layers of the graph. A node that also has another reader, even by a
// control edge, is the last one of its layer. The pointers are valid as long as
// the index's nodes are.
FloatLayers FindFloatLayers(const GraphIndex& index,
                            const FloatLayerOptions& options = {});

// Reads a Const of weights into *weights, or returns why a layer cannot have
// them: they must be finite floats, of which at least one is not zero.
std::optional<std::string> ReadWeights(const tensorflow::NodeDef& node,
                                       tensorflow::Tensor* weights);

// How the numbers of a tensor are coded. Eight-bit codes come with a range, min
// and max.
enum class LayerCoding {
  // Numbers stand for themselves.
  kFloat,
  // The lowest code stands for min, the highest for max.
  kMinFirst,
  // The code 0 stands for 0, the highest for the larger of |min| and |max|.
  kScaled,
};

struct LayerPair {
  // The name of the MatMul, or of an input's node, in the float graph.
  std::string name;
  // The layer's output or input in the float graph and the other: "dnn/Relu:0".
  std::string float_tensor;
  std::string tensor;
  LayerCoding coding = LayerCoding::kFloat;
  // The codes' range; empty for kFloat.
  std::string min_tensor;
  std::string max_tensor;
};

struct LayerPairs {
  // In the order of the float graph, each input before its layer.
  std::vector<LayerPair> pairs;
  // Layers of the float graph for which the other graph has no tensor.
  std::vector<std::string> unmatched;
};

// Finds the float graph's layers (FindFloatLayers) in `other`. The layer of the
// MatMul M is matched with the codes of M_eightbit_requantize, the name that
// quantize_eightbit and quantize_static use, or else with the float tensor of
// the same name. A layer's input that is quantized by itself, by the QuantizeV2
// that quantize_eightbit calls M_eightbit_quantize_X, is a pair of its own
// before the layer's. Names also match if only one of them begins with
// "import/". `outputs` are those of the float graph.
LayerPairs FindLayerPairs(const GraphIndex& float_graph,
                          const GraphIndex& other,
                          const std::vector<std::string>& outputs);

struct LayerTableRow {
  std::string name;
  std::vector<std::string> cells;
};

// Returns the rows as aligned lines. All have as many cells as the first, which
// is the heading.
std::vector<std::string> LayerTable(const std::vector<LayerTableRow>& rows);

// Returns why `graph`, for which the search returned `found`, has no layer to
// quantize, and what to do: "no MatMul has constant float weights; …".
std::string WhyNoLayers(const tensorflow::GraphDef& graph,
                        const FloatLayers& found);

// Fails if a node to exclude is not in the graph; warns if an op to exclude is
// not.
absl::Status CheckExcluded(const FloatLayerOptions& options,
                           const GraphIndex& index,
                           std::vector<std::string>* warnings);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_LAYERS_FLOAT_LAYER_H_
