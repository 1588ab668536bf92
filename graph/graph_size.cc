#include "graph/graph_size.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace requant {
namespace {

// 1204567 as "1,204,567".
std::string Grouped(int64_t number) {
  std::string digits = absl::StrCat(number);
  for (int i = static_cast<int>(digits.size()) - 3; i > 0; i -= 3) {
    digits.insert(i, ",");
  }
  return digits;
}

// " (-27 %)", or "" when there is no change worth a digit.
std::string Change(double before, double after) {
  if (before == 0 || before == after) return "";
  const double percent = 100 * (after - before) / before;
  if (std::fabs(percent) < 0.5) return " (0 %)";
  return absl::StrFormat(" (%+.0f %%)", percent);
}

struct Unit {
  double bytes;
  const char* name;
};

// The unit in which the larger of both sizes has one to three digits before
// the point.
Unit UnitFor(int64_t bytes) {
  if (bytes >= 1000000000) return {1e9, "GB"};
  if (bytes >= 1000000) return {1e6, "MB"};
  if (bytes >= 1000) return {1e3, "kB"};
  return {1, "bytes"};
}

std::string InUnit(int64_t bytes, const Unit& unit) {
  return unit.bytes == 1 ? absl::StrCat(bytes)
                         : absl::StrFormat("%.2f", bytes / unit.bytes);
}

}  // namespace

GraphSize MeasureGraph(const tensorflow::GraphDef& graph) {
  return {graph.node_size(), static_cast<int64_t>(graph.ByteSizeLong())};
}

std::string GraphSizeSummary(const GraphSize& before, const GraphSize& after) {
  const Unit unit = UnitFor(std::max(before.bytes, after.bytes));
  return absl::StrCat(Grouped(before.nodes), " -> ", Grouped(after.nodes),
                      " nodes", Change(before.nodes, after.nodes), ", ",
                      InUnit(before.bytes, unit), " -> ",
                      InUnit(after.bytes, unit), " ", unit.name,
                      Change(before.bytes, after.bytes));
}

}  // namespace requant
