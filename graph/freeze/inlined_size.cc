#include "graph/freeze/inlined_size.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "graph/graph_index.h"

namespace requant {
namespace {

using tensorflow::FunctionDef;
using tensorflow::GraphDef;
using tensorflow::NodeDef;
using Nodes = google::protobuf::RepeatedPtrField<NodeDef>;

class Counter {
 public:
  Counter(const CalledFunction& called, int64_t limit)
      : called_(called), limit_(limit) {}

  // With an explicit stack: functions call each other as deeply as they like.
  int64_t SizeOf(const Nodes& nodes, std::vector<std::string_view> wanted) {
    std::vector<Body> stack = {
        {nullptr, Calls(nodes, std::move(wanted)), 0, nodes.size()}};
    while (true) {
      Body& body = stack.back();
      if (body.next == body.calls.size()) {
        const int64_t size = std::min(body.size, limit_);
        if (body.function == nullptr) return size;
        sizes_[body.function] = size;
        stack.pop_back();
        continue;
      }
      const FunctionDef* callee = body.calls[body.next];
      const auto [known, is_new] = sizes_.try_emplace(callee, 0);
      if (!is_new) {
        body.size = std::min(limit_, body.size + known->second);
        ++body.next;
        continue;
      }
      // The caller looks at the size again when it is known; until then it is
      // zero, for calls in a circle.
      stack.push_back({callee, Calls(callee->node_def(), Results(*callee)), 0,
                       callee->node_def_size()});
    }
  }

 private:
  struct Body {
    // Null for the graph.
    const FunctionDef* function;
    std::vector<const FunctionDef*> calls;
    size_t next;
    int64_t size;
  };

  static std::vector<std::string_view> Results(const FunctionDef& function) {
    std::vector<std::string_view> results;
    for (const auto& [name, tensor] : function.ret()) results.push_back(tensor);
    for (const auto& [name, node] : function.control_ret()) {
      results.push_back(node);
    }
    return results;
  }

  // The functions that the wanted nodes need, once for each call.
  std::vector<const FunctionDef*> Calls(
      const Nodes& nodes, std::vector<std::string_view> wanted) const {
    absl::flat_hash_map<std::string_view, const NodeDef*> unseen;
    unseen.reserve(nodes.size());
    for (const NodeDef& node : nodes) unseen.emplace(node.name(), &node);
    std::vector<const FunctionDef*> calls;
    while (!wanted.empty()) {
      const auto found = unseen.find(NodeOf(wanted.back()));
      wanted.pop_back();
      if (found == unseen.end()) continue;
      const NodeDef& node = *found->second;
      unseen.erase(found);
      wanted.insert(wanted.end(), node.input().begin(), node.input().end());
      const FunctionDef* function = called_(node);
      if (function != nullptr) calls.push_back(function);
    }
    return calls;
  }

  const CalledFunction& called_;
  const int64_t limit_;
  absl::flat_hash_map<const FunctionDef*, int64_t> sizes_;
};

}  // namespace

int64_t InlinedSize(const GraphDef& graph,
                    const std::vector<std::string>& wanted,
                    const CalledFunction& called, int64_t limit) {
  return Counter(called, limit)
      .SizeOf(graph.node(), {wanted.begin(), wanted.end()});
}

}  // namespace requant
