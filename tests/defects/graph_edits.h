#ifndef REQUANT_TESTS_DEFECTS_GRAPH_EDITS_H_
#define REQUANT_TESTS_DEFECTS_GRAPH_EDITS_H_

// Functions shared by the edits that plant defects in graphs. They find nodes
// by what these do, so that every model's graph can be edited.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "graph/const_node.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"

namespace requant {

inline constexpr int kNumericColumns = 13;
inline constexpr int kCategoricalColumns = 26;

// Returns the node with this number in the graph's order among those of `ops`.
absl::StatusOr<tensorflow::NodeDef*> NodeOf(
    const GraphIndex& index, const std::vector<std::string_view>& ops,
    int number = 0);

// Returns all nodes of `ops`.
std::vector<tensorflow::NodeDef*> NodesOf(
    const GraphIndex& index, const std::vector<std::string_view>& ops);

// Return the node of that op that reads `node`, and the one that `node` reads.
absl::StatusOr<tensorflow::NodeDef*> ReaderOf(const GraphIndex& index,
                                              const tensorflow::NodeDef& node,
                                              std::string_view op);
absl::StatusOr<tensorflow::NodeDef*> InputOf(const GraphIndex& index,
                                             const tensorflow::NodeDef& node,
                                             int input);

// Returns the Const that `node` reads, possibly through Identity nodes.
absl::StatusOr<tensorflow::NodeDef*> ConstBehind(
    const GraphIndex& index, const tensorflow::NodeDef& node, int input);

void SetConst(const tensorflow::Tensor& value, tensorflow::NodeDef* node);

// A Const's values, which can be changed in place and then written back.
template <typename T>
struct ConstValues {
  tensorflow::NodeDef* node;
  tensorflow::Tensor tensor;
  absl::Span<T> values;

  // Returns the size of the last dimension, which is a matrix's columns.
  int64_t columns() const {
    return tensor.dims() == 0 ? 1 : tensor.dim_size(tensor.dims() - 1);
  }
  int64_t rows() const { return values.size() / columns(); }

  void Write() { SetConst(tensor, node); }
};

template <typename T>
absl::StatusOr<ConstValues<T>> ValuesOf(tensorflow::NodeDef* node) {
  REQUANT_ASSIGN_OR_RETURN(tensorflow::Tensor tensor, ConstValue(*node));
  if (tensor.dtype() != tensorflow::DataTypeToEnum<T>::value) {
    return absl::InvalidArgumentError("\"" + node->name() +
                                      "\" is of another type than expected");
  }
  ConstValues<T> result{node, tensor, {}};
  result.values = absl::MakeSpan(static_cast<T*>(result.tensor.data()),
                                 result.tensor.NumElements());
  return result;
}

template <typename T>
absl::StatusOr<ConstValues<T>> ValuesBehind(const GraphIndex& index,
                                            const tensorflow::NodeDef& node,
                                            int input) {
  REQUANT_ASSIGN_OR_RETURN(tensorflow::NodeDef * constant,
                           ConstBehind(index, node, input));
  return ValuesOf<T>(constant);
}

// Multiplies the float that `node` reads.
absl::Status ScaleInput(const GraphIndex& index,
                        const tensorflow::NodeDef& node, int input,
                        double factor);

// Changes a Const's values in place. Returns the text `before`, the Const's
// name and `after`, or why there are no values.
template <typename T, typename Edit>
absl::StatusOr<std::string> EditValues(absl::StatusOr<ConstValues<T>> values,
                                       std::string_view before,
                                       std::string_view after,
                                       const Edit& edit) {
  if (!values.ok()) return values.status();
  edit(*values);
  values->Write();
  return absl::StrCat(before, values->node->name(), after);
}

// Moves each column, or each row, of `values` to the place of the next one.
template <typename T>
void RotateColumns(ConstValues<T>& values) {
  const int64_t columns = values.columns();
  for (auto row = values.values.begin(); row != values.values.end();
       row += columns) {
    std::rotate(row, row + columns - 1, row + columns);
  }
}
template <typename T>
void RotateRows(absl::Span<T> values, int64_t columns) {
  std::rotate(values.begin(), values.end() - columns, values.end());
}

// Return the eight-bit matmuls, fused or not, in the order of data flow; then
// the one with this number, its weights, and its bias.
std::vector<tensorflow::NodeDef*> QuantizedLayers(const GraphIndex& index);
absl::StatusOr<tensorflow::NodeDef*> QuantizedLayerAt(const GraphIndex& index,
                                                      int number);
absl::StatusOr<ConstValues<tensorflow::qint8>> WeightsAt(
    const GraphIndex& index, int number);
absl::StatusOr<ConstValues<tensorflow::qint32>> BiasAt(const GraphIndex& index,
                                                       int number);

// Edit the layer with this number.
absl::StatusOr<std::string> RotateWeightColumns(GraphIndex* index, int layer);
absl::StatusOr<std::string> RotateWeightRows(GraphIndex* index, int layer);
absl::StatusOr<std::string> ScaleBias(GraphIndex* index, int layer,
                                      double factor);
// Spreads the codes of all weights over ±127 and narrows the range accordingly.
absl::StatusOr<std::string> UseAllWeightLevels(GraphIndex* index);

}  // namespace requant

#endif  // REQUANT_TESTS_DEFECTS_GRAPH_EDITS_H_
