#ifndef REQUANT_GRAPH_SAVED_MODEL_SAVED_MODEL_REFERENCES_H_
#define REQUANT_GRAPH_SAVED_MODEL_SAVED_MODEL_REFERENCES_H_

// What the other parts of a MetaGraph (signatures, saver, assets, objects) name
// in its graph, and whether a new graph still has it.

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace requant {

class SavedModelReferences {
 public:
  // Keeps what `meta` names and `graph` has. `meta` may come without its graph.
  SavedModelReferences(const tensorflow::MetaGraphDef& meta,
                       const tensorflow::GraphDef& graph);

  // Returns the nodes that feed signatures, sorted.
  std::vector<std::string> inputs() const;
  // Returns all other nodes that are named, sorted.
  std::vector<std::string> outputs() const;

  // Fails when `graph` lacks a node or a function, or has a function with other
  // arguments: the model could not be loaded or called as before.
  absl::Status Check(const tensorflow::GraphDef& graph) const;

 private:
  void AddNode(const std::string& tensor, const std::string& owner);
  void AddSignatures(const tensorflow::MetaGraphDef& meta);
  void AddObjects(const tensorflow::MetaGraphDef& meta);
  void KeepThoseOf(const tensorflow::GraphDef& graph);

  // What names it, by what is named.
  std::map<std::string, std::string> nodes_;
  std::map<std::string, std::string> input_nodes_;
  // The functions that objects in programs call, with their arguments.
  std::map<std::string, tensorflow::OpDef> functions_;
};

// Returns the names of the signatures for users, sorted.
std::vector<std::string> SignatureNames(const tensorflow::MetaGraphDef& meta);

// Fails when there is none of that name.
absl::Status CheckSignature(const tensorflow::MetaGraphDef& meta,
                            const std::string& name,
                            const std::string& directory);

}  // namespace requant

#endif  // REQUANT_GRAPH_SAVED_MODEL_SAVED_MODEL_REFERENCES_H_
