#include "tests/defects/layer_edits.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "transforms/layers/quantized_layer.h"

namespace requant {

using tensorflow::NodeDef;
using tensorflow::qint8;

// Layers are in a chain, so that whoever reads more of them comes later; nodes
// of graphs need not be in that order.
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

absl::StatusOr<std::string> RotateColumnsOfSecondLayer(GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(auto weights, WeightsAt(*index, 1));
  RotateColumns(weights.values, weights.columns());
  weights.Write();
  return absl::StrCat("moved the columns of ", weights.node->name(), " by one");
}

absl::StatusOr<std::string> RotateRowsOfSecondLayer(GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(auto weights, WeightsAt(*index, 1));
  RotateRows(weights.values, weights.columns());
  weights.Write();
  return absl::StrCat("moved the rows of ", weights.node->name(), " by one");
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
