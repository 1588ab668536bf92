#ifndef REQUANT_GRAPH_SAVED_MODEL_GRAPH_FUNCTION_H_
#define REQUANT_GRAPH_SAVED_MODEL_GRAPH_FUNCTION_H_

// Makes functions of parts of a graph.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/op_catalog.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace requant {

// What a function computes.
struct GraphPart {
  // The function's name.
  std::string name;
  // The arguments in order: tensors that are first outputs of nodes.
  std::vector<std::string> inputs;
  // The results in order: tensors.
  std::vector<std::string> outputs;
  // Nodes that run in every call. If there are any, the last result is a 1 that
  // is returned after they ran.
  std::vector<std::string> effects;
};

struct GraphFunction {
  tensorflow::FunctionDef definition;
  // The nodes whose first outputs are the arguments after those of
  // GraphPart::inputs.
  std::vector<std::string> captured;
};

class GraphFunctionMaker {
 public:
  // `graph` must outlive this and must not change. Nodes for which `captures`
  // is true are not copied into functions, which take their values as further
  // arguments. Call LoadTensorFlow() first.
  GraphFunctionMaker(const tensorflow::GraphDef& graph,
                     std::function<bool(const tensorflow::NodeDef&)> captures);

  // Fails, naming it, if a node is missing or its op is unknown.
  absl::StatusOr<GraphFunction> Make(const GraphPart& part);

  // Returns the node of the graph with that name, or fails.
  absl::StatusOr<const tensorflow::NodeDef*> Find(std::string_view node) const;

 private:
  // A function that is being made.
  struct Body {
    GraphFunction function;
    absl::flat_hash_set<std::string_view> nodes;
    // The names of arguments by the nodes that they stand for.
    absl::flat_hash_map<std::string_view, std::string> arguments;
  };

  absl::Status AddArgument(const tensorflow::NodeDef& node, const char* prefix,
                           Body* body);
  // Collects the nodes that `roots` depend on, up to the arguments.
  absl::Status Collect(std::vector<std::string> roots, Body* body);
  absl::Status CopyNodes(Body* body);
  // Returns the name in the function's body of a tensor of the graph.
  absl::StatusOr<std::string> NameInBody(std::string_view tensor,
                                         const Body& body);

  const tensorflow::GraphDef& graph_;
  const std::function<bool(const tensorflow::NodeDef&)> captures_;
  absl::flat_hash_map<std::string_view, const tensorflow::NodeDef*> nodes_;
  OpCatalog catalog_;
};

}  // namespace requant

#endif  // REQUANT_GRAPH_SAVED_MODEL_GRAPH_FUNCTION_H_
