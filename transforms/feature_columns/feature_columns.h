#ifndef REQUANT_TRANSFORMS_FEATURE_COLUMNS_FEATURE_COLUMNS_H_
#define REQUANT_TRANSFORMS_FEATURE_COLUMNS_FEATURE_COLUMNS_H_

// Finds the feature columns of a frozen estimator graph by what their nodes
// compute, not by names (feature_columns.cc), with their table lookups as
// tf.estimator writes them (lookup_matcher.cc), and replaces them
// (fuse_columns.cc, fuse_feature_columns.cc).

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

// One or more features with one value per record, turned into the number of a
// table row.
struct CategoricalColumn {
  // Placeholders of shape [?] or [?,1]: either one, or all that are crossed.
  std::vector<tensorflow::NodeDef*> placeholders;
  bool has_second_dimension = false;
  // Is equal for columns that give equal numbers for equal values.
  std::string signature;
  // A readable form: "StringToHashBucketFast into 1000 buckets".
  std::string description;

  // The numbers, int32 or int64.
  NodeOutput ids;
  tensorflow::DataType type = tensorflow::DT_INT64;
  // The rest is unset for bucketized and crossed columns, whose numbers the
  // graph computes for all records. `values` gives the values that are not
  // missing; `steps` are the nodes that turn them into `ids`, each after those
  // it reads. Negative ids mean no row.
  const tensorflow::NodeDef* values = nullptr;
  std::vector<tensorflow::NodeDef*> steps;
  // Whether the ids come from a hash and so are never negative.
  bool hashes = false;
  // Records with this value read no row and get zeros.
  NodeOutput missing;
  // The constant that `missing` is or is cast from.
  tensorflow::NodeDef* missing_constant = nullptr;
};

// The table rows for a column's values: [batch, width].
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
  // Its column number and aliases are unset.
  TableLookup lookup;
  CategoricalColumn column;
};

// Returns the lookup that ends at `root`, a Select. If there is none, *problem
// says why, or stays empty if `root` does not resemble a lookup.
std::optional<MatchedLookup> MatchLookup(const GraphIndex& index,
                                         tensorflow::NodeDef* root,
                                         std::string* problem);

// Returns the sizes of a Placeholder's dimensions, -1 for unknown ones, or
// nullopt if not even their number is known.
std::optional<std::vector<int64_t>> PlaceholderShape(
    const tensorflow::NodeDef& node);

// Matches one value per record: a Placeholder (named "placeholder") with a
// second dimension added ("expanded") if it has none.
TensorPattern DenseValues();

// Numbers that are shifted and scaled by constants.
struct NumericColumn {
  // A float Placeholder of shape [?] or [?,width].
  tensorflow::NodeDef* placeholder = nullptr;
  int64_t width = 1;
  // The operator (- / * or +) and the constant of each step.
  std::vector<std::pair<std::string, float>> steps;
};

// One place where a numeric column is read.
struct NumericRead {
  int column = 0;
  tensorflow::NodeDef* reader = nullptr;
  int input = 0;
  // The normalised numbers, [batch, width], before any Reshapes without effect.
  NodeOutput value;
};

struct FeatureColumns {
  // In the order in which the graph joins them: first as in the inputs of the
  // deep part, then those that only the wide part reads, then any others.
  std::vector<CategoricalColumn> categorical;
  std::vector<NumericColumn> numeric;
  std::vector<TableLookup> lookups;
  std::vector<NumericRead> numeric_reads;
  // The AddN nodes, and ConcatV2 along the last dimension, that read columns.
  std::vector<tensorflow::NodeDef*> concats;
  std::vector<tensorflow::NodeDef*> sums;
  // Reasons why things that look like columns were not recognized as columns.
  std::vector<std::string> left;

  bool empty() const { return lookups.empty() && numeric_reads.empty(); }
};

FeatureColumns FindFeatureColumns(const GraphIndex& index);

// Graph edits shared by simplifying and fusing feature columns. Everything that
// is no longer read may be removed.
class FeatureColumnRewriter : public GraphBuilder {
 public:
  // Nodes named in `outputs` keep their names.
  FeatureColumnRewriter(GraphIndex* index,
                        const std::vector<std::string>& outputs);

  // These add a node called `name`, or a similar free name, and return that
  // name.
  std::string AddIntegers(const std::string& name,
                          const std::vector<int32_t>& values);
  // Adds a Reshape of `tensor` to `shape`.
  std::string AddReshape(const std::string& name, const std::string& tensor,
                         const std::vector<int32_t>& shape,
                         tensorflow::DataType type);

  // Makes all readers of the lookup read `tensor`, and removes what is no
  // longer needed.
  void Replace(const TableLookup& lookup, const std::string& tensor);
};

// The inputs of a graph with fused columns: all normalised numbers of each
// record, [batch, numbers], and a pair (column, bucket) for each of its
// categories, [batch * columns, 2].
inline constexpr char kNumericPlaceholder[] = "new_numeric_placeholder";
inline constexpr char kCategoricalPlaceholder[] = "new_categorical_placeholder";

// For each node that joins columns, stacks tables of one size into one constant
// that a GatherNd reads; replaces the raw placeholders by the two above, which
// the graph must not have yet. Since buckets replace strings, missing values
// cannot be represented. Returns a note on each constant.
absl::StatusOr<std::vector<std::string>> FuseColumns(
    const FeatureColumns& columns, FeatureColumnRewriter* rewriter);

// Implements the transform fuse_feature_columns, with its parameters in
// `context`: changes *graph in place and returns whether there was anything to
// do; a graph without columns is unchanged. The notes list the columns in
// order, their raw placeholders, and what preprocessing has to compute. The
// warnings say what was left, and why. Fails on invalid graphs (repeated
// names).
absl::StatusOr<bool> FuseFeatureColumns(TransformContext& context,
                                        tensorflow::GraphDef* graph);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_FEATURE_COLUMNS_FEATURE_COLUMNS_H_
