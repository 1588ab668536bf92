#ifndef REQUANT_TRANSFORMS_LAYERS_COVERAGE_H_
#define REQUANT_TRANSFORMS_LAYERS_COVERAGE_H_

// Tells how much of a graph's work is done in eight bits, and why the rest is
// not: counts all matrix products and convolutions, also those in functions,
// and the multiply-adds of each.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph_index.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.pb.h"
#include "transforms/layers/float_layer.h"

namespace requant {

// A tensor whose shape is needed to count multiply-adds.
struct ProductOperand {
  // "x:0", before Identity nodes.
  std::string tensor;
  tensorflow::DataType type = tensorflow::DT_FLOAT;
  // Set from the start for a constant.
  std::optional<tensorflow::TensorShape> shape;
};

struct CountedProduct {
  enum Kind { kMatrices, kEinsum, kConvolution, kDepthwise };

  // The node's name; in a function "FUNCTION/NODE".
  std::string name;
  std::string op;
  Kind kind = kMatrices;
  // "" for a layer that is to be in eight bits; else a phrase about where it
  // is, such as "in loops (While)", or why it is in float.
  std::string in_float;
  // The two factors; for a convolution its filter, and its result or, if that
  // is what it reads, the gradient. Empty if the work cannot be known, as in a
  // loop.
  std::vector<ProductOperand> operands;
  bool first_transposed = false;
  std::string equation;
  // The multiply-adds for one record, if known.
  std::optional<double> work;

  bool is_convolution() const {
    return kind == kConvolution || kind == kDepthwise;
  }
};

// Returns the products that the outputs depend on, in the order of the nodes.
// `found` and `options` are those of FindFloatLayers for the same graph.
std::vector<CountedProduct> CountProducts(const GraphIndex& index,
                                          const FloatLayers& found,
                                          const FloatLayerOptions& options);

// The shapes of tensors in a run for some records.
struct SeenShapes {
  int64_t records = 0;
  std::map<std::string, tensorflow::TensorShape> shapes;
};

// Returns the operands whose shapes are not observed with the layers' inputs.
std::vector<ProductOperand> UnknownOperands(
    const std::vector<CountedProduct>& products);

// Sets the work of the products whose shapes are in one of the two: `inputs`
// has those of layers' inputs, `operands` those of UnknownOperands.
void SetWork(const SeenShapes& inputs, const SeenShapes& operands,
             std::vector<CountedProduct>* products);

// Sets in_float for products that were to be in eight bits, but are in the
// quantized graph as they were.
void MarkLeftInFloat(const tensorflow::GraphDef& quantized,
                     std::vector<CountedProduct>* products);

// Returns a line such as "84 % of the multiply-adds run in int8: 6 of 8 matrix
// products; float: 2 of two activations, as in attention (16 %); convolutions:
// none". It mentions all products.
std::string CoverageText(const std::vector<CountedProduct>& products);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_LAYERS_COVERAGE_H_
