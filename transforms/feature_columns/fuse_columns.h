#ifndef REQUANT_TRANSFORMS_FEATURE_COLUMNS_FUSE_COLUMNS_H_
#define REQUANT_TRANSFORMS_FEATURE_COLUMNS_FUSE_COLUMNS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "transforms/feature_columns/feature_column_rewriter.h"
#include "transforms/feature_columns/feature_columns.h"

namespace requant {

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
