#ifndef REQUANT_GRAPH_SAVED_MODEL_SAVED_MODEL_FILE_H_
#define REQUANT_GRAPH_SAVED_MODEL_SAVED_MODEL_FILE_H_

// A SavedModel: its location, whether its variables' values are there, its
// saved_model.pb (or .pbtxt) with a new graph and all else unchanged to the
// byte, and what the rest needs of the graph.

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
  // Reads a SavedModel directory's main file and chooses among its graphs as
  // ReadSavedModel does.
  static absl::StatusOr<SavedModelFile> Read(
      const std::string& directory, const std::set<std::string>& tags = {});

  // Returns "saved_model.pb" or "saved_model.pbtxt".
  const std::string& name() const { return name_; }

  // Returns the chosen MetaGraphDef, without its graph after TakeGraph().
  const tensorflow::MetaGraphDef& meta() const { return meta_; }

  // Moves the graph out.
  tensorflow::GraphDef TakeGraph();

  // Returns the graph in binary: the file's own bytes if that is binary.
  const std::string& graph_bytes() const { return graph_bytes_; }

  // Returns the content of a file of this kind in which the chosen graph is
  // `graph`, serialized as `graph_bytes`. New ops of the graph are added to the
  // MetaGraph's list of ops, which requires a previous LoadTensorFlow(). Other
  // parts and other MetaGraphs keep their bytes. Fails beyond 2 GB.
  absl::StatusOr<std::string> WithGraph(const tensorflow::GraphDef& graph,
                                        const std::string& graph_bytes) const;

 private:
  SavedModelFile() = default;

  std::string path_;
  std::string name_;
  bool is_text_ = false;
  // The binary content, whatever the file's format is.
  std::string content_;
  // The index of the chosen MetaGraph.
  int chosen_ = 0;
  tensorflow::MetaGraphDef meta_;
  std::string graph_bytes_;
};

// Adds the definitions of ops that `graph` uses and the list lacks, sorted by
// name. Returns whether there were any. Ops unknown to TensorFlow are left out,
// because their definitions come with their own library. Requires a previous
// LoadTensorFlow().
bool AddOps(const tensorflow::GraphDef& graph,
            tensorflow::MetaGraphDef::MetaInfoDef* info);

// Removes attributes that have their default values, in functions too, as
// TensorFlow's exporter does: older versions may not know them. Requires a
// previous LoadTensorFlow().
void StripDefaultValues(tensorflow::GraphDef* graph);

// Returns the tensors of a dense, sparse or composite value.
std::vector<std::string> TensorsOf(const tensorflow::TensorInfo& info);

// Returns the SavedModel directory that `path` refers to: `path` itself, the
// directory of a saved_model.pb, or a subdirectory where model servers put the
// SavedModel ("saved_model", "1", "saved_model/1"). Several versions are an
// error that lists them.
absl::StatusOr<std::string> FindSavedModel(const std::string& path);

// Returns the usual name of the model in this directory: the name of the folder
// above any version and "saved_model", which is "gpt-j" for
// "models/gpt-j/saved_model/1".
std::string SavedModelName(const std::string& directory);

// Fails if `graph` has variables and the directory lacks any of their values.
// Reads only the checkpoint's index.
absl::Status CheckVariables(const std::string& directory,
                            const tensorflow::GraphDef& graph);

// What the other parts of a MetaGraph (signatures, saver, assets, objects)
// reference in its graph, and whether a new graph still has it.
class SavedModelReferences {
 public:
  // Records what `meta`, perhaps without its graph, references in `graph`.
  SavedModelReferences(const tensorflow::MetaGraphDef& meta,
                       const tensorflow::GraphDef& graph);

  // Returns the nodes that feed signatures, sorted.
  std::vector<std::string> inputs() const;
  // Returns all other referenced nodes, sorted.
  std::vector<std::string> outputs() const;

  // Fails if `graph` lacks a node or a function, or has a function with other
  // arguments, because the model could not be loaded or called as before.
  absl::Status Check(const tensorflow::GraphDef& graph) const;

 private:
  void AddNode(const std::string& tensor, const std::string& owner);
  void AddSignatures(const tensorflow::MetaGraphDef& meta);
  void AddObjects(const tensorflow::MetaGraphDef& meta);
  void KeepThoseOf(const tensorflow::GraphDef& graph);

  // What references each node.
  std::map<std::string, std::string> nodes_;
  std::map<std::string, std::string> input_nodes_;
  // The functions that objects call from programs, with their arguments.
  std::map<std::string, tensorflow::OpDef> functions_;
};

// Returns the names of the user-visible signatures, sorted.
std::vector<std::string> SignatureNames(const tensorflow::MetaGraphDef& meta);

// Returns the name of the signature that is meant by `wanted`, which if empty
// is the only one or serving_default. The model may not have it.
std::string MeantSignature(const tensorflow::MetaGraphDef& meta,
                           const std::string& wanted);

// Fails if there is no user-visible signature with that name.
absl::Status CheckSignature(const tensorflow::MetaGraphDef& meta,
                            const std::string& name,
                            const std::string& directory);

}  // namespace requant

#endif  // REQUANT_GRAPH_SAVED_MODEL_SAVED_MODEL_FILE_H_
