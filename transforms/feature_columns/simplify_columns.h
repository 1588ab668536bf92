#ifndef REQUANT_TRANSFORMS_FEATURE_COLUMNS_SIMPLIFY_COLUMNS_H_
#define REQUANT_TRANSFORMS_FEATURE_COLUMNS_SIMPLIFY_COLUMNS_H_

#include "absl/status/status.h"
#include "transforms/feature_columns/feature_column_rewriter.h"
#include "transforms/feature_columns/feature_columns.h"

namespace requant {

// Makes each lookup one GatherV2, still fed by the raw placeholders, and takes
// away Reshapes of numeric columns. Exact for every input: records whose value
// is missing read a row of zeros, which is added to the table.
absl::Status SimplifyColumns(const FeatureColumns& columns,
                             FeatureColumnRewriter* rewriter);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_FEATURE_COLUMNS_SIMPLIFY_COLUMNS_H_
