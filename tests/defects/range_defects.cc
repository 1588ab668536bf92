// Defects of the stages that freeze ranges, and of the logs that they read.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "graph/graph_index.h"
#include "re2/re2.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tests/defects/defect.h"
#include "tests/defects/graph_edits.h"

namespace requant {
namespace {

using tensorflow::NodeDef;

// One record of a log: everything before its last value, and that.
struct Line {
  std::string node;
  std::string before;
  double value = 0;
};

absl::StatusOr<std::vector<Line>> Lines(const std::string& text) {
  static const RE2 pattern(
      R"((;(.*)__print__;__\w+:(?:\[[^\]]*\])?)\[([^\]]*)\])");
  std::vector<Line> lines;
  for (const std::string_view line :
       absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    Line parsed;
    if (RE2::PartialMatch(line, pattern, &parsed.before, &parsed.node,
                          &parsed.value)) {
      lines.push_back(parsed);
    }
  }
  if (!lines.empty()) return lines;
  return absl::NotFoundError("the log has no records");
}

void Write(const std::vector<Line>& lines, std::string* text) {
  text->clear();
  for (const Line& line : lines) {
    absl::StrAppend(text, line.before, "[", line.value, "]\n");
  }
}

std::map<std::string, std::vector<double>> ValuesByNode(
    const std::vector<Line>& lines) {
  std::map<std::string, std::vector<double>> values;
  for (const Line& line : lines) values[line.node].push_back(line.value);
  return values;
}

// Changes the records of a log.
Edited EditLines(std::string* text,
                 const std::function<Edited(std::vector<Line>&)>& edit) {
  auto lines = Lines(*text);
  if (!lines.ok()) return lines.status();
  Edited done = edit(*lines);
  if (done.ok()) Write(*lines, text);
  return done;
}

LogEdit Scaled(double factor) {
  return [=](std::string* text) {
    return EditLines(text, [=](std::vector<Line>& lines) {
      for (Line& line : lines) line.value *= factor;
      return absl::StrCat("multiplied ", lines.size(), " values by ", factor);
    });
  };
}

// Gives all records the value that 5 % of their node's values are below.
Edited TakeLowerTail(std::string* text) {
  constexpr double kShare = 0.05;
  return EditLines(text, [](std::vector<Line>& lines) {
    auto values = ValuesByNode(lines);
    for (auto& [node, of_node] : values) {
      std::sort(of_node.begin(), of_node.end());
    }
    for (Line& line : lines) {
      const std::vector<double>& of_node = values[line.node];
      line.value = of_node[static_cast<size_t>(of_node.size() * kShare)];
    }
    return absl::StrCat("replaced ", lines.size(), " values by the ", kShare,
                        " quantile of their node");
  });
}

// Makes it like the log of a model with other weights: each node gets the
// values of the next.
Edited RotateNodes(std::string* text) {
  return EditLines(text, [](std::vector<Line>& lines) -> Edited {
    auto values = ValuesByNode(lines);
    if (values.size() < 2) return absl::NotFoundError("there is one node only");
    std::map<std::string, std::string> next;
    for (auto node = values.begin(); node != values.end(); ++node) {
      const auto after = std::next(node);
      next[node->first] =
          after == values.end() ? values.begin()->first : after->first;
    }
    std::map<std::string, size_t> used;
    for (Line& line : lines) {
      const std::vector<double>& of_next = values[next[line.node]];
      line.value = of_next[used[line.node]++ % of_next.size()];
    }
    return absl::StrCat("gave ", values.size(), " nodes each other's values");
  });
}

Edited RenameNodes(std::string* text) {
  const int renamed = absl::StrReplaceAll({{"hiddenlayer_", "dense_"}}, text);
  if (renamed == 0) return absl::NotFoundError("no node is a hidden layer");
  return absl::StrCat("renamed ", renamed, " nodes");
}

// Cuts the log in the middle of its second line.
Edited CutSoon(std::string* text) {
  const size_t line = text->find('\n');
  if (line == std::string::npos || line + 40 > text->size()) {
    return absl::NotFoundError("the log is too short to be cut");
  }
  text->resize(line + 40);
  return absl::StrCat("cut the log after ", text->size(), " bytes");
}

// Keeps only the first record of each node.
Edited KeepOneBatch(std::string* text) {
  return EditLines(text, [](std::vector<Line>& lines) {
    lines.resize(ValuesByNode(lines).size());
    return absl::StrCat("kept ", lines.size(), " lines");
  });
}

Edited LoseOneNode(std::string* text) {
  return EditLines(text, [](std::vector<Line>& lines) {
    const std::string node = lines.front().node;
    lines.erase(
        std::remove_if(lines.begin(), lines.end(),
                       [&](const Line& line) { return line.node == node; }),
        lines.end());
    return absl::StrCat("removed the lines of ", node);
  });
}

Edited ExchangeLoggedEnds(std::string* text) {
  const int changed =
      RE2::GlobalReplace(text, R"(__requant_min_max:(\[[^\]]*\])(\[[^\]]*\]))",
                         R"(__requant_min_max:\2\1)");
  if (changed == 0) return absl::NotFoundError("no record has both ends");
  return absl::StrCat("exchanged min and max in ", changed, " lines");
}

Edited RewriteAsMins(std::string* text) {
  const int changed = absl::StrReplaceAll(
      {{"MatMul_eightbit_max_", "MatMul_eightbit_min_"}, {"__max:", "__min:"}},
      text);
  if (changed == 0) return absl::NotFoundError("the log has no maxima");
  return "wrote the log's maxima as minima";
}

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

}  // namespace

std::vector<Defect> RangeDefects() {
  return {
      At("log_ranges", "freeze_ranges", gate::kClipped, "stale_log",
         "A log of the same graph before its weights were scaled.",
         Scaled(0.5)),
      At("log_ranges", "freeze_ranges", gate::kExcess, "stale_wide_log",
         "The log of an earlier training: all ranges four times as wide.",
         Scaled(4)),
      At("log_ranges", "freeze_ranges", gate::kClipped, "wrong_tail_of_log",
         "The percentile is taken at the wrong tail of the maxima.",
         TakeLowerTail),
      At("log_ranges", "freeze_ranges", gate::kClipped, "log_of_sister_model",
         "The log of another model that has the same node names.", RotateNodes),
      At("log_ranges", "freeze_ranges", gate::kRefused, "log_of_other_model",
         "The log of a model with other node names.", RenameNodes),
      At("log_ranges", "freeze_ranges", gate::kRefused, "log_without_a_layer",
         "One layer wrote nothing to the log.", LoseOneNode),
      At("log_ranges", "freeze_ranges", gate::kRefused,
         "log_with_exchanged_ends", "Max is logged before min.",
         ExchangeLoggedEnds),
      At("log_ranges", "freeze_ranges", gate::kClipped, "log_of_one_batch",
         "The calibration ended after its first batch.", KeepOneBatch),
      At("log_ranges", "freeze_ranges", gate::kRefused, "cut_log",
         "The disk was full in the middle of the first batch.", CutSoon),
      At("log_min", "freeze_min", gate::kClipped, "unsigned_min_log",
         "The sign is lost on the way through the log.", Scaled(-1)),
      At("log_min", "freeze_min", gate::kClipped, "stale_min_log",
         "A log of the minima before the embeddings were trained to the end.",
         Scaled(0.5)),
      At("log_max", "freeze_max", gate::kClipped, "stale_max_log",
         "A log of the maxima of records that were normalized otherwise.",
         Scaled(0.5)),
      At("log_max", "freeze_max", gate::kRefused, "min_log_for_max",
         "The log of the minima is given where that of the maxima belongs.",
         RewriteAsMins),
      At("freeze_ranges", gate::kClipped, "exchanged_layers",
         "Ranges are given to layers in the wrong order.", ExchangeLayers),
      // No kernel takes such a range.
      At("freeze_ranges", gate::kRefused, "exchanged_ends",
         "A layer's min and max are exchanged.", ExchangeEnds),
      At("freeze_ranges", gate::kClipped, "percentile_of_values",
         "The percentile is taken of the values, not of the batches' ranges.",
         Scaled("/frozen_max", SIZE_MAX, 0.4f)),
      At("freeze_ranges", gate::kClipped, "halved_range",
         "The range of one layer is taken for twice its width.",
         Scaled("/frozen_max", 1, 0.5f)),
      At("freeze_ranges", gate::kExcess, "lost_exponent",
         "9.7e-01 is read as 9.7: ten times too wide.",
         Scaled("/frozen_max", 1, 10)),
      At("freeze_min", gate::kClipped, "zero_min",
         "The input is taken for one that is never negative.",
         Scaled("/frozen_min_only", 1, 0)),
      At("freeze_min", gate::kClipped, "upper_tail_of_mins",
         "The percentile is taken at the wrong tail: the least negative of "
         "the minima.",
         Scaled("/frozen_min_only", 1, 0.7f)),
      At("freeze_min", gate::kExcess, "lost_exponent_of_min",
         "-4.6e-01 is read as -4.6: ten times too wide.",
         Scaled("/frozen_min_only", 1, 10)),
      At("freeze_max", gate::kClipped, "max_from_min",
         "The range is made symmetric around zero by the wrong end.",
         TakeMaxFromMin),
      At("freeze_max", gate::kClipped, "lower_tail_of_maxs",
         "The percentile is taken at the wrong tail: the least of the maxima.",
         Scaled("/frozen_max_only", 1, 0.7f)),
      At("freeze_max", gate::kExcess, "lost_exponent_of_max",
         "9.7e-01 is read as 9.7: ten times too wide.",
         Scaled("/frozen_max_only", 1, 10)),
  };
}

}  // namespace requant
