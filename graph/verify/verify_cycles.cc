#include "graph/verify/verify_cycles.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace requant {

using tensorflow::NodeDef;

namespace {

constexpr size_t kNamesShown = 5;

}  // namespace

bool IsLoopEdge(const std::string& producer_op,
                const std::string& consumer_op) {
  return (consumer_op == "Merge" || consumer_op == "RefMerge") &&
         (producer_op == "NextIteration" || producer_op == "RefNextIteration");
}

void ReportCycles(const NodeOrder& order,
                  const google::protobuf::RepeatedPtrField<NodeDef>& nodes,
                  const tensorflow::OpDef* function, ProblemKind kind,
                  ProblemList* problems) {
  for (const std::vector<int32_t>& cycle : order.cycles) {
    if (problems->full()) return;
    std::string names;
    const size_t shown = std::min(cycle.size(), kNamesShown);
    for (size_t i = 0; i < shown; ++i) {
      absl::StrAppend(&names, Quoted(nodes[cycle[i]].name()), " -> ");
    }
    if (cycle.size() > shown) {
      absl::StrAppend(&names, "... (", cycle.size() - shown, " more) -> ");
    }
    absl::StrAppend(&names, Quoted(nodes[cycle[0]].name()));
    const NodePlace place{nodes[cycle[0]], function};
    problems->Add(
        kind, place.Path(),
        absl::StrCat(place.Describe(), " depends on its own output: ", names));
  }
}

}  // namespace requant
