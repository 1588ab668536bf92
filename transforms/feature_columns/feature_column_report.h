#ifndef REQUANT_TRANSFORMS_FEATURE_COLUMNS_FEATURE_COLUMN_REPORT_H_
#define REQUANT_TRANSFORMS_FEATURE_COLUMNS_FEATURE_COLUMN_REPORT_H_

// What people are told of the feature columns of a graph.

#include <string>
#include <vector>

#include "transforms/feature_columns/feature_columns.h"
#include "transforms/feature_columns/fuse_columns.h"

namespace requant {

// A line for each column. Fused, lines are numbered as preprocessed records
// have the columns.
std::vector<std::string> DescribeColumns(const FeatureColumns& columns,
                                         bool fused);

// What preprocessed records must look like, and the constants made.
std::vector<std::string> DescribeFusion(
    const FeatureColumns& columns, const std::vector<StackedTable>& tables);

// "(x - 1) / 20"; "x" without steps.
std::string DescribeNormalisation(const NumericColumn& column);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_FEATURE_COLUMNS_FEATURE_COLUMN_REPORT_H_
