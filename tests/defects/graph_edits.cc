#include "tests/defects/graph_edits.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "graph/const_node.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "transforms/layers/quantized_layer.h"

namespace requant {

using tensorflow::NodeDef;
using tensorflow::qint32;
using tensorflow::qint8;
using tensorflow::Tensor;

std::vector<NodeDef*> NodesOf(const GraphIndex& index,
                              const std::vector<std::string_view>& ops) {
  std::vector<NodeDef*> nodes;
  for (const NodeDef& node : index.graph().node()) {
    if (absl::c_linear_search(ops, node.op())) {
      nodes.push_back(index.Find(node.name()));
    }
  }
  return nodes;
}

absl::StatusOr<NodeDef*> NodeOf(const GraphIndex& index,
                                const std::vector<std::string_view>& ops,
                                int number) {
  const std::vector<NodeDef*> nodes = NodesOf(index, ops);
  if (number < static_cast<int>(nodes.size())) return nodes[number];
  return absl::NotFoundError(absl::StrCat("the graph has ", nodes.size(),
                                          " nodes of ",
                                          absl::StrJoin(ops, " and ")));
}

absl::StatusOr<NodeDef*> ReaderOf(const GraphIndex& index, const NodeDef& node,
                                  std::string_view op) {
  for (const Use& use : index.Uses(node.name())) {
    if (use.node->op() == op) return use.node;
  }
  return absl::NotFoundError(
      absl::StrCat("no ", op, " reads \"", node.name(), "\""));
}

absl::StatusOr<NodeDef*> InputOf(const GraphIndex& index, const NodeDef& node,
                                 int input) {
  NodeDef* producer =
      input < node.input_size() ? index.Producer(node, input) : nullptr;
  if (producer != nullptr) return producer;
  return absl::NotFoundError(
      absl::StrCat("\"", node.name(), "\" has no input ", input));
}

absl::StatusOr<NodeDef*> ConstBehind(const GraphIndex& index,
                                     const NodeDef& node, int input) {
  REQUANT_ASSIGN_OR_RETURN(NodeDef * producer, InputOf(index, node, input));
  while (producer->op() == "Identity") {
    REQUANT_ASSIGN_OR_RETURN(producer, InputOf(index, *producer, 0));
  }
  return producer;
}

void SetConst(const Tensor& value, NodeDef* node) {
  *node->mutable_attr() = MakeConst(node->name(), value).attr();
}

absl::Status ScaleInput(const GraphIndex& index, const NodeDef& node, int input,
                        double factor) {
  REQUANT_ASSIGN_OR_RETURN(ConstValues<float> constant,
                           ValuesBehind<float>(index, node, input));
  for (float& value : constant.values) value *= factor;
  constant.Write();
  return absl::OkStatus();
}

// Layers form a chain, so a layer that depends on more of them comes later; the
// graph's nodes need not be in that order.
std::vector<NodeDef*> QuantizedLayers(const GraphIndex& index) {
  const std::vector<NodeDef*> layers = NodesOf(
      index, {kQuantizedMatMul, kQuantizedMatMulRelu, kFusedRelu, kFusedFloat});
  absl::flat_hash_map<const NodeDef*, int> depths;
  for (NodeDef* layer : layers) {
    int depth = 0;
    for (NodeDef* node = index.Producer(*layer, kA); node != nullptr;
         node = index.Producer(*node, 0)) {
      ++depth;
      if (node->input_size() == 0) break;
    }
    depths[layer] = depth;
  }
  std::vector<NodeDef*> sorted = layers;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](const NodeDef* a, const NodeDef* b) {
                     return depths[a] < depths[b];
                   });
  return sorted;
}

absl::StatusOr<NodeDef*> QuantizedLayerAt(const GraphIndex& index, int number) {
  const std::vector<NodeDef*> layers = QuantizedLayers(index);
  if (number < static_cast<int>(layers.size())) return layers[number];
  return absl::NotFoundError(
      absl::StrCat("the graph has ", layers.size(), " eight-bit layers"));
}

absl::StatusOr<ConstValues<qint8>> WeightsAt(const GraphIndex& index,
                                             int number) {
  REQUANT_ASSIGN_OR_RETURN(NodeDef * matmul, QuantizedLayerAt(index, number));
  return ValuesBehind<qint8>(index, *matmul, kWeights);
}

absl::StatusOr<ConstValues<qint32>> BiasAt(const GraphIndex& index,
                                           int number) {
  REQUANT_ASSIGN_OR_RETURN(NodeDef * matmul, QuantizedLayerAt(index, number));
  return ValuesBehind<qint32>(index, *matmul, kBias);
}

absl::StatusOr<std::string> RotateWeightColumns(GraphIndex* index, int layer) {
  return EditValues(WeightsAt(*index, layer), "moved the columns of ",
                    " by one", RotateColumns<qint8>);
}

absl::StatusOr<std::string> RotateWeightRows(GraphIndex* index, int layer) {
  return EditValues(
      WeightsAt(*index, layer), "moved the rows of ", " by one",
      [](auto& weights) { RotateRows(weights.values, weights.columns()); });
}

absl::StatusOr<std::string> ScaleBias(GraphIndex* index, int layer,
                                      double factor) {
  return EditValues(BiasAt(*index, layer), "multiplied ",
                    absl::StrCat(" by ", factor), [&](auto& bias) {
                      for (qint32& value : bias.values) {
                        value.value = std::lrint(value.value * factor);
                      }
                    });
}

absl::StatusOr<std::string> UseAllWeightLevels(GraphIndex* index) {
  int changed = 0;
  for (NodeDef* matmul : QuantizedLayers(*index)) {
    REQUANT_ASSIGN_OR_RETURN(auto weights,
                             ValuesBehind<qint8>(*index, *matmul, kWeights));
    int most = 1;
    for (const qint8 code : weights.values) {
      most = std::max(most, std::abs(code.value));
    }
    if (most == 127) continue;
    for (qint8& code : weights.values) {
      code.value = static_cast<int8_t>(std::lrint(code.value * 127.0 / most));
    }
    weights.Write();
    for (const int input : {kMinW, kMaxW}) {
      REQUANT_RETURN_IF_ERROR(ScaleInput(*index, *matmul, input, most / 127.0));
    }
    ++changed;
  }
  if (changed == 0) {
    return absl::NotFoundError("all weights use 127 levels already");
  }
  return absl::StrCat("spread the weights of ", changed,
                      " layers over 127 levels");
}

}  // namespace requant
