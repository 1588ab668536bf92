#include "graph/diff.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/json.h"
#include "base/text/printable.h"
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

// Describes the change between two nodes; returns whether there is any.
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

// Calls `visit` with pairs (before, after) of items with the same name, of
// which one is null if only the other list has the name, or its n-th use.
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

std::string WithCommas(int64_t number) {
  std::string text = absl::StrCat(number);
  for (int i = static_cast<int>(text.size()) - 3; i > 0; i -= 3) {
    text.insert(i, ",");
  }
  return text;
}

struct Unit {
  const char* name;
  double bytes;
};

// Returns the unit in which the larger of two sizes has at most three digits
// before the decimal point.
Unit UnitFor(int64_t bytes) {
  if (bytes < 1000) return {"B", 1};
  if (bytes < 1000 * 1000) return {"kB", 1e3};
  if (bytes < 1000 * 1000 * 1000) return {"MB", 1e6};
  return {"GB", 1e9};
}

std::string InUnit(int64_t bytes, const Unit& unit) {
  return unit.bytes == 1 ? absl::StrCat(bytes)
                         : absl::StrFormat("%.2f", bytes / unit.bytes);
}

// Returns " (-27 %)", with one decimal below one percent, or "" if `before` is
// zero or the change rounds to zero.
std::string PercentChange(int64_t before, int64_t after) {
  if (before == 0) return "";
  const double percent = 100.0 * (after - before) / before;
  if (std::abs(percent) < 0.05) return "";
  return std::abs(percent) >= 0.95 ? absl::StrFormat(" (%+.0f %%)", percent)
                                   : absl::StrFormat(" (%+.1f %%)", percent);
}

std::string BytesChange(int64_t before, int64_t after) {
  const Unit unit = UnitFor(std::max(before, after));
  if (before == after) return absl::StrCat(InUnit(after, unit), " ", unit.name);
  return absl::StrCat(InUnit(before, unit), " -> ", InUnit(after, unit), " ",
                      unit.name, PercentChange(before, after));
}

std::string NodesChange(int64_t before, int64_t after) {
  if (before == after) return WithCommas(after);
  return absl::StrCat(WithCommas(before), " -> ", WithCommas(after));
}

// Returns the ops whose nodes differ in number or size, sorted by descending
// change of bytes.
std::vector<OpSize> ChangedOps(const GraphDiff& diff) {
  std::vector<OpSize> ops;
  for (const OpSize& op : diff.ops) {
    if (op.before.nodes != op.after.nodes ||
        op.before.bytes != op.after.bytes) {
      ops.push_back(op);
    }
  }
  const auto weight = [](const OpSize& op) {
    return std::abs(op.after.bytes - op.before.bytes);
  };
  std::stable_sort(
      ops.begin(), ops.end(),
      [&](const OpSize& a, const OpSize& b) { return weight(a) > weight(b); });
  return ops;
}

void AppendOpTable(const GraphDiff& diff, std::string* text) {
  const std::vector<OpSize> ops = ChangedOps(diff);
  if (ops.empty()) return;
  std::vector<std::vector<std::string>> rows = {{"op", "nodes", "size"}};
  for (const OpSize& op : ops) {
    rows.push_back({Printable(op.op),
                    NodesChange(op.before.nodes, op.after.nodes),
                    BytesChange(op.before.bytes, op.after.bytes)});
  }
  size_t widths[2] = {0, 0};
  for (const auto& row : rows) {
    for (int i = 0; i < 2; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    absl::StrAppend(
        text, "  ", row[0], std::string(widths[0] - row[0].size() + 2, ' '),
        row[1], std::string(widths[1] - row[1].size() + 2, ' '), row[2], "\n");
  }
}

// Appends a heading with the number of items, followed by the first few.
template <typename Item, typename Describe>
void AppendList(std::string_view heading, const std::vector<Item>& items,
                int max_items, const Describe& describe, std::string* text) {
  if (items.empty()) return;
  absl::StrAppend(text, heading, ": ", WithCommas(items.size()), "\n");
  const size_t shown =
      max_items <= 0 ? items.size() : std::min<size_t>(items.size(), max_items);
  for (size_t i = 0; i < shown; ++i) {
    absl::StrAppend(text, "  ", describe(items[i]), "\n");
  }
  if (shown < items.size()) {
    absl::StrAppend(text, "  ... and ", WithCommas(items.size() - shown),
                    " more\n");
  }
}

std::string DescribeNode(const NamedOp& node) {
  return absl::StrCat(Printable(node.name), " (", Printable(node.op), ")");
}

std::string DescribeChange(const NodeChange& change) {
  std::vector<std::string> parts;
  if (change.op_before != change.op_after) {
    parts.push_back(absl::StrCat("op ", Printable(change.op_before), " -> ",
                                 Printable(change.op_after)));
  }
  if (change.inputs) parts.push_back("inputs");
  if (!change.attributes.empty()) {
    parts.push_back(absl::StrCat(
        change.attributes.size() == 1 ? "attribute " : "attributes ",
        Printable(absl::StrJoin(change.attributes, ", "))));
  }
  if (change.device) parts.push_back("device");
  if (change.annotations) parts.push_back("annotations");
  return absl::StrCat(Printable(change.name), " (", Printable(change.op_after),
                      "): ", absl::StrJoin(parts, "; "));
}

std::string JsonNames(const std::vector<std::string>& names) {
  return JsonArrayOf(names, JsonString);
}

std::string JsonBool(bool value) { return value ? "true" : "false"; }

std::string JsonSize(const GraphSize& size) {
  return JsonObject({{"nodes", absl::StrCat(size.nodes)},
                     {"bytes", absl::StrCat(size.bytes)}});
}

std::string JsonItem(const NamedOp& node) {
  return JsonObject(
      {{"name", JsonString(node.name)}, {"op", JsonString(node.op)}});
}

std::string JsonItem(const OpSize& op) {
  return JsonObject({{"op", JsonString(op.op)},
                     {"before", JsonSize(op.before)},
                     {"after", JsonSize(op.after)}});
}

std::string JsonItem(const NodeChange& change) {
  return JsonObject({{"name", JsonString(change.name)},
                     {"op_before", JsonString(change.op_before)},
                     {"op_after", JsonString(change.op_after)},
                     {"inputs", JsonBool(change.inputs)},
                     {"device", JsonBool(change.device)},
                     {"annotations", JsonBool(change.annotations)},
                     {"attributes", JsonNames(change.attributes)}});
}

// Returns a JSON array with one item per line.
template <typename Item>
std::string JsonItems(const std::vector<Item>& items) {
  if (items.empty()) return "[]";
  return absl::StrCat("[\n    ",
                      absl::StrJoin(items, ",\n    ",
                                    [](std::string* out, const Item& item) {
                                      absl::StrAppend(out, JsonItem(item));
                                    }),
                      "\n  ]");
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

std::string GraphSizeSummary(const GraphSize& before, const GraphSize& after) {
  return absl::StrCat(NodesChange(before.nodes, after.nodes),
                      after.nodes == 1 ? " node" : " nodes",
                      before.nodes == after.nodes
                          ? ""
                          : PercentChange(before.nodes, after.nodes),
                      ", ", BytesChange(before.bytes, after.bytes));
}

std::string DiffAsText(const GraphDiff& diff, int max_nodes) {
  if (diff.equal()) {
    return absl::StrCat("the graphs are equal: ",
                        GraphSizeSummary(diff.before, diff.after), "\n");
  }
  std::string text =
      absl::StrCat(GraphSizeSummary(diff.before, diff.after), "\n");
  AppendOpTable(diff, &text);
  AppendList("nodes added", diff.added, max_nodes, DescribeNode, &text);
  AppendList("nodes removed", diff.removed, max_nodes, DescribeNode, &text);
  AppendList("nodes changed", diff.changed, max_nodes, DescribeChange, &text);
  for (const auto& [heading, names] :
       {std::pair("functions added", &diff.functions_added),
        std::pair("functions removed", &diff.functions_removed),
        std::pair("functions changed", &diff.functions_changed),
        std::pair("other parts that differ", &diff.other_parts)}) {
    AppendList(heading, *names, max_nodes, Printable, &text);
  }
  return text;
}

std::string DiffAsJson(const GraphDiff& diff) {
  return absl::StrCat(
      "{\n  \"equal\": ", JsonBool(diff.equal()),
      ",\n  \"before\": ", JsonSize(diff.before),
      ",\n  \"after\": ", JsonSize(diff.after),
      ",\n  \"ops\": ", JsonItems(diff.ops),
      ",\n  \"added\": ", JsonItems(diff.added),
      ",\n  \"removed\": ", JsonItems(diff.removed),
      ",\n  \"changed\": ", JsonItems(diff.changed),
      ",\n  \"functions_added\": ", JsonNames(diff.functions_added),
      ",\n  \"functions_removed\": ", JsonNames(diff.functions_removed),
      ",\n  \"functions_changed\": ", JsonNames(diff.functions_changed),
      ",\n  \"other_parts\": ", JsonNames(diff.other_parts), "\n}\n");
}

}  // namespace requant
