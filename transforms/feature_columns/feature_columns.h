#ifndef REQUANT_TRANSFORMS_FEATURE_COLUMNS_FEATURE_COLUMNS_H_
#define REQUANT_TRANSFORMS_FEATURE_COLUMNS_FEATURE_COLUMNS_H_

// The feature columns of a frozen estimator graph, found by what their nodes
// compute. Names play no part.

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph_index.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/types.pb.h"
#include "transforms/feature_columns/lookup_matcher.h"
#include "transforms/layers/tensor_pattern.h"

namespace requant {

// x op value, where op is Sub, RealDiv, Mul or Add.
struct NormalisationStep {
  std::string op;
  float value;

  friend bool operator==(const NormalisationStep& a,
                         const NormalisationStep& b) {
    return a.op == b.op && a.value == b.value;
  }
};

// Numbers, shifted and scaled by constants.
struct NumericColumn {
  // A float Placeholder of shape [?] or [?,width].
  tensorflow::NodeDef* placeholder = nullptr;
  int64_t width = 1;
  std::vector<NormalisationStep> steps;
};

// Where a numeric column is read.
struct NumericRead {
  int column = 0;
  tensorflow::NodeDef* reader = nullptr;
  int input = 0;
  // The normalised numbers, [batch, width], before Reshapes that change
  // nothing.
  NodeOutput value;
};

// Something that looks like a column and was not taken for one.
struct LeftColumn {
  std::string node;
  std::string reason;
};

struct FeatureColumns {
  // In the order in which the graph joins them: as the inputs of the deep part
  // have them, then those that only the wide part reads, then any others.
  std::vector<CategoricalColumn> categorical;
  std::vector<NumericColumn> numeric;
  std::vector<TableLookup> lookups;
  std::vector<NumericRead> numeric_reads;
  // ConcatV2 nodes along the last dimension, and AddN nodes, that read columns.
  std::vector<tensorflow::NodeDef*> concats;
  std::vector<tensorflow::NodeDef*> sums;
  std::vector<LeftColumn> left;

  bool empty() const { return lookups.empty() && numeric_reads.empty(); }
};

FeatureColumns FindFeatureColumns(const GraphIndex& index);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_FEATURE_COLUMNS_FEATURE_COLUMNS_H_
