#ifndef REQUANT_GRAPH_GRAPH_INDEX_H_
#define REQUANT_GRAPH_GRAPH_INDEX_H_

// Indexes a GraphDef for lookups and edits: finds nodes by name and by what
// they read, and keeps both right under edits. Every operation takes time in
// proportion to the edges it touches, not to the size of the graph.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace requant {

// The port of a control input ("^node").
inline constexpr int kControlPort = -1;

// A tensor as named by a NodeDef's input.
struct TensorName {
  std::string_view node;
  int port = 0;

  bool control() const { return port == kControlPort; }
};

// Splits "node", "node:1" or "^node". A suffix that is not a port number
// remains part of the name, as in TensorFlow's own parser.
TensorName ParseTensorName(std::string_view input);

// Returns the node of "node", "node:1", "^node" or, in a function's body,
// "node:output:1": everything before the first colon.
inline std::string_view NodeOf(std::string_view input) {
  if (!input.empty() && input.front() == '^') input.remove_prefix(1);
  return input.substr(0, input.find(':'));
}

// Returns the tensor's name in TensorFlow's canonical spelling ("node" for port
// 0).
std::string FormatTensorName(std::string_view node, int port);

// Counts the nodes of the graph and of all its functions.
int64_t CountNodes(const tensorflow::GraphDef& graph);

// An input that reads a node's output.
struct Use {
  tensorflow::NodeDef* node;
  // The index into node->input().
  int input;
  // The output that is read, or kControlPort.
  int port;
};

class GraphIndex {
 public:
  // Indexes `graph`, which must outlive the index and be changed only through
  // it (though attributes and ops of nodes may be changed directly). Inputs
  // that name no node are kept unchanged. Fails on an empty or repeated name.
  static absl::StatusOr<GraphIndex> Create(tensorflow::GraphDef* graph);

  GraphIndex(GraphIndex&&) = default;
  GraphIndex& operator=(GraphIndex&&) = default;

  const tensorflow::GraphDef& graph() const { return *graph_; }

  // Returns the node of this name, or nullptr.
  tensorflow::NodeDef* Find(std::string_view name) const;

  // Returns the producer of `node`'s input number `input`, or nullptr.
  tensorflow::NodeDef* Producer(const tensorflow::NodeDef& node,
                                int input) const;

  // Returns all inputs that read `name`, on any port or as control, unordered.
  std::vector<Use> Uses(std::string_view name) const;
  bool HasUses(std::string_view name) const;

  // Appends a node. Fails if its name is taken.
  absl::StatusOr<tensorflow::NodeDef*> Add(tensorflow::NodeDef node);

  // Returns an unused name: `base`, or `base` with the first free suffix of
  // "_1", "_2", …
  std::string FreeName(const std::string& base) const;

  // Removes a node, which must be unused.
  absl::Status Remove(std::string_view name);

  // Replaces one or all of the inputs of `node`.
  void SetInput(tensorflow::NodeDef* node, int input, std::string value);
  void SetInputs(tensorflow::NodeDef* node, std::vector<std::string> values);

  // Makes all readers of `from` except the node `except` read `to` instead.
  // Control uses move if `from` is a control name.
  void RedirectUses(TensorName from, TensorName to,
                    const tensorflow::NodeDef* except = nullptr);

  // Drops the removed nodes from the GraphDef, where they stay until then, and
  // keeps the order of the others. Call it once, after the last edit.
  void Commit();

 private:
  // The edges of a producer form a doubly linked list, so an edit unlinks one
  // in constant time whatever the fan-out.
  struct Edge {
    int32_t consumer;
    int32_t input;
    int32_t producer;  // -1 if the input names no node
    int32_t previous;
    int32_t next;
  };

  explicit GraphIndex(tensorflow::GraphDef* graph) : graph_(graph) {}

  int32_t IdOf(std::string_view name) const;
  void AppendEdges(int32_t id);
  void LinkEdge(int32_t edge);
  void UnlinkEdge(int32_t edge);
  void RelinkInput(int32_t id, int input);

  tensorflow::GraphDef* graph_;
  absl::flat_hash_map<std::string_view, int32_t> ids_;
  std::vector<tensorflow::NodeDef*> nodes_;  // nullptr if removed
  std::vector<int32_t> first_edge_;          // by consumer; contiguous
  std::vector<int32_t> first_use_;           // by producer; linked
  std::vector<Edge> edges_;
  bool removed_any_ = false;
};

}  // namespace requant

#endif  // REQUANT_GRAPH_GRAPH_INDEX_H_
