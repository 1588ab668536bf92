// Defects of the logs that ranges are frozen from.

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "re2/re2.h"
#include "tests/defects/defect.h"

namespace requant {
namespace {

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

Edited ExchangeEnds(std::string* text) {
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

Defect In(const char* log_stage, const char* stopped_at, const char* gate,
          std::string_view name, std::string_view sentence,
          const LogEdit& edit) {
  return {name, sentence, Defect::Workflow::kPublished, log_stage, stopped_at,
          gate, edit};
}

}  // namespace

std::vector<Defect> LogDefects() {
  using stage::kFreezeMax;
  using stage::kFreezeMin;
  using stage::kFreezeRanges;
  using stage::kLogMax;
  using stage::kLogMin;
  using stage::kLogRanges;
  return {
      In(kLogRanges, kFreezeRanges, gate::kClipped, "stale_log",
         "A log of the same graph before its weights were scaled.",
         Scaled(0.5)),
      In(kLogRanges, kFreezeRanges, gate::kExcess, "stale_wide_log",
         "The log of an earlier training: all ranges four times as wide.",
         Scaled(4)),
      In(kLogRanges, kFreezeRanges, gate::kClipped, "wrong_tail_of_log",
         "The percentile is taken at the wrong tail of the maxima.",
         TakeLowerTail),
      In(kLogRanges, kFreezeRanges, gate::kClipped, "log_of_sister_model",
         "The log of another model that has the same node names.", RotateNodes),
      In(kLogRanges, kFreezeRanges, gate::kRefused, "log_of_other_model",
         "The log of a model with other node names.", RenameNodes),
      In(kLogRanges, kFreezeRanges, gate::kRefused, "log_without_a_layer",
         "One layer wrote nothing to the log.", LoseOneNode),
      In(kLogRanges, kFreezeRanges, gate::kRefused, "log_with_exchanged_ends",
         "Max is logged before min.", ExchangeEnds),
      In(kLogRanges, kFreezeRanges, gate::kClipped, "log_of_one_batch",
         "The calibration ended after its first batch.", KeepOneBatch),
      In(kLogRanges, kFreezeRanges, gate::kRefused, "cut_log",
         "The disk was full in the middle of the first batch.", CutSoon),
      In(kLogMin, kFreezeMin, gate::kClipped, "unsigned_min_log",
         "The sign is lost on the way through the log.", Scaled(-1)),
      In(kLogMin, kFreezeMin, gate::kClipped, "stale_min_log",
         "A log of the minima before the embeddings were trained to the end.",
         Scaled(0.5)),
      In(kLogMax, kFreezeMax, gate::kClipped, "stale_max_log",
         "A log of the maxima of records that were normalized otherwise.",
         Scaled(0.5)),
      In(kLogMax, kFreezeMax, gate::kRefused, "min_log_for_max",
         "The log of the minima is given where that of the maxima belongs.",
         RewriteAsMins),
  };
}

}  // namespace requant
