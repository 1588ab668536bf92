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
using Edited = absl::StatusOr<std::string>;

// The constants that a freeze transform made, by the end of their name.
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

Edited Scale(GraphIndex* index, std::string_view suffix, size_t how_many,
             float factor) {
  REQUANT_ASSIGN_OR_RETURN(auto frozen, Frozen(*index, suffix));
  frozen.resize(std::min(frozen.size(), how_many));
  for (ConstValues<float>& value : frozen) {
    value.values[0] *= factor;
    value.Write();
  }
  return absl::StrCat("multiplied ", frozen.size(), " of …", suffix, " by ",
                      factor);
}

Edited ExchangeLayers(GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(auto maxs, Frozen(*index, "/frozen_max"));
  if (maxs.size() < 2) return absl::NotFoundError("there is one layer only");
  std::swap(maxs[0].values[0], maxs[1].values[0]);
  maxs[0].Write();
  maxs[1].Write();
  return absl::StrCat("exchanged ", maxs[0].node->name(), " and ",
                      maxs[1].node->name());
}

Edited ExchangeEnds(GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(auto mins, Frozen(*index, "/frozen_min"));
  REQUANT_ASSIGN_OR_RETURN(auto maxs, Frozen(*index, "/frozen_max"));
  std::swap(mins[0].values[0], maxs[0].values[0]);
  mins[0].Write();
  maxs[0].Write();
  return absl::StrCat("exchanged ", mins[0].node->name(), " and ",
                      maxs[0].node->name());
}

Edited TakePercentileOfValues(GraphIndex* index) {
  return Scale(index, "/frozen_max", SIZE_MAX, 0.4f);
}

Edited LoseExponent(GraphIndex* index) {
  return Scale(index, "/frozen_max", 1, 10);
}

Edited HalveOneRange(GraphIndex* index) {
  return Scale(index, "/frozen_max", 1, 0.5f);
}

Edited SetMinToZero(GraphIndex* index) {
  return Scale(index, "/frozen_min_only", 1, 0);
}

Edited TakeUpperTailOfMins(GraphIndex* index) {
  return Scale(index, "/frozen_min_only", 1, 0.7f);
}

Edited LoseMinsExponent(GraphIndex* index) {
  return Scale(index, "/frozen_min_only", 1, 10);
}

Edited TakeMaxFromMin(GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(auto mins, Frozen(*index, "/frozen_min_only"));
  REQUANT_ASSIGN_OR_RETURN(auto maxs, Frozen(*index, "/frozen_max_only"));
  maxs[0].values[0] = -mins[0].values[0];
  maxs[0].Write();
  return absl::StrCat("set ", maxs[0].node->name(), " to ", maxs[0].values[0]);
}

Edited TakeLowerTailOfMaxs(GraphIndex* index) {
  return Scale(index, "/frozen_max_only", 1, 0.7f);
}

Edited LoseMaxsExponent(GraphIndex* index) {
  return Scale(index, "/frozen_max_only", 1, 10);
}

Defect At(const char* stage, std::string_view name, std::string_view sentence,
          GraphEdit edit) {
  return {name,  sentence, Defect::Workflow::kPublished,
          stage, stage,    Defect::Ending::kGate,
          edit};
}

}  // namespace

std::vector<Defect> RangeDefects() {
  return {
      At(stage::kFreezeRanges, "exchanged_layers",
         "Ranges are given to layers in the wrong order.", ExchangeLayers),
      // No kernel takes such a range.
      {"exchanged_ends", "A layer's min and max are exchanged.",
       Defect::Workflow::kPublished, stage::kFreezeRanges, stage::kFreezeRanges,
       Defect::Ending::kRefusal, ExchangeEnds},
      At(stage::kFreezeRanges, "percentile_of_values",
         "The percentile is taken of the values, not of the batches' ranges.",
         TakePercentileOfValues),
      At(stage::kFreezeRanges, "halved_range",
         "The range of one layer is taken for twice its width.", HalveOneRange),
      At(stage::kFreezeRanges, "lost_exponent",
         "9.7e-01 is read as 9.7: ten times too wide.", LoseExponent),
      At(stage::kFreezeMin, "zero_min",
         "The input is taken for one that is never negative.", SetMinToZero),
      At(stage::kFreezeMin, "upper_tail_of_mins",
         "The percentile is taken at the wrong tail: the least negative of "
         "the minima.",
         TakeUpperTailOfMins),
      At(stage::kFreezeMin, "lost_exponent_of_min",
         "-4.6e-01 is read as -4.6: ten times too wide.", LoseMinsExponent),
      At(stage::kFreezeMax, "max_from_min",
         "The range is made symmetric around zero by the wrong end.",
         TakeMaxFromMin),
      At(stage::kFreezeMax, "lower_tail_of_maxs",
         "The percentile is taken at the wrong tail: the least of the maxima.",
         TakeLowerTailOfMaxs),
      At(stage::kFreezeMax, "lost_exponent_of_max",
         "9.7e-01 is read as 9.7: ten times too wide.", LoseMaxsExponent),
  };
}

}  // namespace requant
