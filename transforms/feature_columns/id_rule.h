#ifndef REQUANT_TRANSFORMS_FEATURE_COLUMNS_ID_RULE_H_
#define REQUANT_TRANSFORMS_FEATURE_COLUMNS_ID_RULE_H_

// How a categorical column turns a value into an id: the nodes between the two,
// such as one that hashes, or one that looks a word up in a vocabulary.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "transforms/layers/tensor_pattern.h"

namespace requant {

struct IdRule {
  NodeOutput values;
  NodeOutput ids;
  // The nodes that compute `ids` from `values`, each after those it reads.
  std::vector<tensorflow::NodeDef*> steps;
  // Equal for rules that give equal ids.
  std::string signature;
  // For people: "StringToHashBucketFast into 1000 buckets".
  std::string description;

  // Whether ids come from a hash, and so are never negative.
  bool hashes() const;
};

// Reads the nodes between `values` and `ids`. Fails, naming the node, where one
// is met that does not work on each value by itself, or that needs another
// input of the graph.
absl::StatusOr<IdRule> ReadIdRule(const GraphIndex& index, NodeOutput values,
                                  NodeOutput ids);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_FEATURE_COLUMNS_ID_RULE_H_
