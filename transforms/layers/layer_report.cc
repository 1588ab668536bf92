#include "transforms/layers/layer_report.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/nearest_name.h"
#include "base/text/printable.h"
#include "graph/graph_index.h"
#include "graph/summary/output_ranking.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace requant {
namespace {

using tensorflow::NodeDef;

// How many characters a terminal shows of UTF-8 text.
size_t ShownWidth(const std::string& text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (c & 0xC0) != 0x80; });
}

void AppendPadded(const std::string& text, size_t width, std::string* line) {
  line->append(text);
  line->append(width - std::min(width, ShownWidth(text)), ' ');
}

}  // namespace

std::vector<std::string> LayerTable(std::vector<LayerRow> rows) {
  if (rows.empty()) return {};
  for (LayerRow& row : rows) row.name = Printable(row.name);
  const size_t cells = rows.front().cells.size();
  size_t name_width = 0;
  std::vector<size_t> widths(cells, 0);
  for (const LayerRow& row : rows) {
    name_width = std::max(name_width, ShownWidth(row.name));
    for (size_t i = 0; i < cells; ++i) {
      widths[i] = std::max(widths[i], ShownWidth(row.cells[i]));
    }
  }
  std::vector<std::string> lines;
  for (const LayerRow& row : rows) {
    std::string line = "  ";
    AppendPadded(row.name, name_width, &line);
    for (size_t i = 0; i < cells; ++i) {
      line += "  ";
      // Nothing follows the last one.
      AppendPadded(row.cells[i], i + 1 < cells ? widths[i] : 0, &line);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string QuantizedCount(const FloatLayers& found,
                           const std::string& target) {
  return absl::StrCat("quantizes ", found.layers.size(), " of ",
                      found.layers.size() + found.skipped.size(),
                      " MatMuls for the target \"", target, "\"");
}

void AppendSkipped(const FloatLayers& found, std::vector<std::string>* notes) {
  for (const SkippedMatMul& skipped : found.skipped) {
    notes->push_back(absl::StrCat("  leaves \"", skipped.name,
                                  "\" in float: ", skipped.reason));
  }
}

std::string WhyNoLayers(const tensorflow::GraphDef& graph,
                        const FloatLayers& found) {
  std::map<std::string, int> others;
  bool has_variables = false;
  for (const NodeDef& node : graph.node()) {
    has_variables |= IsVariableOp(node.op());
    if (absl::StrContains(node.op(), "Conv") ||
        absl::StartsWith(node.op(), "BatchMatMul") || node.op() == "Einsum") {
      ++others[node.op()];
    }
  }
  std::string why = "no MatMul has constant float weights";
  if (has_variables) {
    absl::StrAppend(&why,
                    "; weights that are in variables become constants by "
                    "requant freeze");
  } else if (!found.skipped.empty()) {
    const SkippedMatMul& first = found.skipped.front();
    absl::StrAppend(&why, "; \"", first.name, "\" stays float: ", first.reason);
    if (found.skipped.size() > 1) {
      absl::StrAppend(&why, " (and ", found.skipped.size() - 1, " more)");
    }
  }
  if (!others.empty()) {
    absl::StrAppend(
        &why, "; other layers stay float: ",
        absl::StrJoin(others, ", ", [](std::string* out, const auto& entry) {
          absl::StrAppend(out, entry.second, " ", entry.first);
        }));
  }
  return why;
}

absl::Status CheckExcluded(const FloatLayerOptions& options,
                           const GraphIndex& index,
                           std::vector<std::string>* warnings) {
  for (const std::string& name : options.excluded_nodes) {
    if (index.Find(name) != nullptr) continue;
    std::vector<std::string> known;
    for (const NodeDef& node : index.graph().node()) {
      known.push_back(node.name());
    }
    return absl::NotFoundError(absl::StrCat("the graph has no node \"", name,
                                            "\" to exclude",
                                            DidYouMean(name, known)));
  }
  absl::flat_hash_set<std::string> ops;
  for (const NodeDef& node : index.graph().node()) ops.insert(node.op());
  for (const std::string& op : options.excluded_ops) {
    if (ops.contains(op)) continue;
    warnings->push_back(absl::StrCat("no node of the graph is a ", op,
                                     ", which is excluded",
                                     DidYouMean(op, {ops.begin(), ops.end()})));
  }
  return absl::OkStatus();
}

}  // namespace requant
