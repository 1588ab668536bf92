#include "transforms/qdq/qdq_pair.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/const_node.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/types.pb.h"
#include "transforms/layers/graph_builder.h"

namespace requant {
namespace {

using tensorflow::NodeDef;

// Values this small count as zero: a scale made from them overflows.
constexpr float kLeastWidth = 1e-30f;

tensorflow::DataType CodeType(QdqFormat format) {
  return format == QdqFormat::kQint8Scaled ? tensorflow::DT_QINT8
                                           : tensorflow::DT_QUINT8;
}

// Returns a new node's tensor: by number in a graph, by argument in a function.
std::string OutputOf(const QdqPair& pair, const std::string& node, int number,
                     std::string_view argument) {
  if (pair.in_function) return absl::StrCat(node, ":", argument, ":0");
  return number == 0 ? node : absl::StrCat(node, ":", number);
}

void SetMode(QdqFormat format, NodeDef* node) {
  const bool scaled = format == QdqFormat::kQint8Scaled;
  auto& attributes = *node->mutable_attr();
  attributes["mode"].set_s(scaled ? "SCALED" : "MIN_FIRST");
  // Codes from -127: with -128 the range would not be symmetric.
  attributes["narrow_range"].set_b(scaled);
}

NodeDef MakeEnd(const QdqPair& pair, const std::string& name, float value) {
  NodeDef node = MakeScalarConst(name, value);
  if (!pair.after.empty()) node.add_input(absl::StrCat("^", pair.after));
  return node;
}

QdqRange WithZero(QdqFormat format, const QdqRange& range) {
  QdqRange wide = {std::min(0.0f, range.min), std::max(0.0f, range.max)};
  if (format == QdqFormat::kQint8Scaled) {
    wide.max = std::max(-wide.min, wide.max);
    wide.min = -wide.max;
  }
  return wide;
}

std::string TensorOf(const RangeKey& key) {
  return absl::StrCat(key.first, ":", key.second);
}

// Chooses it from what was observed of the tensor.
absl::StatusOr<QdqRange> ChosenRange(const RangeKey& key,
                                     const RangeEntry& entry,
                                     const QdqRangeOptions& options) {
  REQUANT_RETURN_IF_ERROR(CheckRangeEntry(TensorOf(key), entry));
  const auto named = [&](const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat("\"", TensorOf(key),
                                                    "\": ", status.message()));
  };
  if (options.format == QdqFormat::kQint8Scaled) {
    const auto magnitude = ChooseMagnitudeBy(options.choice, entry);
    if (!magnitude.ok()) return named(magnitude.status());
    return FitRange(options.format, {-*magnitude, *magnitude});
  }
  const auto choice = ChooseRangeBy(options.choice, entry);
  if (!choice.ok()) return named(choice.status());
  return FitRange(options.format,
                  {choice->min.value_or(0), choice->max.value_or(0)});
}

// Sites whose range is missing.
struct Missing {
  const QdqSite* first = nullptr;
  int count = 0;

  void Add(const QdqSite& site) {
    if (first == nullptr) first = &site;
    ++count;
  }

  // Says "\"f::x:0\", which node \"m\" of function \"f\" reads, and 3 others".
  std::string Describe() const {
    std::string text = absl::StrCat("\"", TensorOf(first->range),
                                    "\", which node \"", first->node, "\"");
    if (!first->function.empty()) {
      absl::StrAppend(&text, " of function \"", first->function, "\"");
    }
    absl::StrAppend(&text, " reads");
    if (count > 1) {
      absl::StrAppend(&text, ", and ", count - 1, " more input",
                      count > 2 ? "s" : "");
    }
    return text;
  }
};

}  // namespace

absl::StatusOr<QdqFormat> ParseQdqFormat(std::string_view type,
                                         std::string_view mode) {
  if (type == "qint8" && (mode.empty() || mode == "SCALED")) {
    return QdqFormat::kQint8Scaled;
  }
  if (type == "quint8" && (mode.empty() || mode == "MIN_FIRST")) {
    return QdqFormat::kQuint8MinFirst;
  }
  if (type != "qint8" && type != "quint8") {
    return absl::InvalidArgumentError(
        absl::StrCat("the type is qint8 or quint8, not \"", type, "\""));
  }
  if (mode != "SCALED" && mode != "MIN_FIRST") {
    return absl::InvalidArgumentError(
        absl::StrCat("the mode is SCALED or MIN_FIRST, not \"", mode, "\""));
  }
  return absl::InvalidArgumentError(
      type == "qint8" ? "qint8 goes with mode=SCALED; TensorFlow's kernels are "
                        "wrong for qint8 with MIN_FIRST"
                      : "quint8 goes with mode=MIN_FIRST; with SCALED it has "
                        "no codes for values below zero");
}

bool IsTooNarrow(QdqFormat format, const QdqRange& range) {
  const QdqRange wide = WithZero(format, range);
  return wide.max - wide.min < kLeastWidth;
}

QdqRange FitRange(QdqFormat format, const QdqRange& range) {
  QdqRange fit = WithZero(format, range);
  if (IsTooNarrow(format, range)) {
    fit.max = 1;
    fit.min = format == QdqFormat::kQint8Scaled ? -1 : 0;
  }
  return fit;
}

QdqPairNames NamePair(const std::string& consumer, const std::string& producer,
                      int output) {
  const std::string input =
      output == 0 ? producer : absl::StrCat(producer, "__port__", output);
  return {absl::StrCat(consumer, "_eightbit_min_", input),
          absl::StrCat(consumer, "_eightbit_max_", input),
          absl::StrCat(consumer, "_eightbit_quantize_", input),
          absl::StrCat(consumer, "_dequantize")};
}

std::string ResultOf(const QdqPair& pair) {
  return OutputOf(pair, pair.names.dequantize, 0, "output");
}

std::vector<NodeDef> MakePair(const QdqPair& pair) {
  const QdqPairNames& names = pair.names;
  std::vector<NodeDef> nodes = {MakeEnd(pair, names.min, pair.range.min),
                                MakeEnd(pair, names.max, pair.range.max)};
  NodeDef quantize =
      MakeNode(names.quantize, "QuantizeV2",
               {pair.tensor, OutputOf(pair, names.min, 0, "output"),
                OutputOf(pair, names.max, 0, "output")},
               {{"T", CodeType(pair.format)}});
  SetMode(pair.format, &quantize);
  auto& attributes = *quantize.mutable_attr();
  // oneDNN's kernel rounds like this whatever is asked.
  attributes["round_mode"].set_s(pair.format == QdqFormat::kQint8Scaled
                                     ? "HALF_TO_EVEN"
                                     : "HALF_AWAY_FROM_ZERO");
  // By default a range of less than .01 is made wider.
  attributes["ensure_minimum_range"].set_f(0);
  nodes.push_back(std::move(quantize));
  NodeDef dequantize =
      MakeNode(names.dequantize, "Dequantize",
               {OutputOf(pair, names.quantize, 0, "output"),
                OutputOf(pair, names.quantize, 1, "output_min"),
                OutputOf(pair, names.quantize, 2, "output_max")},
               {{"T", CodeType(pair.format)}, {"dtype", tensorflow::DT_FLOAT}});
  SetMode(pair.format, &dequantize);
  nodes.push_back(std::move(dequantize));
  for (NodeDef& node : nodes) node.set_device(pair.device);
  return nodes;
}

absl::StatusOr<std::vector<std::optional<QdqRange>>> RangesOfSites(
    const std::vector<QdqSite>& sites, const QdqRangeOptions& options,
    std::vector<std::string>* warnings) {
  const QdqRange fixed = FitRange(options.format, options.fixed);
  std::vector<std::optional<QdqRange>> ranges(sites.size(), fixed);
  if (options.table == nullptr) return ranges;
  absl::flat_hash_map<RangeKeyView, QdqRange> chosen;
  Missing missing, unreached;
  for (size_t i = 0; i < sites.size(); ++i) {
    const RangeKey& key = sites[i].range;
    ranges[i].reset();
    const RangeEntry* entry = options.table->Find(key.first, key.second);
    if (entry == nullptr) {
      (sites[i].reached ? missing : unreached).Add(sites[i]);
      continue;
    }
    const auto [known, is_new] = chosen.try_emplace(key);
    if (is_new) {
      REQUANT_ASSIGN_OR_RETURN(known->second,
                               ChosenRange(key, *entry, options));
    }
    ranges[i] = known->second;
  }
  if (missing.count > 0 && !options.skip_missing) {
    return absl::NotFoundError(
        absl::StrCat("the range table has no range for ", missing.Describe(),
                     "; calibrate this very graph, or leave them in float with "
                     "missing=skip"));
  }
  if (missing.count > 0) {
    warnings->push_back(absl::StrCat("left in float, for want of a range: ",
                                     missing.Describe()));
  }
  if (unreached.count > 0) {
    warnings->push_back(
        absl::StrCat("left in float, being in functions that the graph does "
                     "not call and without a range: ",
                     unreached.Describe()));
  }
  return ranges;
}

}  // namespace requant
