#include "graph/diff.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph_io.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/versions.pb.h"

namespace requant {

using google::protobuf::RepeatedPtrField;
using tensorflow::AttrValue;
using tensorflow::FunctionDef;
using tensorflow::GraphDef;
using tensorflow::NodeDef;

namespace {

bool SameValue(const AttrValue& a, const AttrValue& b) {
  if (a.value_case() != b.value_case()) return false;
  switch (a.value_case()) {
    case AttrValue::kType:
      return a.type() == b.type();
    case AttrValue::kI:
      return a.i() == b.i();
    case AttrValue::kB:
      return a.b() == b.b();
    case AttrValue::kS:
      return a.s() == b.s();
    default:
      return SameMessage(a, b);
  }
}

std::vector<std::string> ChangedAttributes(const NodeDef& before,
                                           const NodeDef& after) {
  std::vector<std::string> names;
  for (const auto& [name, value] : before.attr()) {
    const auto found = after.attr().find(name);
    if (found == after.attr().end() || !SameValue(value, found->second)) {
      names.push_back(name);
    }
  }
  for (const auto& [name, value] : after.attr()) {
    if (!before.attr().contains(name)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The change from one node to another of the same name; whether there is any.
bool CompareNodes(const NodeDef& before, const NodeDef& after,
                  NodeChange* change) {
  change->name = before.name();
  change->op_before = before.op();
  change->op_after = after.op();
  change->inputs = !std::equal(before.input().begin(), before.input().end(),
                               after.input().begin(), after.input().end());
  change->device = before.device() != after.device();
  change->annotations =
      before.has_experimental_type() != after.has_experimental_type() ||
      before.has_experimental_debug_info() !=
          after.has_experimental_debug_info() ||
      !SameMessage(before.experimental_type(), after.experimental_type()) ||
      !SameMessage(before.experimental_debug_info(),
                   after.experimental_debug_info());
  change->attributes = ChangedAttributes(before, after);
  return before.op() != after.op() || change->inputs || change->device ||
         change->annotations || !change->attributes.empty();
}

const std::string& NameOf(const NodeDef& node) { return node.name(); }
const std::string& NameOf(const FunctionDef& function) {
  return function.signature().name();
}

template <typename Item>
std::vector<const Item*> SortedByName(const RepeatedPtrField<Item>& items) {
  std::vector<const Item*> sorted;
  sorted.reserve(items.size());
  for (const Item& item : items) sorted.push_back(&item);
  std::stable_sort(
      sorted.begin(), sorted.end(),
      [](const Item* a, const Item* b) { return NameOf(*a) < NameOf(*b); });
  return sorted;
}

// Calls `visit` with the items of each name: (before, after), of which one is
// null where the name, or its n-th use, is in one list only.
template <typename Item, typename Visit>
void VisitPairs(const RepeatedPtrField<Item>& before,
                const RepeatedPtrField<Item>& after, const Visit& visit) {
  const std::vector<const Item*> a = SortedByName(before);
  const std::vector<const Item*> b = SortedByName(after);
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    const int order = i == a.size()   ? 1
                      : j == b.size() ? -1
                                      : NameOf(*a[i]).compare(NameOf(*b[j]));
    visit(order <= 0 ? a[i] : nullptr, order >= 0 ? b[j] : nullptr);
    if (order <= 0) ++i;
    if (order >= 0) ++j;
  }
}

void AddToOps(const GraphDef& graph, GraphSize OpSize::*side,
              std::map<std::string_view, OpSize>* ops) {
  for (const NodeDef& node : graph.node()) {
    GraphSize& size = (*ops)[node.op()].*side;
    ++size.nodes;
    size.bytes += node.ByteSizeLong();
  }
}

std::vector<OpSize> CompareOps(const GraphDef& before, const GraphDef& after) {
  std::map<std::string_view, OpSize> by_name;
  AddToOps(before, &OpSize::before, &by_name);
  AddToOps(after, &OpSize::after, &by_name);
  std::vector<OpSize> ops;
  for (auto& [name, size] : by_name) {
    size.op = std::string(name);
    ops.push_back(std::move(size));
  }
  return ops;
}

std::vector<std::string> SortedGradients(const GraphDef& graph) {
  std::vector<std::string> gradients;
  for (const auto& gradient : graph.library().gradient()) {
    gradients.push_back(DeterministicBytes(gradient));
  }
  std::sort(gradients.begin(), gradients.end());
  return gradients;
}

std::vector<std::string> OtherParts(const GraphDef& before,
                                    const GraphDef& after) {
  std::vector<std::string> parts;
  if (!SameMessage(before.debug_info(), after.debug_info())) {
    parts.push_back("debug information");
  }
  if (SortedGradients(before) != SortedGradients(after)) {
    parts.push_back("gradients");
  }
  if (!SameMessage(before.versions(), after.versions())) {
    parts.push_back("versions");
  }
  return parts;
}

}  // namespace

GraphSize SizeOf(const GraphDef& graph) {
  return {graph.node_size(), static_cast<int64_t>(graph.ByteSizeLong())};
}

bool GraphDiff::equal() const {
  return added.empty() && removed.empty() && changed.empty() &&
         functions_added.empty() && functions_removed.empty() &&
         functions_changed.empty() && other_parts.empty();
}

GraphDiff DiffGraphs(const GraphDef& before, const GraphDef& after) {
  GraphDiff diff;
  diff.before = SizeOf(before);
  diff.after = SizeOf(after);
  diff.ops = CompareOps(before, after);
  diff.other_parts = OtherParts(before, after);
  VisitPairs(before.node(), after.node(),
             [&](const NodeDef* a, const NodeDef* b) {
               NodeChange change;
               if (a == nullptr) {
                 diff.added.push_back({b->name(), b->op()});
               } else if (b == nullptr) {
                 diff.removed.push_back({a->name(), a->op()});
               } else if (CompareNodes(*a, *b, &change)) {
                 diff.changed.push_back(std::move(change));
               }
             });
  VisitPairs(before.library().function(), after.library().function(),
             [&](const FunctionDef* a, const FunctionDef* b) {
               if (a == nullptr) {
                 diff.functions_added.push_back(NameOf(*b));
               } else if (b == nullptr) {
                 diff.functions_removed.push_back(NameOf(*a));
               } else if (!SameMessage(*a, *b)) {
                 diff.functions_changed.push_back(NameOf(*a));
               }
             });
  return diff;
}

}  // namespace requant
