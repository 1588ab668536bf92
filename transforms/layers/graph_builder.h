#ifndef REQUANT_TRANSFORMS_LAYERS_GRAPH_BUILDER_H_
#define REQUANT_TRANSFORMS_LAYERS_GRAPH_BUILDER_H_

// Adding nodes to a graph and taking away what they replace.

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.pb.h"

namespace requant {

using AttributeTypes =
    std::vector<std::pair<const char*, tensorflow::DataType>>;

// Sets attributes that are types.
void SetTypes(const AttributeTypes& types, tensorflow::NodeDef* node);

tensorflow::NodeDef MakeNode(const std::string& name, const std::string& op,
                             const std::vector<std::string>& inputs,
                             const AttributeTypes& types);

class GraphBuilder {
 public:
  // `outputs` are the names of the graph's outputs, which are never removed.
  GraphBuilder(GraphIndex* index, const std::vector<std::string>& outputs);

  GraphIndex& index() { return *index_; }
  const GraphIndex& index() const { return *index_; }

  // Each adds a node, under the given name or a free one like it, and returns
  // the name.
  absl::StatusOr<std::string> Add(tensorflow::NodeDef node);
  absl::StatusOr<std::string> AddConst(const std::string& name,
                                       const tensorflow::Tensor& value);
  absl::StatusOr<std::string> AddScalar(const std::string& name, float value);

  void AddOutput(const std::string& node) { outputs_.insert(node); }
  bool IsOutput(const std::string& node) const {
    return outputs_.contains(node);
  }

  // Gives a node other inputs, and removes what fed it and is read no more, as
  // RemoveUnread does.
  absl::Status ReplaceInputs(tensorflow::NodeDef* node,
                             std::vector<std::string> inputs);

  // Removes a node that nothing reads and that is no output, and then what only
  // fed it as far as that is constants and nodes that pass values on. A name
  // that is not in the graph is fine.
  absl::Status RemoveUnread(const std::string& name);

 private:
  absl::Status RemoveUnreadFeeders(std::vector<std::string> names);

  GraphIndex* const index_;
  absl::flat_hash_set<std::string> outputs_;
};

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_LAYERS_GRAPH_BUILDER_H_
