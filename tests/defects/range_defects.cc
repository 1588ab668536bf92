// Defects of the stages that freeze ranges.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tests/defects/defect.h"
#include "tests/defects/graph_edits.h"

namespace requant {
namespace {

using tensorflow::NodeDef;

// Returns the constants that a freeze transform made, by the end of their name.
absl::StatusOr<std::vector<ConstValues<float>>> Frozen(
    const GraphIndex& index, std::string_view suffix) {
  std::vector<ConstValues<float>> frozen;
  for (NodeDef* node : NodesOf(index, {"Const"})) {
    if (!absl::EndsWith(node->name(), suffix)) continue;
    REQUANT_ASSIGN_OR_RETURN(auto value, ValuesOf<float>(node));
    frozen.push_back(value);
  }
  if (!frozen.empty()) return frozen;
  return absl::NotFoundError(absl::StrCat("nothing is called …", suffix));
}

// Returns an edit that multiplies the first `how_many` of them.
GraphEdit Scaled(std::string_view suffix, size_t how_many, float factor) {
  return [=](GraphIndex* index) -> Edited {
    REQUANT_ASSIGN_OR_RETURN(auto frozen, Frozen(*index, suffix));
    frozen.resize(std::min(frozen.size(), how_many));
    for (ConstValues<float>& value : frozen) {
      value.values[0] *= factor;
      value.Write();
    }
    return absl::StrCat("multiplied ", frozen.size(), " of …", suffix, " by ",
                        factor);
  };
}

Edited Exchange(ConstValues<float> a, ConstValues<float> b) {
  std::swap(a.values[0], b.values[0]);
  a.Write();
  b.Write();
  return absl::StrCat("exchanged ", a.node->name(), " and ", b.node->name());
}

Edited ExchangeLayers(GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(auto maxs, Frozen(*index, "/frozen_max"));
  if (maxs.size() < 2) return absl::NotFoundError("there is one layer only");
  return Exchange(maxs[0], maxs[1]);
}

Edited ExchangeEnds(GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(auto mins, Frozen(*index, "/frozen_min"));
  REQUANT_ASSIGN_OR_RETURN(auto maxs, Frozen(*index, "/frozen_max"));
  return Exchange(mins[0], maxs[0]);
}

Edited TakeMaxFromMin(GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(auto mins, Frozen(*index, "/frozen_min_only"));
  REQUANT_ASSIGN_OR_RETURN(auto maxs, Frozen(*index, "/frozen_max_only"));
  maxs[0].values[0] = -mins[0].values[0];
  maxs[0].Write();
  return absl::StrCat("set ", maxs[0].node->name(), " to ", maxs[0].values[0]);
}

Defect At(const char* stage, std::string_view name, const char* gate,
          std::string_view sentence, const GraphEdit& edit) {
  return {name, sentence, Defect::Workflow::kPublished, stage, stage,
          gate, edit};
}

}  // namespace

std::vector<Defect> RangeDefects() {
  return {
      At(stage::kFreezeRanges, "exchanged_layers", gate::kClipped,
         "Ranges are given to layers in the wrong order.", ExchangeLayers),
      // No kernel takes such a range.
      At(stage::kFreezeRanges, "exchanged_ends", gate::kRefused,
         "A layer's min and max are exchanged.", ExchangeEnds),
      At(stage::kFreezeRanges, "percentile_of_values", gate::kClipped,
         "The percentile is taken of the values, not of the batches' ranges.",
         Scaled("/frozen_max", SIZE_MAX, 0.4f)),
      At(stage::kFreezeRanges, "halved_range", gate::kClipped,
         "The range of one layer is taken for twice its width.",
         Scaled("/frozen_max", 1, 0.5f)),
      At(stage::kFreezeRanges, "lost_exponent", gate::kExcess,
         "9.7e-01 is read as 9.7: ten times too wide.",
         Scaled("/frozen_max", 1, 10)),
      At(stage::kFreezeMin, "zero_min", gate::kClipped,
         "The input is taken for one that is never negative.",
         Scaled("/frozen_min_only", 1, 0)),
      At(stage::kFreezeMin, "upper_tail_of_mins", gate::kClipped,
         "The percentile is taken at the wrong tail: the least negative of "
         "the minima.",
         Scaled("/frozen_min_only", 1, 0.7f)),
      At(stage::kFreezeMin, "lost_exponent_of_min", gate::kExcess,
         "-4.6e-01 is read as -4.6: ten times too wide.",
         Scaled("/frozen_min_only", 1, 10)),
      At(stage::kFreezeMax, "max_from_min", gate::kClipped,
         "The range is made symmetric around zero by the wrong end.",
         TakeMaxFromMin),
      At(stage::kFreezeMax, "lower_tail_of_maxs", gate::kClipped,
         "The percentile is taken at the wrong tail: the least of the maxima.",
         Scaled("/frozen_max_only", 1, 0.7f)),
      At(stage::kFreezeMax, "lost_exponent_of_max", gate::kExcess,
         "9.7e-01 is read as 9.7: ten times too wide.",
         Scaled("/frozen_max_only", 1, 10)),
  };
}

}  // namespace requant
