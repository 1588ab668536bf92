#ifndef REQUANT_TRANSFORMS_LAYERS_FLOAT_LAYER_H_
#define REQUANT_TRANSFORMS_LAYERS_FLOAT_LAYER_H_

// The float layers of a graph that can be computed in eight bits:
//
//   MatMul(x, weights) [+ bias] [Relu | Relu6]
//
// with constant weights and bias, found by what the nodes are, not by names.

#include <string>
#include <vector>

#include "graph/graph_index.h"
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
  // The Const that holds the weights, possibly behind Identity nodes, and
  // whether the MatMul transposes it.
  const tensorflow::NodeDef* weights_node = nullptr;
  bool transposed = false;
  // float [inputs, outputs], transposed already.
  tensorflow::Tensor weights;
  // The Const that holds the bias; nullptr when there is none.
  const tensorflow::NodeDef* bias_node = nullptr;
  // float [outputs]; zeros when there is none.
  tensorflow::Tensor bias;
  // The tensors that go in, behind Identity nodes, and come out; always with a
  // port: "x/Relu:0".
  std::string input;
  std::string output;

  // The node that gives `output`.
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

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_LAYERS_FLOAT_LAYER_H_
