#ifndef REQUANT_GRAPH_GRAPH_BODY_H_
#define REQUANT_GRAPH_GRAPH_BODY_H_

// The nodes of a graph or of a function, read in the same way. A graph names a
// tensor "node:2", where a function's body says "node:output_argument:0" or the
// name of one of its own arguments.

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "graph/op_catalog.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace requant {

// What an input names.
struct BodyTensor {
  enum Kind {
    // Nothing that exists, a control input, or several tensors at once.
    kUnknown,
    kNode,
    kArgument,
  };
  Kind kind = kUnknown;
  // The number of the node or of the function's argument.
  int32_t index = -1;
  // Which of the node's tensors, counted over all its outputs; 0 for an
  // argument.
  int output = 0;
};

class GraphBody {
 public:
  using Nodes = google::protobuf::RepeatedPtrField<tensorflow::NodeDef>;

  // All arguments must outlive this, and the nodes stay as they are. A name
  // that several nodes have means the first of them.
  GraphBody(const tensorflow::GraphDef& graph, OpCatalog* catalog);
  GraphBody(const tensorflow::FunctionDef& function, OpCatalog* catalog);

  const Nodes& nodes() const { return *nodes_; }
  // Returns null for a graph.
  const tensorflow::FunctionDef* function() const { return function_; }
  // Returns the function's name; "" for a graph.
  std::string_view name() const;

  // Returns what `input` names; never fails, whatever it is. A graph's ports
  // are not checked against the node's op.
  BodyTensor Find(std::string_view input) const;

  // Returns the name of the node or argument.
  const std::string& NameOf(const BodyTensor& tensor) const;

 private:
  void IndexNodes();
  BodyTensor FindOutput(int32_t node, std::string_view output) const;

  const Nodes* nodes_;
  const tensorflow::FunctionDef* function_ = nullptr;
  OpCatalog* catalog_;
  absl::flat_hash_map<std::string_view, int32_t> node_ids_;
  absl::flat_hash_map<std::string_view, int32_t> arguments_;
};

}  // namespace requant

#endif  // REQUANT_GRAPH_GRAPH_BODY_H_
