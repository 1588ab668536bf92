#ifndef REQUANT_TRANSFORMS_LAYERS_GRAPH_BUILDER_H_
#define REQUANT_TRANSFORMS_LAYERS_GRAPH_BUILDER_H_

// Adds nodes to a graph and removes what they replace.

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.pb.h"

namespace requant {

using AttributeTypes =
    std::vector<std::pair<const char*, tensorflow::DataType>>;

// Returns the names of the nodes that `node` reads.
std::vector<std::string> ProducersOf(const tensorflow::NodeDef& node);

// Sets attributes whose values are types.
void SetTypes(const AttributeTypes& types, tensorflow::NodeDef* node);

// Turns `node`, whose inputs are set separately, into another op.
void BecomeOp(const std::string& op, const AttributeTypes& types,
              tensorflow::NodeDef* node);

tensorflow::NodeDef MakeNode(const std::string& name, const std::string& op,
                             const std::vector<std::string>& inputs,
                             const AttributeTypes& types);

// Returns whether a node is a constant or passes values on.
bool IsConstantOrPassesOn(const tensorflow::NodeDef& node);

class GraphBuilder {
 public:
  // `outputs` are the names of the graph's outputs, which are never removed.
  // `may_go` decides which nodes may be removed along with their last reader.
  GraphBuilder(
      GraphIndex* index, const std::vector<std::string>& outputs,
      bool (*may_go)(const tensorflow::NodeDef&) = IsConstantOrPassesOn);

  GraphIndex& index() { return *index_; }
  const GraphIndex& index() const { return *index_; }

  // Each adds a node under the given name, which must not be empty, or a
  // similar free name, and returns the name.
  std::string Add(tensorflow::NodeDef node);
  std::string AddNode(const std::string& name, const std::string& op,
                      const std::vector<std::string>& inputs,
                      const AttributeTypes& types);
  std::string AddConst(const std::string& name,
                       const tensorflow::Tensor& value);
  std::string AddScalar(const std::string& name, float value);

  void AddOutput(const std::string& node) { outputs_.insert(node); }
  bool IsOutput(const std::string& node) const {
    return outputs_.contains(node);
  }

  // Gives a node other inputs and removes former ones that are no longer read.
  void ReplaceInputs(tensorflow::NodeDef* node,
                     std::vector<std::string> inputs);

  // Removes a node if it is unread and no output, and then those that fed it
  // and are no longer read. Ignores a name that is not in the graph.
  void RemoveUnread(const std::string& name);

  // Removes those of the nodes `names` that are unread, are no outputs and may
  // go, and then likewise those that fed them.
  void RemoveUnreadFeeders(std::vector<std::string> names);

 private:
  GraphIndex* const index_;
  absl::flat_hash_set<std::string> outputs_;
  bool (*const may_go_)(const tensorflow::NodeDef&);
};

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_LAYERS_GRAPH_BUILDER_H_
