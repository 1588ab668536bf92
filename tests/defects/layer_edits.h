#ifndef REQUANT_TESTS_DEFECTS_LAYER_EDITS_H_
#define REQUANT_TESTS_DEFECTS_LAYER_EDITS_H_

// Edits of eight-bit layers, however far they are fused.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/types.h"
#include "tests/defects/graph_edits.h"

namespace requant {

// The eight-bit matmuls, in the order of data flow.
std::vector<tensorflow::NodeDef*> QuantizedLayers(const GraphIndex& index);
absl::StatusOr<tensorflow::NodeDef*> QuantizedLayerAt(const GraphIndex& index,
                                                      int number);
absl::StatusOr<ConstValues<tensorflow::qint8>> WeightsAt(
    const GraphIndex& index, int number);

absl::StatusOr<std::string> RotateColumnsOfSecondLayer(GraphIndex* index);
absl::StatusOr<std::string> RotateRowsOfSecondLayer(GraphIndex* index);
// Spreads the codes of all weights over ±127, the range narrowed accordingly.
absl::StatusOr<std::string> UseAllWeightLevels(GraphIndex* index);

}  // namespace requant

#endif  // REQUANT_TESTS_DEFECTS_LAYER_EDITS_H_
