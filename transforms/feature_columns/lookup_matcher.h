#ifndef REQUANT_TRANSFORMS_FEATURE_COLUMNS_LOOKUP_MATCHER_H_
#define REQUANT_TRANSFORMS_FEATURE_COLUMNS_LOOKUP_MATCHER_H_

// One feature column's lookup in a table, as tf.estimator writes it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph_index.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/types.pb.h"
#include "transforms/layers/tensor_pattern.h"

namespace requant {

// How a categorical column turns a value into an id: the nodes between the two,
// such as one that hashes, or one that looks a word up in a vocabulary.
struct IdRule {
  NodeOutput values;
  NodeOutput ids;
  // The nodes that compute `ids` from `values`, each after those it reads.
  std::vector<tensorflow::NodeDef*> steps;
  // Equal for rules that give equal ids.
  std::string signature;
  // For people: "StringToHashBucketFast into 1000 buckets".
  std::string description;

  // Returns whether ids come from a hash, and so are never negative.
  bool hashes() const;
};

// Features with one value per record each, turned into the number of a table's
// row.
struct CategoricalColumn {
  // Placeholders of shape [?] or [?,1]: one, or those that are crossed.
  std::vector<tensorflow::NodeDef*> placeholders;
  bool has_second_dimension = false;
  // Equal for columns that give equal numbers for equal values.
  std::string signature;
  // For people: how values become numbers.
  std::string description;

  // Numbers that the graph computes for all records, int32 or int64 (of
  // bucketized and crossed columns); without a node when the following say how.
  NodeOutput ready_ids;
  tensorflow::DataType ready_type = tensorflow::DT_INT64;

  // How a value becomes the number; negative ones mean no row.
  IdRule rule;
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

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_FEATURE_COLUMNS_LOOKUP_MATCHER_H_
