#ifndef REQUANT_GRAPH_VERIFY_VERIFY_PARTS_H_
#define REQUANT_GRAPH_VERIFY_VERIFY_PARTS_H_

// The parts of the verifier and their shared types; see verify.h.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "graph/graph_wiring.h"
#include "graph/op_catalog.h"
#include "graph/verify/verify.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace requant {

// Returns `text` in quotes, escaped and cut to a length that fits into a
// sentence.
std::string Quoted(std::string_view text);

// Returns TensorFlow's reason for refusing something as one short clause.
std::string ShortReason(std::string_view message);

class ProblemList {
 public:
  explicit ProblemList(int limit) : limit_(limit) {}

  void Add(ProblemKind kind, std::string node, std::string message) {
    if (!full()) {
      problems_.push_back({kind, std::move(node), std::move(message)});
    }
  }

  // Returns whether no more are kept, so that a search can stop.
  bool full() const {
    return limit_ > 0 && problems_.size() >= static_cast<size_t>(limit_);
  }
  bool empty() const { return problems_.empty(); }
  size_t size() const { return problems_.size(); }
  std::vector<GraphProblem> Take() { return std::move(problems_); }

 private:
  int limit_;
  std::vector<GraphProblem> problems_;
};

// A node and its location: the graph itself or a function's body.
struct NodePlace {
  const tensorflow::NodeDef& node;
  // Null in the graph itself.
  const tensorflow::OpDef* function = nullptr;

  // Returns "node \"a\" (Add)", followed by the function's name, if any.
  std::string Describe() const;
  // Reports a problem of the node as its description and `what`.
  void Report(ProblemKind kind, std::string_view what,
              ProblemList* problems) const;
};

// Compares the attributes of a node with those its op declares: reports missing
// ones, unknown ones, values with a wrong type or not allowed, invalid shapes
// and tensors, and nonexistent functions. `_x` attributes are always allowed.
// In a function's body a value may come from the function's own attributes.
void CheckAttributes(const NodePlace& place, const OpEntry& op,
                     OpCatalog* catalog, ProblemList* problems);

// Compares the number and types of a node's input tensors (DT_INVALID is an
// unknown type) with what its op takes.
void CheckInputTypes(const NodePlace& place, const OpEntry& op,
                     const std::vector<tensorflow::DataType>& inputs,
                     ProblemList* problems);

// Reports data inputs that follow a control input.
void CheckInputOrder(const NodePlace& place, ProblemKind kind,
                     ProblemList* problems);

// Returns whether an edge between nodes of these ops closes a v1 while loop,
// which TensorFlow does not consider a cycle.
bool IsLoopEdge(const std::string& producer_op, const std::string& consumer_op);

// Reports the cycles of `order`, whose numbers refer to `nodes`, naming a few
// nodes of each. `function` is as in NodePlace.
void ReportCycles(
    const NodeOrder& order,
    const google::protobuf::RepeatedPtrField<tensorflow::NodeDef>& nodes,
    const tensorflow::OpDef* function, ProblemKind kind, ProblemList* problems);

// Checks every function: its name, its nodes, what their inputs and its results
// refer to, types that do not depend on the caller, and cycles.
void CheckFunctions(const tensorflow::FunctionDefLibrary& library,
                    OpCatalog* catalog, ProblemList* problems);

// Runs the shape functions of the nodes in `order` and reports those that
// reject their inputs. Some of TensorFlow's functions crash on odd constants,
// so this happens in a copy of this process (see RunForked), where a crash is
// the last problem reported. Fails if no copy can be started. The graph must
// have no other problems: `inputs` are resolved, data inputs precede control
// inputs, attributes and types are checked. What only TensorFlow's constant
// folding or resource handles could show stays unknown, so nothing valid is
// refused.
absl::Status CheckShapes(const tensorflow::GraphDef& graph,
                         const std::vector<const OpEntry*>& ops,
                         const NodeEdges& inputs,
                         const std::vector<int32_t>& order,
                         ProblemList* problems);

}  // namespace requant

#endif  // REQUANT_GRAPH_VERIFY_VERIFY_PARTS_H_
