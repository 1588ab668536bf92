#ifndef REQUANT_TRANSFORMS_LAYERS_PLAIN_PRODUCT_H_
#define REQUANT_TRANSFORMS_LAYERS_PLAIN_PRODUCT_H_

// Reads nodes that multiply a tensor by constant weights without being a
// MatMul, but that one MatMul between two Reshapes can replace:
//
//   BatchMatMul (V2, V3) whose weights are a matrix
//   Einsum such as "abc,cde->abde", which sums over whole dimensions
//   _FusedMatMul with a bias and perhaps an activation

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph_index.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant {

struct PlainProduct {
  tensorflow::NodeDef* node = nullptr;
  // The numbers of the node's inputs that are the activation and the weights.
  int activation = 0;
  int weights = 1;
  const tensorflow::NodeDef* weights_node = nullptr;

  // The activation's dimensions are brought into this order (that of Transpose;
  // empty if they stay as they are), and the last `summed` of them are summed
  // over. The others are kept: they are the first dimensions of the result.
  std::vector<int> order;
  int summed = 1;
  // Whether exactly one dimension is known to be kept.
  bool keeps_one = false;
  // The dimensions of the result after those that are kept.
  std::vector<int64_t> result;

  // The weights as a matrix [summed, result], if the node's own tensor is not
  // it; otherwise whether it is its transpose.
  std::optional<tensorflow::Tensor> matrix;
  bool transposed = false;
  // The number of rows of that matrix.
  int64_t rows = 0;

  // The ops that follow the product within the node: BiasAdd, then perhaps an
  // activation.
  std::vector<std::string> fused;

  // Returns whether the activation is a matrix as it is.
  bool takes_matrix() const {
    return keeps_one && summed == 1 && order.empty();
  }
  // Returns whether the result is a matrix.
  bool gives_matrix() const { return keeps_one && result.size() == 1; }
};

// Returns whether the node's op is one of the above.
bool IsOtherProduct(const tensorflow::NodeDef& node);

// Returns whether a product's types are float32, as far as its attributes say.
bool IsFloatProduct(const tensorflow::NodeDef& node);

// Reads a node for which IsOtherProduct holds, or returns why a MatMul cannot
// replace it: "it multiplies two activations".
std::optional<std::string> ReadPlainProduct(const GraphIndex& index,
                                            tensorflow::NodeDef* node,
                                            PlainProduct* product);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_LAYERS_PLAIN_PRODUCT_H_
