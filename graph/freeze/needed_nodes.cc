#include "graph/freeze/needed_nodes.h"

#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "graph/freeze/freeze_parts.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/op.h"

namespace requant {
namespace {

using tensorflow::AttrValue;
using tensorflow::FunctionDef;
using tensorflow::GraphDef;
using tensorflow::NodeDef;

bool IsControlFlow(const std::string& op) {
  static const auto* ops = new absl::flat_hash_set<std::string>{
      "Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond"};
  return ops->contains(absl::StripPrefix(op, "Ref"));
}

// Returns whether nodes of this op do nothing but compute their values.
bool OnlyComputes(const std::string& op) {
  const tensorflow::OpDef* definition = nullptr;
  return !IsControlFlow(op) &&
         tensorflow::OpRegistry::Global()->LookUpOpDef(op, &definition).ok() &&
         !definition->is_stateful();
}

// Finds nodes that, like all their inputs, only compute and always run: waiting
// for one without reading it is pointless.
class PureNodes {
 public:
  explicit PureNodes(const GraphIndex& index) : index_(index) {}

  bool Contains(const NodeDef* start) {
    std::vector<const NodeDef*> stack = {start};
    while (!stack.empty()) {
      const NodeDef* node = stack.back();
      const auto [state, is_new] = states_.emplace(node, kUnderWay);
      if (state->second == kYes || state->second == kNo) {
        stack.pop_back();
      } else if (!OnlyComputes(node->op())) {
        state->second = kNo;
      } else if (is_new) {
        for (int i = 0; i < node->input_size(); ++i) {
          const NodeDef* producer = index_.Producer(*node, i);
          if (producer != nullptr && !states_.contains(producer)) {
            stack.push_back(producer);
          }
        }
      } else {
        bool pure = true;
        for (int i = 0; i < node->input_size(); ++i) {
          const NodeDef* producer = index_.Producer(*node, i);
          pure = pure && producer != nullptr && states_[producer] == kYes;
        }
        states_[node] = pure ? kYes : kNo;
      }
    }
    return states_[start] == kYes;
  }

 private:
  enum State { kUnderWay, kYes, kNo };

  const GraphIndex& index_;
  absl::flat_hash_map<const NodeDef*, State> states_;
};

template <typename Predicate>
void DropControls(const Predicate& drop, GraphIndex* index) {
  for (const NodeDef& listed : index->graph().node()) {
    NodeDef* node = index->Find(listed.name());
    std::vector<std::string> kept;
    for (int i = 0; i < node->input_size(); ++i) {
      const NodeDef* producer = index->Producer(*node, i);
      if (absl::StartsWith(node->input(i), "^") && producer != nullptr &&
          drop(producer)) {
        continue;
      }
      kept.push_back(node->input(i));
    }
    if (static_cast<int>(kept.size()) < node->input_size()) {
      index->SetInputs(node, std::move(kept));
    }
  }
}

// Appends the names of the functions in an attribute.
void AppendFunctions(const AttrValue& value, std::vector<std::string>* names) {
  const auto append = [names](const tensorflow::NameAttrList& function) {
    names->push_back(function.name());
    for (const auto& [key, nested] : function.attr()) {
      AppendFunctions(nested, names);
    }
  };
  if (value.has_func()) append(value.func());
  for (const auto& function : value.list().func()) append(function);
}

void AppendFunctions(const NodeDef& node, std::vector<std::string>* names) {
  names->push_back(node.op());
  for (const auto& [key, value] : node.attr()) AppendFunctions(value, names);
}

void KeepCalledFunctions(GraphDef* graph) {
  NodeSet nodes;
  for (const NodeDef& node : graph->node()) nodes.insert(&node);
  const absl::flat_hash_set<std::string> kept =
      CalledFunctions(nodes, graph->library());
  tensorflow::FunctionDefLibrary library;
  for (FunctionDef& function : *graph->mutable_library()->mutable_function()) {
    if (kept.contains(function.signature().name())) {
      *library.add_function() = std::move(function);
    }
  }
  for (const auto& gradient : graph->library().gradient()) {
    if (kept.contains(gradient.function_name()) &&
        kept.contains(gradient.gradient_func())) {
      *library.add_gradient() = gradient;
    }
  }
  if (library.function().empty()) {
    graph->clear_library();
  } else {
    *graph->mutable_library() = std::move(library);
  }
}

}  // namespace

absl::flat_hash_set<std::string> CalledFunctions(
    const NodeSet& nodes, const tensorflow::FunctionDefLibrary& library) {
  absl::flat_hash_map<std::string, const FunctionDef*> functions;
  for (const FunctionDef& function : library.function()) {
    functions.emplace(function.signature().name(), &function);
  }
  std::vector<std::string> open;
  for (const NodeDef* node : nodes) AppendFunctions(*node, &open);
  absl::flat_hash_set<std::string> called;
  while (!open.empty()) {
    const std::string name = std::move(open.back());
    open.pop_back();
    const auto function = functions.find(name);
    if (function == functions.end() || !called.insert(name).second) continue;
    for (const NodeDef& node : function->second->node_def()) {
      AppendFunctions(node, &open);
    }
  }
  return called;
}

NodeSet NeededNodes(const GraphIndex& index,
                    const std::vector<std::string>& roots) {
  NodeSet needed;
  std::vector<const NodeDef*> stack;
  const auto visit = [&](const NodeDef* node) {
    if (node != nullptr && needed.insert(node).second) stack.push_back(node);
  };
  for (const std::string& root : roots) visit(index.Find(root));
  while (!stack.empty()) {
    const NodeDef* node = stack.back();
    stack.pop_back();
    for (int i = 0; i < node->input_size(); ++i) {
      visit(index.Producer(*node, i));
    }
  }
  return needed;
}

void DropControlsOnState(GraphIndex* index) {
  DropControls(
      [](const NodeDef* producer) { return OnlyChangesState(producer->op()); },
      index);
}

absl::Status KeepNeeded(const std::vector<std::string>& outputs,
                        GraphDef* graph) {
  REQUANT_ASSIGN_OR_RETURN(GraphIndex index, GraphIndex::Create(graph));
  PureNodes pure(index);
  DropControls([&](const NodeDef* producer) { return pure.Contains(producer); },
               &index);
  const NodeSet needed = NeededNodes(index, outputs);
  int kept = 0;
  for (int i = 0; i < graph->node_size(); ++i) {
    if (!needed.contains(&graph->node(i))) continue;
    graph->mutable_node()->SwapElements(kept++, i);
  }
  graph->mutable_node()->DeleteSubrange(kept, graph->node_size() - kept);
  DropLostColocations(graph);
  KeepCalledFunctions(graph);
  return absl::OkStatus();
}

void DropLostColocations(GraphDef* graph) {
  absl::flat_hash_set<std::string_view> names;
  for (const NodeDef& node : graph->node()) names.insert(node.name());
  for (NodeDef& node : *graph->mutable_node()) {
    const auto found = node.mutable_attr()->find("_class");
    if (found == node.mutable_attr()->end()) continue;
    AttrValue kept;
    for (const std::string& group : found->second.list().s()) {
      std::string_view other = group;
      if (!absl::ConsumePrefix(&other, "loc:@") || names.contains(other)) {
        kept.mutable_list()->add_s(group);
      }
    }
    if (kept.list().s().empty()) {
      node.mutable_attr()->erase("_class");
    } else {
      found->second = std::move(kept);
    }
  }
}

}  // namespace requant
