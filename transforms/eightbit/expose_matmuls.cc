#include "transforms/eightbit/expose_matmuls.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "transforms/eightbit/eightbit_nodes.h"
#include "transforms/eightbit/layer_reshapes.h"
#include "transforms/layers/graph_builder.h"
#include "transforms/layers/plain_product.h"
#include "transforms/layers/tensor_pattern.h"
#include "transforms/transform.h"

namespace requant {
namespace {

using tensorflow::DT_FLOAT;
using tensorflow::DT_INT32;
using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::Tensor;

Tensor IntVector(const std::vector<int64_t>& values) {
  Tensor vector(DT_INT32, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) {
    vector.flat<int32_t>()(i) = static_cast<int32_t>(values[i]);
  }
  return vector;
}

// Replaces products by MatMuls.
class ProductRewriter {
 public:
  ProductRewriter(GraphIndex* index, const FloatLayerOptions& options)
      : builder_(index, options.outputs) {}

  void Rewrite(const PlainProduct& product) {
    name_ = product.node->name();
    device_ = product.node->device();
    // The node's inputs are needed until the end.
    const NodeDef node = *product.node;
    std::vector<std::string> inputs = {RowsOf(node, product),
                                       WeightsOf(node, product)};
    AppendControlInputs({&node}, &inputs);
    if (!product.fused.empty()) {
      SplitFused(node, product, std::move(inputs));
    } else if (product.gives_matrix()) {
      builder_.ReplaceInputs(product.node, std::move(inputs));
      BecomeMatMul(product, product.node);
    } else {
      NodeDef matmul = MakeNode(name_ + "/matmul", "MatMul", inputs, {});
      BecomeMatMul(product, &matmul);
      const std::string rows = Add(std::move(matmul));
      const std::string shape = ResultShapeOf(node, product);
      builder_.ReplaceInputs(product.node, {rows, shape});
      BecomeOp("Reshape", {{"T", DT_FLOAT}, {"Tshape", DT_INT32}},
               product.node);
    }
  }

 private:
  // What is known of an activation whose dimensions are in some order.
  struct Ordered {
    std::string tensor;
    // The matrix, and the dimensions that are kept; "" until they are needed.
    std::string rows;
    std::string kept;
  };

  std::string Add(NodeDef node) {
    node.set_device(device_);
    return builder_.Add(std::move(node));
  }

  void BecomeMatMul(const PlainProduct& product, NodeDef* node) const {
    BecomeOp("MatMul", {{"T", DT_FLOAT}}, node);
    (*node->mutable_attr())["transpose_a"].set_b(false);
    (*node->mutable_attr())["transpose_b"].set_b(product.transposed);
    node->set_device(device_);
    (*node->mutable_attr())[kExposedAttribute].set_s(name_);
  }

  // Returns the entry of the product's activation, which it may share with
  // other products, such as the query, key and value of an attention.
  Ordered& OrderedOf(const NodeDef& node, const PlainProduct& product) {
    const std::string& input = node.input(product.activation);
    const TensorName name = ParseTensorName(input);
    Ordered& ordered = ordered_[absl::StrCat(name.node, ":", name.port, " ",
                                             absl::StrJoin(product.order, ","),
                                             " ", product.summed)];
    if (!ordered.tensor.empty()) return ordered;
    ordered.tensor = input;
    if (product.order.empty()) return ordered;
    const std::string order = builder_.AddConst(
        name_ + "/order",
        IntVector({product.order.begin(), product.order.end()}));
    ordered.tensor =
        Add(MakeNode(name_ + "/transpose", "Transpose", {input, order},
                     {{"T", DT_FLOAT}, {"Tperm", DT_INT32}}));
    return ordered;
  }

  // Returns the activation as a matrix.
  std::string RowsOf(const NodeDef& node, const PlainProduct& product) {
    Ordered& ordered = OrderedOf(node, product);
    if (product.keeps_one && product.summed == 1) return ordered.tensor;
    if (ordered.rows.empty()) {
      const std::string shape = builder_.AddConst(
          name_ + "/rows/shape", IntVector({-1, product.rows}));
      ordered.rows =
          Add(MakeNode(name_ + "/rows", "Reshape", {ordered.tensor, shape},
                       {{"T", DT_FLOAT}, {"Tshape", DT_INT32}}));
    }
    return ordered.rows;
  }

  // Returns the weights as a matrix, which products with the same weights and
  // equation share.
  std::string WeightsOf(const NodeDef& node, const PlainProduct& product) {
    if (!product.matrix) return node.input(product.weights);
    std::string& name = matrices_[absl::StrCat(
        product.weights_node->name(), " ", StringAttribute(node, "equation"))];
    if (name.empty()) {
      name = builder_.AddConst(product.weights_node->name() + "/matrix",
                               *product.matrix);
    }
    return name;
  }

  std::string ResultShapeOf(const NodeDef& node, const PlainProduct& product) {
    std::vector<int64_t> last = product.result;
    if (product.keeps_one) {
      last.insert(last.begin(), -1);
      return builder_.AddConst(name_ + "/shape", IntVector(last));
    }
    Ordered& ordered = OrderedOf(node, product);
    if (ordered.kept.empty()) AddKept(product, &ordered);
    if (last.empty()) return ordered.kept;
    const std::string made =
        builder_.AddConst(name_ + "/shape/made", IntVector(last));
    const std::string axis =
        builder_.AddConst(name_ + "/shape/axis", Tensor(int32_t{0}));
    NodeDef concat =
        MakeNode(name_ + "/shape", "ConcatV2", {ordered.kept, made, axis},
                 {{"T", DT_INT32}, {"Tidx", DT_INT32}});
    (*concat.mutable_attr())["N"].set_i(2);
    return Add(std::move(concat));
  }

  void AddKept(const PlainProduct& product, Ordered* ordered) {
    const std::string shape =
        Add(MakeNode(name_ + "/dimensions", "Shape", {ordered->tensor},
                     {{"T", DT_FLOAT}, {"out_type", DT_INT32}}));
    const std::string begin =
        builder_.AddConst(name_ + "/kept/begin", IntVector({0}));
    const std::string end =
        builder_.AddConst(name_ + "/kept/end", IntVector({-product.summed}));
    const std::string strides =
        builder_.AddConst(name_ + "/kept/strides", IntVector({1}));
    ordered->kept = Add(MakeNode(name_ + "/kept", "StridedSlice",
                                 {shape, begin, end, strides},
                                 {{"T", DT_INT32}, {"Index", DT_INT32}}));
  }

  // Makes a node of each op of a _FusedMatMul; the last one has its name.
  void SplitFused(const NodeDef& node, const PlainProduct& product,
                  std::vector<std::string> inputs) {
    NodeDef matmul = MakeNode(name_ + "/matmul", "MatMul", inputs, {});
    BecomeMatMul(product, &matmul);
    std::vector<std::string> last = {Add(std::move(matmul)), node.input(2)};
    if (product.fused.size() > 1) {
      last = {
          Add(MakeNode(name_ + "/bias", "BiasAdd", last, {{"T", DT_FLOAT}}))};
    }
    builder_.ReplaceInputs(product.node, last);
    BecomeOp(product.fused.back(), {{"T", DT_FLOAT}}, product.node);
  }

  GraphBuilder builder_;
  std::map<std::string, Ordered> ordered_;
  std::map<std::string, std::string> matrices_;
  // Those of the current product.
  std::string name_;
  std::string device_;
};

absl::Status RewriteProducts(const FloatLayerOptions& options,
                             GraphDef* graph) {
  REQUANT_ASSIGN_OR_RETURN(GraphIndex index, GraphIndex::Create(graph));
  const absl::flat_hash_set<std::string> excluded_ops(
      options.excluded_ops.begin(), options.excluded_ops.end());
  const absl::flat_hash_set<std::string> excluded_nodes(
      options.excluded_nodes.begin(), options.excluded_nodes.end());
  ProductRewriter rewriter(&index, options);
  // Nodes are added meanwhile.
  for (int i = 0, end = graph->node_size(); i < end; ++i) {
    NodeDef* node = index.Find(graph->node(i).name());
    PlainProduct product;
    if (node == nullptr || !IsOtherProduct(*node) ||
        excluded_ops.contains(node->op()) ||
        excluded_nodes.contains(node->name()) ||
        ReadPlainProduct(index, node, &product)) {
      continue;
    }
    rewriter.Rewrite(product);
  }
  index.Commit();
  return absl::OkStatus();
}

absl::Status Expose(TransformContext& context, GraphDef* graph) {
  const FloatLayerOptions options = {context.outputs,
                                     context.parameters.All("excluded_ops"),
                                     context.parameters.All("excluded_nodes")};
  {
    REQUANT_ASSIGN_OR_RETURN(const GraphIndex index, GraphIndex::Create(graph));
    REQUANT_RETURN_IF_ERROR(CheckExcluded(options, index, &context.warnings));
  }
  REQUANT_ASSIGN_OR_RETURN(const int exposed, ExposeMatMuls(options, graph));
  context.notes.push_back(exposed == 0
                              ? "changes nothing"
                              : absl::StrCat("exposes ", exposed, " MatMuls"));
  return absl::OkStatus();
}

REQUANT_REGISTER_TRANSFORM(
    Expose,
    {"expose_matmuls",
     "Turns products with constant weights into MatMuls that the transforms "
     "for eight bits find.",
     "A BatchMatMul or Einsum whose weights are a constant matrix, such as a "
     "dense layer on sequences or the projections of an attention, becomes "
     "Reshape, MatMul and Reshape, for any batch and length; a _FusedMatMul "
     "becomes MatMul, BiasAdd and activation. A bias and a Relu behind the "
     "second Reshape move before it, and layers that follow each other pass "
     "on matrices. The float graph computes the same but gets no faster, so "
     "\"requant quantize\" takes back what it leaves in float. Nodes that "
     "others read keep their names.",
     {ExcludedParameter("excluded_ops", "nodes of this type"),
      ExcludedParameter("excluded_nodes", "this node")},
     "weights frozen into constants"});

}  // namespace

absl::StatusOr<int> ExposeMatMuls(const FloatLayerOptions& options,
                                  GraphDef* graph) {
  REQUANT_RETURN_IF_ERROR(RewriteProducts(options, graph));
  REQUANT_RETURN_IF_ERROR(MoveBiases(options, graph));
  REQUANT_RETURN_IF_ERROR(JoinLayers(options, graph));
  int exposed = 0;
  for (const NodeDef& node : graph->node()) {
    exposed += node.attr().contains(kExposedAttribute);
  }
  return exposed;
}

}  // namespace requant
