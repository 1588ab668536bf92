// How a GraphDiff reads, for people and for programs.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/json.h"
#include "base/text/printable.h"
#include "graph/diff.h"

namespace requant {
namespace {

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

// The unit in which the larger of two sizes has at most three digits before the
// point.
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

// " (-27 %)", with a digit behind the point below one percent, or "" when there
// was nothing or the change rounds to nothing.
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

// The ops whose nodes differ in number or size, those with the largest change
// of bytes first.
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

// A heading with the number of items, and the first of them.
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

std::string JsonList(const std::vector<std::string>& names) {
  return absl::StrCat("[",
                      absl::StrJoin(names, ", ",
                                    [](std::string* out, const auto& name) {
                                      absl::StrAppend(out, JsonString(name));
                                    }),
                      "]");
}

std::string JsonSize(const GraphSize& size) {
  return absl::StrCat("{\"nodes\": ", size.nodes, ", \"bytes\": ", size.bytes,
                      "}");
}

std::string JsonItem(const NamedOp& node) {
  return absl::StrCat("{\"name\": ", JsonString(node.name),
                      ", \"op\": ", JsonString(node.op), "}");
}

std::string JsonItem(const OpSize& op) {
  return absl::StrCat("{\"op\": ", JsonString(op.op),
                      ", \"before\": ", JsonSize(op.before),
                      ", \"after\": ", JsonSize(op.after), "}");
}

std::string JsonItem(const NodeChange& change) {
  const auto json_bool = [](bool value) { return value ? "true" : "false"; };
  return absl::StrCat("{\"name\": ", JsonString(change.name),
                      ", \"op_before\": ", JsonString(change.op_before),
                      ", \"op_after\": ", JsonString(change.op_after),
                      ", \"inputs\": ", json_bool(change.inputs),
                      ", \"device\": ", json_bool(change.device),
                      ", \"annotations\": ", json_bool(change.annotations),
                      ", \"attributes\": ", JsonList(change.attributes), "}");
}

// One item to a line.
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
  AppendList("functions added", diff.functions_added, max_nodes, Printable,
             &text);
  AppendList("functions removed", diff.functions_removed, max_nodes, Printable,
             &text);
  AppendList("functions changed", diff.functions_changed, max_nodes, Printable,
             &text);
  AppendList("other parts that differ", diff.other_parts, max_nodes, Printable,
             &text);
  return text;
}

std::string DiffAsJson(const GraphDiff& diff) {
  return absl::StrCat(
      "{\n  \"equal\": ", diff.equal() ? "true" : "false",
      ",\n  \"before\": ", JsonSize(diff.before),
      ",\n  \"after\": ", JsonSize(diff.after),
      ",\n  \"ops\": ", JsonItems(diff.ops),
      ",\n  \"added\": ", JsonItems(diff.added),
      ",\n  \"removed\": ", JsonItems(diff.removed),
      ",\n  \"changed\": ", JsonItems(diff.changed),
      ",\n  \"functions_added\": ", JsonList(diff.functions_added),
      ",\n  \"functions_removed\": ", JsonList(diff.functions_removed),
      ",\n  \"functions_changed\": ", JsonList(diff.functions_changed),
      ",\n  \"other_parts\": ", JsonList(diff.other_parts), "\n}\n");
}

}  // namespace requant
