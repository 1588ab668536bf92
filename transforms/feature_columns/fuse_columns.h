#ifndef REQUANT_TRANSFORMS_FEATURE_COLUMNS_FUSE_COLUMNS_H_
#define REQUANT_TRANSFORMS_FEATURE_COLUMNS_FUSE_COLUMNS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.pb.h"
#include "transforms/feature_columns/feature_columns.h"
#include "transforms/layers/graph_builder.h"

namespace requant {

// Edits of a graph that simplifying and fusing feature columns have in common.
// All that nothing reads any more may be removed.
class FeatureColumnRewriter : public GraphBuilder {
 public:
  // Nodes named in `outputs` are kept under their names.
  FeatureColumnRewriter(GraphIndex* index,
                        const std::vector<std::string>& outputs);

  // These add a node under `name`, or one like it that is free, and return its
  // name.
  std::string AddIntegers(const std::string& name,
                          const std::vector<int32_t>& values);
  std::string AddInteger(const std::string& name, int32_t value);
  // Adds `tensor` with the shape `shape`.
  std::string AddReshape(const std::string& name, const std::string& tensor,
                         const std::vector<int32_t>& shape,
                         tensorflow::DataType type);
  std::string AddPlaceholder(const std::string& name, tensorflow::DataType type,
                             const std::vector<int64_t>& shape);

  // Makes everything that reads the lookup read `tensor`, and removes what is
  // not needed any more.
  void Replace(const TableLookup& lookup, const std::string& tensor);
};

// The inputs of a graph with fused columns: all normalised numbers of a record,
// [batch, numbers], and a pair (column, bucket) for each of its categories,
// [batch * columns, 2].
inline constexpr char kNumericPlaceholder[] = "new_numeric_placeholder";
inline constexpr char kCategoricalPlaceholder[] = "new_categorical_placeholder";

// One constant made of several tables.
struct StackedTable {
  std::string node;
  int tables;
  int64_t rows;
  int64_t width;
};

// Stacks, for each node that joins columns, tables of one size into one
// constant that a GatherNd reads, and replaces the raw placeholders by the two
// above. The graph must have neither. Buckets take the place of strings, so
// there is no value for a missing one.
absl::StatusOr<std::vector<StackedTable>> FuseColumns(
    const FeatureColumns& columns, FeatureColumnRewriter* rewriter);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_FEATURE_COLUMNS_FUSE_COLUMNS_H_
