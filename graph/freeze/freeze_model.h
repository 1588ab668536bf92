#ifndef REQUANT_GRAPH_FREEZE_FREEZE_MODEL_H_
#define REQUANT_GRAPH_FREEZE_FREEZE_MODEL_H_

// A trained model as its files have it: a graph, and where the values of its
// variables are.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace requant {

// Which files. Either `saved_model`, or `meta_graph`, or `graph`; the latter
// two with a `checkpoint`.
struct ModelFiles {
  // A SavedModel directory, and the tags of the graph in it.
  std::string saved_model;
  std::set<std::string> tags;
  // A MetaGraphDef, such as TensorFlow's model.ckpt-1.meta.
  std::string meta_graph;
  // A GraphDef.
  std::string graph;
  // The checkpoint without its endings; by default that of the SavedModel, or
  // the one that `meta_graph` is named after.
  std::string checkpoint;
  // A SaverDef, which names the node that restores variables.
  std::string saver;
  // That node's name, by default what the model says or "save/restore_all".
  std::string restore_op;
};

struct FreezeInput {
  tensorflow::GraphDef graph;
  // Prefix of the checkpoint; there may be none.
  std::string checkpoint;
  // The node that restores the variables; "" when there is none.
  std::string restore_op;
  // The nodes that prepare the model when it is loaded.
  std::vector<std::string> initializers;
  // Files that nodes hold the names of, by node.
  std::map<std::string, std::string> assets;
  // The nodes that the serving signature returns.
  std::vector<std::string> outputs;
};

// The files that exist of those the model consists of; none of them may be
// overwritten.
std::vector<std::string> FilesOf(const ModelFiles& files);

absl::StatusOr<FreezeInput> ReadModel(const ModelFiles& files);

}  // namespace requant

#endif  // REQUANT_GRAPH_FREEZE_FREEZE_MODEL_H_
