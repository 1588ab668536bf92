#include "transforms/layers/float_layer.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/const_node.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "transforms/layers/tensor_pattern.h"

namespace requant {
namespace {

using tensorflow::NodeDef;
using tensorflow::Tensor;

bool BoolAttribute(const NodeDef& node, const char* name) {
  const auto found = node.attr().find(name);
  return found != node.attr().end() && found->second.b();
}

bool IsFloat(const NodeDef& node) {
  const auto found = node.attr().find("T");
  return found == node.attr().end() ||
         found->second.type() == tensorflow::DT_FLOAT;
}

// How many of the inputs are data.
int DataInputs(const NodeDef& node) {
  int count = 0;
  while (count < node.input_size() &&
         !absl::StartsWith(node.input(count), "^")) {
    ++count;
  }
  return count;
}

// The tensor's name, always with a port.
std::string WithPort(const std::string& input) {
  const TensorName name = ParseTensorName(input);
  return absl::StrCat(name.node, ":", name.port);
}

Tensor Transposed(const Tensor& matrix) {
  Tensor result(matrix.dtype(), {matrix.dim_size(1), matrix.dim_size(0)});
  const auto from = matrix.matrix<float>();
  auto to = result.matrix<float>();
  for (int64_t row = 0; row < matrix.dim_size(0); ++row) {
    for (int64_t column = 0; column < matrix.dim_size(1); ++column) {
      to(column, row) = from(row, column);
    }
  }
  return result;
}

bool AllFinite(const Tensor& tensor) {
  const auto values = tensor.flat<float>();
  for (int64_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values(i))) return false;
  }
  return true;
}

bool AllZero(const Tensor& tensor) {
  const auto values = tensor.flat<float>();
  for (int64_t i = 0; i < values.size(); ++i) {
    if (values(i) != 0) return false;
  }
  return true;
}

class LayerFinder {
 public:
  LayerFinder(const GraphIndex* index, const FloatLayerOptions& options)
      : index_(*index),
        excluded_ops_(options.excluded_ops.begin(), options.excluded_ops.end()),
        excluded_nodes_(options.excluded_nodes.begin(),
                        options.excluded_nodes.end()) {
    for (const std::string& output : options.outputs) {
      outputs_.insert(std::string(ParseTensorName(output).node));
    }
  }

  FloatLayers Find() {
    FloatLayers found;
    for (const NodeDef& node : index_.graph().node()) {
      if (node.op() != "MatMul") continue;
      FloatLayer layer;
      layer.matmul = index_.Find(node.name());
      if (auto reason = ReadMatMul(&layer)) {
        found.skipped.push_back({node.name(), *std::move(reason)});
        continue;
      }
      AddBias(&layer);
      AddActivation(&layer);
      layer.output = absl::StrCat(layer.last()->name(), ":0");
      found.layers.push_back(std::move(layer));
    }
    return found;
  }

 private:
  bool IsExcluded(const NodeDef& node) const {
    return excluded_ops_.contains(node.op()) ||
           excluded_nodes_.contains(node.name());
  }

  // Sets the input and the weights, or says why this is no layer.
  std::optional<std::string> ReadMatMul(FloatLayer* layer) const {
    const NodeDef& matmul = *layer->matmul;
    if (IsExcluded(matmul)) return "it is excluded";
    if (DataInputs(matmul) != 2) return "it does not have two inputs";
    if (!IsFloat(matmul)) return "it is not float32";
    if (BoolAttribute(matmul, "transpose_a")) {
      return "it transposes its first input";
    }
    const NodeOutput weights = TensorSource(index_, matmul, 1);
    if (weights.node == nullptr || weights.node->op() != "Const") {
      const NodeOutput left = TensorSource(index_, matmul, 0);
      const bool constant = left.node != nullptr && left.node->op() == "Const";
      return constant ? "its constant is the first factor"
                      : "it multiplies two activations";
    }
    const NodeOutput input = TensorSource(index_, matmul, 0);
    if (input.node != nullptr && input.node->op() == "Const") {
      return "it multiplies two constants";
    }
    layer->input = input.node == nullptr
                       ? WithPort(matmul.input(0))
                       : absl::StrCat(input.node->name(), ":", input.port);
    layer->transposed = BoolAttribute(matmul, "transpose_b");
    return ReadWeights(*weights.node, layer);
  }

  static std::optional<std::string> ReadWeights(const NodeDef& node,
                                                FloatLayer* layer) {
    // Those of a loop's body have them; a new constant would be outside it.
    if (node.input_size() > 0) return "its weights have control inputs";
    const absl::StatusOr<Tensor> value = ConstValue(node);
    if (!value.ok()) return "its weights cannot be read";
    if (value->dtype() != tensorflow::DT_FLOAT) {
      return "its weights are not float32";
    }
    if (value->dims() != 2 || value->NumElements() == 0) {
      return absl::StrCat("its weights have the shape ",
                          value->shape().DebugString());
    }
    if (!AllFinite(*value)) return "its weights hold a nan or an infinity";
    if (AllZero(*value)) return "its weights are all zero";
    layer->weights_node = &node;
    layer->weights = layer->transposed ? Transposed(*value) : *value;
    layer->bias = Tensor(tensorflow::DT_FLOAT, {layer->weights.dim_size(1)});
    layer->bias.flat<float>().setZero();
    return std::nullopt;
  }

  // The only reader of `node`, when the layer may go on with it, and the number
  // of the input by which it reads.
  std::optional<Use> OnlyReader(const NodeDef& node) const {
    if (outputs_.contains(node.name())) return std::nullopt;
    const std::vector<Use> uses = index_.Uses(node.name());
    if (uses.size() != 1 || uses[0].port != 0 || IsExcluded(*uses[0].node) ||
        !IsFloat(*uses[0].node)) {
      return std::nullopt;
    }
    return uses[0];
  }

  void AddBias(FloatLayer* layer) const {
    const auto use = OnlyReader(*layer->matmul);
    if (!use || DataInputs(*use->node) != 2) return;
    const bool is_add = use->node->op() == "Add" || use->node->op() == "AddV2";
    if (!is_add && (use->node->op() != "BiasAdd" || use->input != 0)) return;
    const NodeOutput bias = TensorSource(index_, *use->node, 1 - use->input);
    if (bias.node == nullptr || bias.node->op() != "Const") return;
    const absl::StatusOr<Tensor> value = ConstValue(*bias.node);
    if (!value.ok() || value->dtype() != tensorflow::DT_FLOAT ||
        value->shape() != layer->bias.shape() || !AllFinite(*value)) {
      return;
    }
    layer->bias_add = use->node;
    layer->bias_node = bias.node;
    layer->bias = *value;
  }

  void AddActivation(FloatLayer* layer) const {
    const auto use = OnlyReader(*layer->last());
    if (!use || DataInputs(*use->node) != 1) return;
    if (use->node->op() == "Relu" || use->node->op() == "Relu6") {
      layer->activation = use->node;
    }
  }

  const GraphIndex& index_;
  const absl::flat_hash_set<std::string> excluded_ops_;
  const absl::flat_hash_set<std::string> excluded_nodes_;
  absl::flat_hash_set<std::string> outputs_;
};

}  // namespace

FloatLayers FindFloatLayers(const GraphIndex& index,
                            const FloatLayerOptions& options) {
  return LayerFinder(&index, options).Find();
}

}  // namespace requant
