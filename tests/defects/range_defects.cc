// Defects of calibration: those of the stages that freeze ranges and of the
// logs that they read, and those of the fast way, in which one calibration
// yields static ranges and quantized embeddings.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "graph/graph_index.h"
#include "ranges/range_table.h"
#include "ranges/value_histogram.h"
#include "re2/re2.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/types.h"
#include "tests/defects/defect.h"
#include "tests/defects/graph_edits.h"
#include "transforms/layers/quantized_layer.h"

namespace requant {
namespace {

using tensorflow::NodeDef;
using tensorflow::qint8;
using tensorflow::quint8;

// One record of a log, split before its last value.
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

// Gives all records the 5th percentile of their node's values.
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

// Imitates the log of a model with other weights: each node gets the values of
// the next one.
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

// Cuts the log off in the middle of its second line.
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

// Returns the constants that a freeze transform made, given their suffix.
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

// Returns an edit that multiplies the first `how_many` of these constants.
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

// Returns the names of the tensors after hidden layers.
std::vector<std::string> HiddenTensors(const RangeTable& table) {
  std::vector<std::string> names;
  for (const auto& [key, entry] : table.entries()) {
    if (absl::StrContains(key.first, "/Relu")) names.push_back(key.first);
  }
  return names;
}

// Exchanges the data for choosing ranges; the moments stay with their tensor.
Edited ExchangeTensors(RangeTable* table) {
  const std::vector<std::string> names = HiddenTensors(*table);
  if (names.size() < 2) return absl::NotFoundError("there is one layer only");
  RangeEntry& first = table->FindOrAdd(names[0]);
  RangeEntry& second = table->FindOrAdd(names[1]);
  std::swap(first.mins, second.mins);
  std::swap(first.maxs, second.maxs);
  std::swap(first.histogram, second.histogram);
  first.channel_mins.clear();
  first.channel_maxs.clear();
  second.channel_mins.clear();
  second.channel_maxs.clear();
  return absl::StrCat("exchanged ", names[0], " and ", names[1]);
}

absl::Status Halve(RangeEntry* entry) {
  for (std::vector<float>* values :
       {&entry->mins, &entry->maxs, &entry->channel_mins,
        &entry->channel_maxs}) {
    for (float& value : *values) value /= 2;
  }
  if (!entry->histogram.has_value()) return absl::OkStatus();
  const ValueHistogram& histogram = *entry->histogram;
  REQUANT_ASSIGN_OR_RETURN(
      entry->histogram,
      ValueHistogram::Restore(histogram.zeros(), histogram.exponent() - 1,
                              histogram.first_bucket(), histogram.counts()));
  return absl::OkStatus();
}

Edited HalveHiddenTensors(RangeTable* table) {
  const std::vector<std::string> names = HiddenTensors(*table);
  if (names.empty()) return absl::NotFoundError("there is no hidden layer");
  for (const std::string& name : names) {
    REQUANT_RETURN_IF_ERROR(Halve(&table->FindOrAdd(name)));
  }
  return absl::StrCat("halved the ranges of ", names.size(), " tensors");
}

Edited HalveNumericColumns(RangeTable* table) {
  for (const auto& [key, entry] : table->entries()) {
    if (!absl::StrContains(key.first, "numeric")) continue;
    REQUANT_RETURN_IF_ERROR(Halve(&table->FindOrAdd(key.first, key.second)));
    return absl::StrCat("halved the range of ", key.first);
  }
  return absl::NotFoundError("no numeric column was calibrated");
}

Edited RenameTensors(RangeTable* table) {
  RangeTable renamed;
  for (const auto& [key, entry] : table->entries()) {
    renamed.FindOrAdd(absl::StrCat("tower/", key.first), key.second) = entry;
  }
  renamed.set_made_from(table->made_from());
  *table = renamed;
  return "renamed all tensors";
}

// Returns the Mul that scales numeric columns before their QuantizeV2.
absl::StatusOr<NodeDef*> NumericScale(const GraphIndex& index) {
  for (NodeDef* mul : NodesOf(index, {"Mul"})) {
    const auto scales = ValuesBehind<float>(index, *mul, 1);
    if (scales.ok() && scales->columns() % kNumericColumns == 0) return mul;
  }
  return absl::NotFoundError("numeric columns are not scaled");
}

Edited RotateNumericScales(GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(NodeDef * mul, NumericScale(*index));
  return EditValues(ValuesBehind<float>(*index, *mul, 1),
                    "moved the values of ", " by one", RotateColumns<float>);
}

// The first layer's last rows belong to the last copies of numeric columns.
Edited LoseCopies(GraphIndex* index) {
  return EditValues(WeightsAt(*index, 0),
                    absl::StrCat("set the last ", kNumericColumns, " rows of "),
                    " to zero", [](auto& weights) {
                      const int64_t rows = kNumericColumns * weights.columns();
                      for (qint8& code : weights.values.last(rows))
                        code.value = 0;
                    });
}

Edited WidenInputRange(GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(NodeDef * layer, QuantizedLayerAt(*index, 1));
  REQUANT_RETURN_IF_ERROR(ScaleInput(*index, *layer, kMaxA, 1.1));
  return absl::StrCat("let ", layer->name(),
                      " read its input by a range 1.1 times as wide");
}

Edited LoseZeroPointOfEmbeddings(GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(auto bias, BiasAt(*index, 0));
  REQUANT_ASSIGN_OR_RETURN(auto weights, WeightsAt(*index, 0));
  // This corresponds to a zero point that is one too small.
  for (size_t i = 0; i < weights.values.size(); ++i) {
    bias.values[i % weights.columns()].value += weights.values[i].value;
  }
  bias.Write();
  return absl::StrCat("put ", bias.node->name(),
                      " at a zero point that is off by one");
}

absl::StatusOr<ConstValues<quint8>> QuantizedTables(const GraphIndex& index) {
  for (NodeDef* gather : NodesOf(index, {"GatherNd"})) {
    auto tables = ValuesBehind<quint8>(index, *gather, 0);
    if (tables.ok()) return tables;
  }
  return absl::NotFoundError("no table is quantized");
}

Edited AddOneToTables(GraphIndex* index) {
  return EditValues(QuantizedTables(*index), "added one to the codes of ", "",
                    [](auto& tables) {
                      for (quint8& code : tables.values) {
                        code.value = std::min(code.value + 1, 255);
                      }
                    });
}

Edited ClipTablesAsSigned(GraphIndex* index) {
  return EditValues(QuantizedTables(*index), "clipped the codes of ", " at 127",
                    [](auto& tables) {
                      for (quint8& code : tables.values) {
                        code.value = std::min<int>(code.value, 127);
                      }
                    });
}

Edited ShiftTables(GraphIndex* index) {
  return EditValues(
      QuantizedTables(*index), "moved the rows of ", " by one",
      [](auto& tables) { RotateRows(tables.values, tables.columns()); });
}

Edited TransposeTables(GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(auto tables, QuantizedTables(*index));
  const int64_t table = tables.values.size() / kCategoricalColumns;
  const int64_t columns = tables.columns(), rows = table / columns;
  const std::vector<quint8> before(tables.values.begin(),
                                   tables.values.begin() + table);
  for (int64_t i = 0; i < table; ++i) {
    tables.values[i] = before[i % columns * rows + i / columns];
  }
  tables.Write();
  return absl::StrCat("read the first table of ", tables.node->name(),
                      " column by column");
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

std::vector<Defect> FastDefects() {
  std::vector<Defect> defects = {
      At("calibrate", "quantize", gate::kClipped, "exchanged_tensors",
         "Two layers' observations are kept under each other's name.",
         ExchangeTensors),
      At("calibrate", "quantize", gate::kClipped, "stale_calibration",
         "The calibration of an earlier training: hidden values half as big.",
         HalveHiddenTensors),
      At("calibrate", "quantize", gate::kError, "stale_input_calibration",
         "The calibration of records that were normalized otherwise: numeric "
         "columns half as big.",
         HalveNumericColumns),
      At("calibrate", "quantize", gate::kRefused, "calibration_of_other_model",
         "The calibration of a model with other names.", RenameTensors),
      At("quantize", gate::kError, "numeric_scales_off_by_one",
         "Each numeric column is scaled by its neighbour's factor.",
         RotateNumericScales),
      At("quantize", gate::kError, "lost_copies",
         "One of a numeric column's copies has no weights.", LoseCopies),
      At("quantize", gate::kShift, "static_bias_scale",
         "A bias is scaled by another range than the kernel uses.",
         [](GraphIndex* index) { return ScaleBias(index, 1, 1.37); }),
      At("quantize", gate::kGain, "static_stale_input_range",
         "A layer reads its input by a range that its input no longer has.",
         WidenInputRange),
      At("quantize", gate::kGain, "zero_point_off_by_one",
         "The bias is folded for a zero point that is off by one.",
         LoseZeroPointOfEmbeddings),
      At("quantize", gate::kError, "static_next_row",
         "A layer's weights are off by one row.",
         [](GraphIndex* index) { return RotateWeightRows(index, 1); }),
      At("quantize", gate::kShift, "table_codes_plus_one",
         "Embeddings are rounded up: their zero point is off by one.",
         AddOneToTables),
      At("quantize", gate::kGain, "signed_table",
         "Unsigned codes are clipped as if they were signed.",
         ClipTablesAsSigned),
      At("quantize", gate::kError, "shifted_codes",
         "The quantized embeddings' rows are off by one.", ShiftTables),
      At("quantize", gate::kShift, "transposed_table",
         "One column's quantized embedding is written column by column.",
         TransposeTables),
      At("quantize", gate::kShift, "static_saturating_weights",
         "Weights use all 127 levels on a CPU that sums pairs of products in "
         "int16.",
         UseAllWeightLevels),
  };
  defects.back().needs_saturation = true;
  for (Defect& defect : defects) defect.workflow = Defect::Workflow::kFast;
  return defects;
}

}  // namespace requant
