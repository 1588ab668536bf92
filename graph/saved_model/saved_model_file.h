#ifndef REQUANT_GRAPH_SAVED_MODEL_SAVED_MODEL_FILE_H_
#define REQUANT_GRAPH_SAVED_MODEL_SAVED_MODEL_FILE_H_

// A SavedModel: where it is, whether the values of its variables are there, its
// saved_model.pb (or .pbtxt) with another graph, of which all else stays as it
// is, to the byte, and what this else needs of the graph.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace requant {

class SavedModelFile {
 public:
  // Reads the file of a SavedModel directory and chooses among its graphs as
  // ReadSavedModel does.
  static absl::StatusOr<SavedModelFile> Read(
      const std::string& directory, const std::set<std::string>& tags = {});

  // Returns "saved_model.pb" or "saved_model.pbtxt".
  const std::string& name() const { return name_; }

  // Returns the chosen MetaGraphDef, without its graph once that was taken.
  const tensorflow::MetaGraphDef& meta() const { return meta_; }

  // Hands the graph over.
  tensorflow::GraphDef TakeGraph();

  // Returns the graph in binary: the file's own bytes, if they are binary.
  const std::string& graph_bytes() const { return graph_bytes_; }

  // Returns the content of a file of this kind in which the chosen graph is
  // `graph`, serialized as `graph_bytes`. Ops that the graph has come to use
  // are added to the list of ops that the MetaGraph carries, for which
  // LoadTensorFlow() must have been called; other parts and other MetaGraphs
  // keep their bytes. Fails beyond 2 GB.
  absl::StatusOr<std::string> WithGraph(const tensorflow::GraphDef& graph,
                                        const std::string& graph_bytes) const;

 private:
  SavedModelFile() = default;

  std::string path_;
  std::string name_;
  bool is_text_ = false;
  // In binary, whatever the file is.
  std::string content_;
  // Which of the MetaGraphs in it.
  int chosen_ = 0;
  tensorflow::MetaGraphDef meta_;
  std::string graph_bytes_;
};

// Returns the SavedModel directory that `path` means: that directory or its
// saved_model.pb itself, or one that has the SavedModel in it as model servers
// lay it out ("saved_model", "1", "saved_model/1"). Several versions are an
// error that lists them.
absl::StatusOr<std::string> FindSavedModel(const std::string& path);

// Returns what people call the model in this directory: the name of the folder,
// without a version and "saved_model" below it. "gpt-j" for
// "models/gpt-j/saved_model/1".
std::string SavedModelName(const std::string& directory);

// Fails when `graph` has variables and the directory lacks their values, or a
// part of them. Reads the checkpoint's index only.
absl::Status CheckVariables(const std::string& directory,
                            const tensorflow::GraphDef& graph);

// What the other parts of a MetaGraph (signatures, saver, assets, objects) name
// in its graph, and whether a new graph still has it.
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

#endif  // REQUANT_GRAPH_SAVED_MODEL_SAVED_MODEL_FILE_H_
