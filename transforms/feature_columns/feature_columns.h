#ifndef REQUANT_TRANSFORMS_FEATURE_COLUMNS_FEATURE_COLUMNS_H_
#define REQUANT_TRANSFORMS_FEATURE_COLUMNS_FEATURE_COLUMNS_H_

// The feature columns of a frozen estimator graph: a column's lookup in a
// table, as tf.estimator writes it (lookup_matcher.cc), all columns, found by
// what their nodes compute and not by names (feature_columns.cc), and what is
// put in their place (fuse_columns.cc, fuse_feature_columns.cc).

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/types.pb.h"
#include "transforms/layers/graph_builder.h"
#include "transforms/layers/tensor_pattern.h"
#include "transforms/transform.h"

namespace requant {

// Features with one value per record each, turned into the number of a table's
// row.
struct CategoricalColumn {
  // Placeholders of shape [?] or [?,1]: one, or those that are crossed.
  std::vector<tensorflow::NodeDef*> placeholders;
  bool has_second_dimension = false;
  // Equal for columns that give equal numbers for equal values.
  std::string signature;
  // For people: "StringToHashBucketFast into 1000 buckets".
  std::string description;

  // The numbers, int32 or int64.
  NodeOutput ids;
  tensorflow::DataType type = tensorflow::DT_INT64;
  // The following are unset where the graph computes numbers for all records
  // (of bucketized and crossed columns).
  // What gives the values that are not missing, and the nodes that make `ids`
  // of them, each after those it reads; negative ones mean no row.
  const tensorflow::NodeDef* values = nullptr;
  std::vector<tensorflow::NodeDef*> steps;
  // Whether they come from a hash, and so are never negative.
  bool hashes = false;
  // Records with this value read no row: they get zeros.
  NodeOutput missing;
  // The constant that `missing` is, or is cast from.
  tensorflow::NodeDef* missing_constant = nullptr;
};

// The rows that a column's values mean: [batch, width].
struct TableLookup {
  int column = 0;
  // The Select that puts zeros where a value is missing.
  tensorflow::NodeDef* root = nullptr;
  // The constant table, [rows, width].
  tensorflow::NodeDef* table = nullptr;
  int64_t rows = 0;
  int64_t width = 0;
  tensorflow::DataType type = tensorflow::DT_FLOAT;
  // `root` and the Reshapes of it that change nothing.
  std::vector<tensorflow::NodeDef*> aliases;
};

struct MatchedLookup {
  // Without a column's number and aliases.
  TableLookup lookup;
  CategoricalColumn column;
};

// Returns the lookup that ends at `root`, a Select. If there is none, *problem
// says why, or stays empty when `root` is nothing like a lookup.
std::optional<MatchedLookup> MatchLookup(const GraphIndex& index,
                                         tensorflow::NodeDef* root,
                                         std::string* problem);

// Returns the sizes of a Placeholder's dimensions, -1 for unknown ones; nothing
// when not even their number is known.
std::optional<std::vector<int64_t>> PlaceholderShape(
    const tensorflow::NodeDef& node);

// Matches one value per record: a Placeholder, under the name "placeholder",
// with a second dimension added ("expanded") if it has none.
TensorPattern DenseValues();

// Numbers, shifted and scaled by constants.
struct NumericColumn {
  // A float Placeholder of shape [?] or [?,width].
  tensorflow::NodeDef* placeholder = nullptr;
  int64_t width = 1;
  // The sign, - / * or +, and the constant of each step.
  std::vector<std::pair<std::string, float>> steps;
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
  // Says of what looks like a column and was not taken for one why.
  std::vector<std::string> left;

  bool empty() const { return lookups.empty() && numeric_reads.empty(); }
};

FeatureColumns FindFeatureColumns(const GraphIndex& index);

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
  // Adds `tensor` with the shape `shape`.
  std::string AddReshape(const std::string& name, const std::string& tensor,
                         const std::vector<int32_t>& shape,
                         tensorflow::DataType type);

  // Makes everything that reads the lookup read `tensor`, and removes what is
  // not needed any more.
  void Replace(const TableLookup& lookup, const std::string& tensor);
};

// The inputs of a graph with fused columns: all normalised numbers of a record,
// [batch, numbers], and a pair (column, bucket) for each of its categories,
// [batch * columns, 2].
inline constexpr char kNumericPlaceholder[] = "new_numeric_placeholder";
inline constexpr char kCategoricalPlaceholder[] = "new_categorical_placeholder";

// Stacks, for each node that joins columns, tables of one size into one
// constant that a GatherNd reads, and replaces the raw placeholders by the two
// above. The graph must have neither. Buckets take the place of strings, so
// there is no value for a missing one. Returns a note on each constant.
absl::StatusOr<std::vector<std::string>> FuseColumns(
    const FeatureColumns& columns, FeatureColumnRewriter* rewriter);

// Is the transform fuse_feature_columns, with its parameters in `context`:
// changes *graph in place and returns whether there was anything to do; a graph
// without columns stays as it is. The notes say what was done: the columns in
// their order, their raw placeholders, what preprocessing has to compute. The
// warnings say what was left, and why. Fails on graphs that are none (repeated
// names).
absl::StatusOr<bool> FuseFeatureColumns(TransformContext& context,
                                        tensorflow::GraphDef* graph);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_FEATURE_COLUMNS_FEATURE_COLUMNS_H_
