#include "transforms/layers/plain_product.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/types.pb.h"
#include "transforms/layers/float_layer.h"
#include "transforms/layers/tensor_pattern.h"

namespace requant {
namespace {

using tensorflow::DT_FLOAT;
using tensorflow::NodeDef;
using tensorflow::Tensor;

constexpr char kNotPlain[] = "it is no plain product with a matrix";
// Stands for the dimensions that an equation does not name.
constexpr char kEllipsis = '.';

bool IsConstant(const NodeOutput& source) {
  return source.node != nullptr && source.node->op() == "Const";
}

std::string ShapeReason(const Tensor& weights) {
  return absl::StrCat("its weights have the shape ",
                      weights.shape().DebugString());
}

// Sets which input is the activation and which the weights, and reads these.
std::optional<std::string> FindWeights(const GraphIndex& index,
                                       bool may_be_first, Tensor* weights,
                                       PlainProduct* product) {
  const NodeOutput first = TensorSource(index, *product->node, 0);
  const NodeOutput second = TensorSource(index, *product->node, 1);
  if (IsConstant(first) && IsConstant(second)) {
    return "it multiplies two constants";
  }
  if (!IsConstant(first) && !IsConstant(second)) {
    return "it multiplies two activations";
  }
  if (IsConstant(first)) {
    if (!may_be_first) return "its constant is the first factor";
    std::swap(product->activation, product->weights);
  }
  product->weights_node = IsConstant(first) ? first.node : second.node;
  return ReadWeights(*product->weights_node, weights);
}

// Sets what follows from weights that are a matrix already.
std::optional<std::string> TakeMatrix(const Tensor& weights, bool transposed,
                                      PlainProduct* product) {
  if (weights.dims() != 2) return ShapeReason(weights);
  product->transposed = transposed;
  product->rows = weights.dim_size(transposed ? 1 : 0);
  product->result = {weights.dim_size(transposed ? 0 : 1)};
  return std::nullopt;
}

std::optional<std::string> ReadBatchMatMul(const GraphIndex& index,
                                           PlainProduct* product) {
  if (BoolAttribute(*product->node, "adj_x")) {
    return "it transposes its first input";
  }
  Tensor weights;
  auto reason = FindWeights(index, /*may_be_first=*/false, &weights, product);
  if (reason) return reason;
  return TakeMatrix(weights, BoolAttribute(*product->node, "adj_y"), product);
}

std::optional<std::string> ReadFusedMatMul(const GraphIndex& index,
                                           PlainProduct* product) {
  static const auto* activations = new absl::flat_hash_set<std::string>{
      "Relu", "Relu6", "Elu", "Tanh", "Sigmoid"};
  const NodeDef& node = *product->node;
  if (BoolAttribute(node, "transpose_a")) {
    return "it transposes its first input";
  }
  const auto fused = node.attr().find("fused_ops");
  if (fused != node.attr().end()) {
    product->fused.assign(fused->second.list().s().begin(),
                          fused->second.list().s().end());
  }
  const std::vector<std::string>& ops = product->fused;
  if (DataInputs(node) != 3 || ops.empty() || ops.size() > 2 ||
      ops[0] != "BiasAdd" ||
      (ops.size() == 2 && !activations->contains(ops[1]))) {
    return "what is fused with it has no kernel of its own";
  }
  Tensor weights;
  auto reason = FindWeights(index, /*may_be_first=*/false, &weights, product);
  if (reason) return reason;
  product->keeps_one = true;
  return TakeMatrix(weights, BoolAttribute(node, "transpose_b"), product);
}

// The labels of an equation's dimensions.
struct Equation {
  std::string activation;
  std::string weights;
  std::string result;
};

bool HasRepeatedLabel(std::string labels) {
  absl::c_sort(labels);
  return std::adjacent_find(labels.begin(), labels.end()) != labels.end();
}

std::optional<Equation> ParseEquation(std::string text, bool weights_first) {
  text = absl::StrReplaceAll(text, {{" ", ""}, {"...", "."}});
  const std::vector<std::string> sides = absl::StrSplit(text, "->");
  if (sides.size() != 2) return std::nullopt;
  const std::vector<std::string> factors = absl::StrSplit(sides[0], ',');
  if (factors.size() != 2) return std::nullopt;
  Equation equation = {factors[weights_first ? 1 : 0],
                       factors[weights_first ? 0 : 1], sides[1]};
  if (HasRepeatedLabel(equation.activation) ||
      HasRepeatedLabel(equation.weights) || HasRepeatedLabel(equation.result) ||
      absl::StrContains(equation.weights, kEllipsis)) {
    return std::nullopt;
  }
  return equation;
}

// Returns the labels of `from` that are, or are not, among `others`.
std::string LabelsOf(std::string_view from, std::string_view others,
                     bool among) {
  std::string labels;
  for (const char label : from) {
    if (absl::StrContains(others, label) == among) labels.push_back(label);
  }
  return labels;
}

// Returns where in `labels` each label of `wanted` is.
std::vector<int> PositionsIn(std::string_view labels, std::string_view wanted) {
  std::vector<int> positions;
  for (const char label : wanted) {
    positions.push_back(static_cast<int>(labels.find(label)));
  }
  return positions;
}

// Returns `tensor` with its dimensions in another order, as a matrix of `rows`.
Tensor Reordered(const Tensor& tensor, const std::vector<int>& order,
                 int64_t rows) {
  const int rank = tensor.dims();
  std::vector<int64_t> sizes, strides;
  for (const int dimension : order) {
    int64_t stride = 1;
    for (int i = dimension + 1; i < rank; ++i) stride *= tensor.dim_size(i);
    sizes.push_back(tensor.dim_size(dimension));
    strides.push_back(stride);
  }
  Tensor result(DT_FLOAT, {rows, tensor.NumElements() / rows});
  const float* from = tensor.flat<float>().data();
  float* to = result.flat<float>().data();
  std::vector<int64_t> at(rank, 0);
  for (int64_t i = 0, offset = 0; i < tensor.NumElements(); ++i) {
    to[i] = from[offset];
    for (int d = rank - 1; d >= 0; --d) {
      offset += strides[d];
      if (++at[d] < sizes[d]) break;
      offset -= strides[d] * sizes[d];
      at[d] = 0;
    }
  }
  return result;
}

std::optional<std::string> ReadEinsum(const GraphIndex& index,
                                      PlainProduct* product) {
  if (DataInputs(*product->node) != 2) return kNotPlain;
  Tensor weights;
  auto reason = FindWeights(index, /*may_be_first=*/true, &weights, product);
  if (reason) return reason;
  const auto equation = ParseEquation(
      StringAttribute(*product->node, "equation"), product->weights == 0);
  if (!equation) return kNotPlain;
  const auto& [activation, factor, result] = *equation;
  const std::string kept = LabelsOf(result, activation, true);
  const std::string summed = LabelsOf(activation, result, false);
  const std::string made = LabelsOf(result, activation, false);
  // No label may be in all three, in the weights alone or in the result alone.
  if (kept.empty() || summed.empty() || kept + made != result ||
      !LabelsOf(factor, kept, true).empty() ||
      factor.size() != summed.size() + made.size() ||
      !LabelsOf(summed + made, factor, false).empty()) {
    return kNotPlain;
  }
  if (weights.dims() != static_cast<int>(factor.size())) {
    return ShapeReason(weights);
  }
  const bool has_ellipsis = absl::StrContains(activation, kEllipsis);
  if (kept + summed != activation) {
    if (has_ellipsis) return kNotPlain;
    product->order = PositionsIn(activation, kept + summed);
  }
  product->summed = static_cast<int>(summed.size());
  product->keeps_one = kept.size() == 1 && !has_ellipsis;
  if (summed.size() == 1 && made.size() == 1) {
    return TakeMatrix(weights, factor != summed + made, product);
  }
  product->rows = 1;
  for (const int dimension : PositionsIn(factor, summed)) {
    product->rows *= weights.dim_size(dimension);
  }
  for (const int dimension : PositionsIn(factor, made)) {
    product->result.push_back(weights.dim_size(dimension));
  }
  product->matrix =
      Reordered(weights, PositionsIn(factor, summed + made), product->rows);
  return std::nullopt;
}

}  // namespace

bool IsOtherProduct(const NodeDef& node) {
  return absl::StartsWith(node.op(), "BatchMatMul") || node.op() == "Einsum" ||
         node.op() == "_FusedMatMul";
}

bool IsFloatProduct(const NodeDef& node) {
  return absl::c_all_of(std::vector<std::string>{"T", "Ta", "Tb", "Tout"},
                        [&](const std::string& name) {
                          return TypeAttribute(node, name, DT_FLOAT) ==
                                 DT_FLOAT;
                        });
}

std::optional<std::string> ReadPlainProduct(const GraphIndex& index,
                                            NodeDef* node,
                                            PlainProduct* product) {
  *product = PlainProduct();
  product->node = node;
  if (DataInputs(*node) < 2) return "it does not have two inputs";
  if (!IsFloatProduct(*node)) return "it is not float32";
  if (node->op() == "Einsum") return ReadEinsum(index, product);
  if (node->op() == "_FusedMatMul") return ReadFusedMatMul(index, product);
  return ReadBatchMatMul(index, product);
}

}  // namespace requant
