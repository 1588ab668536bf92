// Defects of the fast way: one calibration, static ranges, quantized
// embeddings.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/graph_index.h"
#include "ranges/range_table.h"
#include "ranges/value_histogram.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/types.h"
#include "tests/defects/defect.h"
#include "tests/defects/graph_edits.h"
#include "transforms/layers/quantized_layer.h"

namespace requant {
namespace {

using tensorflow::NodeDef;
using tensorflow::qint32;
using tensorflow::qint8;
using tensorflow::quint8;

// Returns the tensors after hidden layers, by name.
std::vector<std::string> HiddenTensors(const RangeTable& table) {
  std::vector<std::string> names;
  for (const auto& [key, entry] : table.entries()) {
    if (absl::StrContains(key.first, "/Relu")) names.push_back(key.first);
  }
  return names;
}

// Exchanges what the range is chosen from; the moments stay with their tensor.
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

// The first layer's last rows are those of the numeric columns' last copies.
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
  // A zero point that is one too small.
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
