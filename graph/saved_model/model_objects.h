#ifndef REQUANT_GRAPH_SAVED_MODEL_MODEL_OBJECTS_H_
#define REQUANT_GRAPH_SAVED_MODEL_MODEL_OBJECTS_H_

// Describes the objects that Python's tf.saved_model.load makes of a
// SavedModel.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow/core/protobuf/saved_object_graph.pb.h"
#include "tensorflow/core/protobuf/trackable_object_graph.pb.h"

namespace requant {

struct ModelObjectsOptions {
  // What each key computes, named by tensors of the new graph.
  std::map<std::string, tensorflow::SignatureDef> signatures;
  // The node that fills each table, by the table's node.
  std::map<std::string, std::string> initializers;
  // The indices of asset files, by the nodes that hold their names.
  std::map<std::string, int> assets;
  // Functions share constants of at least this size; others are copied.
  int64_t least_shared_bytes = 512;
};

struct ModelObjects {
  tensorflow::SavedObjectGraph graph;
  // The part of the objects that a checkpoint has.
  tensorflow::TrackableObjectGraph checkpoint;
};

// Returns the name that a checkpoint has for the value of a variable, given the
// name of its VarHandleOp. Python takes the part before the dot for the name of
// an object.
inline std::string CheckpointKey(const std::string& variable) {
  return variable + "/.ATTRIBUTES/VARIABLE_VALUE";
}

// Returns the signatures of the SavedModel `source`, and those functions among
// the attributes of its object that its signatures call, as functions of
// `graph`, to whose library they are added: with their names, arguments and
// results in the original's structure, and with shared variables, tables and
// large constants. Returns nothing if the original has no objects or if it is
// not known how they correspond to the graph. Call LoadTensorFlow() first.
absl::StatusOr<std::optional<ModelObjects>> AddModelObjects(
    const tensorflow::MetaGraphDef& source, const ModelObjectsOptions& options,
    tensorflow::GraphDef* graph);

}  // namespace requant

#endif  // REQUANT_GRAPH_SAVED_MODEL_MODEL_OBJECTS_H_
