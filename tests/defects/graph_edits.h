#ifndef REQUANT_TESTS_DEFECTS_GRAPH_EDITS_H_
#define REQUANT_TESTS_DEFECTS_GRAPH_EDITS_H_

// What the edits that plant defects in graphs have in common. Nodes are found
// by what they do, so that every model's graph can be edited.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "graph/const_node.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant {

// Number `number` of the nodes whose op is one of `ops`, in the graph's order.
absl::StatusOr<tensorflow::NodeDef*> NodeOf(
    const GraphIndex& index, const std::vector<std::string_view>& ops,
    int number = 0);

// All of them.
std::vector<tensorflow::NodeDef*> NodesOf(
    const GraphIndex& index, const std::vector<std::string_view>& ops);

// The node of that op that reads `node`, and the node that it reads.
absl::StatusOr<tensorflow::NodeDef*> ReaderOf(const GraphIndex& index,
                                              const tensorflow::NodeDef& node,
                                              std::string_view op);
absl::StatusOr<tensorflow::NodeDef*> InputOf(const GraphIndex& index,
                                             const tensorflow::NodeDef& node,
                                             int input);

// The Const that `node` reads, possibly behind Identity nodes.
absl::StatusOr<tensorflow::NodeDef*> ConstBehind(
    const GraphIndex& index, const tensorflow::NodeDef& node, int input);

void SetConst(const tensorflow::Tensor& value, tensorflow::NodeDef* node);

// A Const's values, to be changed in place and then written.
template <typename T>
struct ConstValues {
  tensorflow::NodeDef* node;
  tensorflow::Tensor tensor;
  absl::Span<T> values;

  // Of the matrix whose columns are the last dimension.
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

// Of the matrix whose columns are the last dimension: each column takes the
// place of the next one, and each row.
template <typename T>
void RotateColumns(absl::Span<T> values, int64_t columns) {
  for (size_t row = 0; row + columns <= values.size(); row += columns) {
    std::rotate(values.begin() + row, values.begin() + row + columns - 1,
                values.begin() + row + columns);
  }
}

template <typename T>
void RotateRows(absl::Span<T> values, int64_t columns) {
  std::rotate(values.begin(), values.end() - columns, values.end());
}

// The positions, in the order of their names, of "<letter>1", "<letter>2", …:
// order[0] is that of the first.
std::vector<int> SortedPositions(std::string_view letter, int count,
                                 std::string_view suffix);

}  // namespace requant

#endif  // REQUANT_TESTS_DEFECTS_GRAPH_EDITS_H_
