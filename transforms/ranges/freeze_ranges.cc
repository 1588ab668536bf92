#include "transforms/ranges/freeze_ranges.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/message_text.h"
#include "base/status_macros.h"
#include "graph/const_node.h"
#include "graph/graph_index.h"
#include "logs_parser/log_parser.h"
#include "ranges/range_choice.h"
#include "ranges/range_table.h"
#include "transforms/layers/calibration_tensors.h"
#include "transforms/layers/float_layer.h"
#include "transforms/layers/tensor_pattern.h"

namespace requant {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;

// A range from fewer observations than this causes a warning.
constexpr int64_t kFewObservations = 8;

// The number of names that an error message lists.
constexpr size_t kNamesShown = 5;

std::string NameList(const std::vector<std::string>& names) {
  std::vector<std::string> shown(
      names.begin(), names.begin() + std::min(names.size(), kNamesShown));
  for (std::string& name : shown) name = absl::StrCat("\"", name, "\"");
  std::string list = absl::StrJoin(shown, ", ");
  if (names.size() > kNamesShown) {
    absl::StrAppend(&list, " and ", names.size() - kNamesShown, " more");
  }
  return list;
}

// Returns whether `entry` has observations for every output of the rule.
bool Fits(const FreezeRule& rule, const RangeEntry& entry) {
  return std::all_of(
      rule.outputs.begin(), rule.outputs.end(),
      [&](const FrozenOutput& output) {
        return !(output.is_min ? entry.mins : entry.maxs).empty() ||
               entry.not_finite.count > 0;
      });
}

// Returns whether `entry` has observations that no output of the rule takes. A
// range table for several kinds of nodes has such entries: freeze_min could
// take the minima of a RequantizationRange for a Min's.
bool HasMoreThan(const FreezeRule& rule, const RangeEntry& entry) {
  bool takes_mins = false, takes_maxs = false;
  for (const FrozenOutput& output : rule.outputs) {
    (output.is_min ? takes_mins : takes_maxs) = true;
  }
  return (!takes_mins && !entry.mins.empty()) ||
         (!takes_maxs && !entry.maxs.empty());
}

// Reads the ranges. If `required`, a log must have records of the rule's kind.
absl::StatusOr<RangeTable> ReadRanges(const FreezeRule& rule, bool required,
                                      TransformContext& context) {
  const auto& logs = context.parameters.All("min_max_log_file");
  const auto& tables = context.parameters.All("ranges_file");
  if (logs.empty() && tables.empty()) {
    return absl::InvalidArgumentError(
        "name the log of a calibration run, min_max_log_file=\"…\", or a range "
        "table, ranges_file=\"…\"");
  }
  RangeTable ranges;
  if (!logs.empty()) {
    LogParserOptions options;
    options.only_kind = rule.record_kind;
    REQUANT_ASSIGN_OR_RETURN(ParsedLogs parsed, ParseLogFiles(logs, options));
    if (parsed.records() == 0 && required) {
      return absl::NotFoundError(
          absl::StrCat("no range in ", absl::StrJoin(logs, ", "), ": ",
                       ExpectedRecords(rule.record_kind)));
    }
    if (parsed.malformed() > 0) {
      context.warnings.push_back(
          absl::StrCat("malformed log lines left out: ", parsed.malformed(),
                       ", the first at ",
                       DescribeMalformed(parsed.first_malformed.front())));
    }
    ranges = std::move(parsed.ranges);
  }
  REQUANT_ASSIGN_OR_RETURN(const RangeTable table, ReadRangeTables(tables));
  ranges.Merge(table);
  return ranges;
}

struct Choice {
  std::string node;
  const RangeEntry* entry;
  // Whether the entry is that of the float tensor whose range the node
  // computes, not of the node itself.
  bool of_tensor = false;
};

absl::flat_hash_set<std::string_view> NodesOf(
    const std::vector<Choice>& choices) {
  absl::flat_hash_set<std::string_view> nodes;
  for (const Choice& choice : choices) nodes.insert(choice.node);
  return nodes;
}

// Returns the tensor that the node's kRangeOfAttribute names, or "".
std::string RangeOf(const NodeDef& node) {
  return StringAttribute(node, kRangeOfAttribute);
}

// Returns the nodes that have their own entry.
absl::StatusOr<std::vector<Choice>> ChooseByOwnName(const FreezeRule& rule,
                                                    const RangeTable& ranges,
                                                    const GraphIndex& index,
                                                    TransformContext& context) {
  const bool compat = context.parameters.Bool("compat");
  std::vector<Choice> chosen;
  std::vector<std::string> absent, left_alone;
  for (const auto& [key, entry] : ranges.entries()) {
    const std::string& name = key.first;
    // Only tensors have histograms, and a float graph has more tensors than the
    // eight-bit graph's nodes refer to.
    if (entry.histogram.has_value() || !Fits(rule, entry)) continue;
    const NodeDef* node = index.Find(name);
    const bool of_this_op = node != nullptr && node->op() == rule.op;
    if (!of_this_op && HasMoreThan(rule, entry)) continue;
    if (node == nullptr) {
      absent.push_back(name);
    } else if (!of_this_op) {
      return absl::InvalidArgumentError(
          absl::StrCat("the log has a range for \"", name, "\", which is a ",
                       node->op(), " in this graph, not a ", rule.op));
    } else if (!compat && !FeedsQuantizationRange(index, name)) {
      left_alone.push_back(name);
    } else {
      REQUANT_RETURN_IF_ERROR(CheckRangeEntry(name, entry));
      chosen.push_back({name, &entry});
    }
  }
  if (!absent.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "the log names ", CountText(absent.size(), "node"),
        absent.size() == 1 ? " that is" : " that are", " not in the graph: ",
        NameList(absent), "; is it the log of another model?"));
  }
  if (!left_alone.empty()) {
    context.warnings.push_back(
        absl::StrCat(NameList(left_alone),
                     " stays as it is: no quantization uses it, so it is part "
                     "of the model (compat=true freezes it all the same)"));
  }
  return chosen;
}

// Returns the nodes without their own entry that name a tensor with an entry.
absl::StatusOr<std::vector<Choice>> ChooseByTensor(
    const FreezeRule& rule, const RangeTable& ranges, const GraphIndex& index,
    const std::vector<Choice>& already_chosen) {
  const absl::flat_hash_set<std::string_view> known = NodesOf(already_chosen);
  std::vector<Choice> chosen;
  for (const NodeDef& node : index.graph().node()) {
    if (node.op() != rule.op || known.contains(node.name())) continue;
    const std::string tensor = RangeOf(node);
    if (tensor.empty()) continue;
    const TensorName name = ParseTensorName(tensor);
    const RangeEntry* entry = ranges.Find(name.node, name.port);
    if (entry == nullptr || !Fits(rule, *entry)) continue;
    REQUANT_RETURN_IF_ERROR(CheckRangeEntry(tensor, *entry));
    chosen.push_back({node.name(), entry, /*of_tensor=*/true});
  }
  return chosen;
}

// Returns the error for ranges that fit no node.
absl::Status NothingFits(const FreezeRule& rule, const RangeTable& ranges,
                         const GraphIndex& index) {
  const auto& entries = ranges.entries();
  if (std::none_of(entries.begin(), entries.end(), [](const auto& item) {
        return item.second.histogram.has_value();
      })) {
    return absl::NotFoundError(absl::StrCat(
        "the log has no range of a ", rule.op, " that a quantization uses"));
  }
  for (const NodeDef& node : index.graph().node()) {
    const std::string tensor = RangeOf(node);
    if (node.op() != rule.op || tensor.empty()) continue;
    return absl::NotFoundError(absl::StrCat(
        "the range table fits no ", rule.op, " of this graph; \"", node.name(),
        "\", for one, computes the range of \"", tensor,
        "\", which the table does not have: calibrate on the float graph that "
        "was quantized"));
  }
  return absl::NotFoundError(absl::StrCat(
      "the range table is of float tensors, and no ", rule.op,
      " of this graph says of which tensor its range is: quantize the graph "
      "with quantize_eightbit, which notes that in the attribute ",
      kRangeOfAttribute));
}

bool HasQuantization(const GraphDef& graph) {
  return std::any_of(graph.node().begin(), graph.node().end(),
                     [](const NodeDef& node) {
                       return absl::StrContains(node.op(), "uantize");
                     });
}

// Returns whether the graph has a node that the rule could freeze. The graph of
// a model without Relu has no RequantizationRange.
bool HasNodesToFreeze(const FreezeRule& rule, const GraphIndex& index,
                      bool compat) {
  const auto& nodes = index.graph().node();
  return std::any_of(nodes.begin(), nodes.end(), [&](const NodeDef& node) {
    return node.op() == rule.op &&
           (compat || FeedsQuantizationRange(index, node.name()));
  });
}

// Returns the nodes to freeze, in the order of their names. If `required`,
// having none is an error.
absl::StatusOr<std::vector<Choice>> ChooseNodes(const FreezeRule& rule,
                                                const RangeTable& ranges,
                                                const GraphIndex& index,
                                                bool required,
                                                TransformContext& context) {
  REQUANT_ASSIGN_OR_RETURN(std::vector<Choice> chosen,
                           ChooseByOwnName(rule, ranges, index, context));
  REQUANT_ASSIGN_OR_RETURN(const std::vector<Choice> by_tensor,
                           ChooseByTensor(rule, ranges, index, chosen));
  chosen.insert(chosen.end(), by_tensor.begin(), by_tensor.end());
  if (chosen.empty() && required) return NothingFits(rule, ranges, index);
  std::sort(chosen.begin(), chosen.end(),
            [](const Choice& a, const Choice& b) { return a.node < b.node; });
  return chosen;
}

// Fails if a node that should be frozen is missing from the log.
absl::Status CheckNoneForgotten(const FreezeRule& rule,
                                const std::vector<Choice>& chosen,
                                const GraphIndex& index) {
  const absl::flat_hash_set<std::string_view> known = NodesOf(chosen);
  std::vector<std::string> forgotten;
  for (const NodeDef& node : index.graph().node()) {
    if (node.op() == rule.op && !known.contains(node.name()) &&
        FeedsQuantizationRange(index, node.name())) {
      forgotten.push_back(node.name());
    }
  }
  if (forgotten.empty()) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("the log never mentions ", forgotten.size(), " ", rule.op,
                   " nodes of the graph: ", NameList(forgotten),
                   "; insert logging into this graph, or run requant calibrate "
                   "on it or on its float graph, and calibrate again"));
}

struct FreezeOptions {
  RangeChoiceOptions choice;
  bool min_from_upper_tail = false;
};

// Returns the values for the rule's outputs, in their order.
absl::StatusOr<std::vector<float>> ChosenValues(const FreezeRule& rule,
                                                const Choice& choice,
                                                const FreezeOptions& options) {
  const RangeEntry& entry = *choice.entry;
  const absl::StatusOr<RangeChoice> range =
      ChooseRangeBy(options.choice, entry);
  if (!range.ok()) {
    return absl::Status(
        range.status().code(),
        absl::StrCat("\"", choice.node, "\": ", range.status().message()));
  }
  std::vector<float> values;
  for (const FrozenOutput& output : rule.outputs) {
    const std::optional<float>& end = output.is_min ? range->min : range->max;
    if (!end.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", choice.node,
                       "\" has a range with one end only; calibrate again"));
    }
    float value = *end;
    // The original freeze_min takes index round(n * 0.95) of the ascending
    // minima.
    if (output.is_min && options.min_from_upper_tail) {
      value = UpperPercentile(entry.mins, options.choice.percentiles.min);
    }
    // The kernels' ranges include zero, but the observed range of a tensor that
    // is always positive, for example, does not.
    if (choice.of_tensor) {
      value = output.is_min ? std::min(value, 0.0f) : std::max(value, 0.0f);
    }
    values.push_back(value);
  }
  return values;
}

// Fails if the ends of a quantization range that includes the constant `name`
// are both constant by now and in the wrong order.
absl::Status CheckQuantizeRanges(const GraphIndex& index,
                                 const std::string& name) {
  for (const Use& use : index.Uses(name)) {
    if (use.node->op() != "QuantizeV2") continue;
    const NodeDef* min = index.Producer(*use.node, 1);
    const NodeDef* max = index.Producer(*use.node, 2);
    if (min == nullptr || max == nullptr) continue;
    const auto min_value = ScalarConstValue(*min);
    const auto max_value = ScalarConstValue(*max);
    if (min_value.ok() && max_value.ok() && *min_value > *max_value) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "\"%s\" would quantize the empty range [%g, %g]; do the two logs "
          "belong to the same model and percentiles?",
          use.node->name(), *min_value, *max_value));
    }
  }
  return absl::OkStatus();
}

absl::Status FreezeNode(const FreezeRule& rule, const Choice& choice,
                        const FreezeOptions& options, GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(const std::vector<float> values,
                           ChosenValues(rule, choice, options));
  for (size_t i = 0; i < values.size(); ++i) {
    const FrozenOutput& output = rule.outputs[i];
    const std::string name = absl::StrCat(choice.node, output.suffix);
    REQUANT_RETURN_IF_ERROR(
        index->Add(MakeScalarConst(name, values[i])).status());
    index->RedirectUses({choice.node, output.port}, {name, 0});
    REQUANT_RETURN_IF_ERROR(CheckQuantizeRanges(*index, name));
  }
  const std::string first =
      absl::StrCat(choice.node, rule.outputs.front().suffix);
  index->RedirectUses({choice.node, kControlPort}, {first, kControlPort});
  if (values.size() == 2 && values[0] > values[1]) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "the percentiles leave \"%s\" the range [%g, %g], which is empty; "
        "lower min_percentile and max_percentile",
        choice.node, values[0], values[1]));
  }
  return index->Remove(choice.node);
}

absl::Status CheckNoOutputs(const std::vector<Choice>& chosen,
                            const TransformContext& context) {
  const absl::flat_hash_set<std::string_view> nodes = NodesOf(chosen);
  for (const std::string& output : context.outputs) {
    const std::string_view name = ParseTensorName(output).node;
    if (!nodes.contains(name)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", name, "\" is one of --outputs and cannot become a constant"));
  }
  return absl::OkStatus();
}

absl::StatusOr<FreezeOptions> GetOptions(const FreezeRule& rule,
                                         const TransformContext& context) {
  const auto& parameters = context.parameters;
  FreezeOptions options;
  REQUANT_ASSIGN_OR_RETURN(
      options.choice, ReadRangeChoice(parameters.String("method"),
                                      parameters.Float("value_percentile")));
  options.choice.percentiles = {parameters.Float("min_percentile"),
                                parameters.Float("max_percentile")};
  const bool compat = parameters.Bool("compat");
  options.min_from_upper_tail = rule.compat_takes_upper_tail_of_mins && compat;
  for (float percentile :
       {options.choice.percentiles.min, options.choice.percentiles.max}) {
    if (!(percentile >= 0 && percentile <= 100)) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "a percentile lies between 0 and 100, not at %g", percentile));
    }
  }
  if (compat && options.choice.method != RangeMethod::kMinMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "compat=true chooses as the original did, which had no method=",
        RangeMethodName(options.choice.method)));
  }
  return options;
}

// Returns how the values are chosen, for the note.
std::string DescribeOptions(const FreezeRule& rule,
                            const FreezeOptions& options, bool compat) {
  if (options.choice.method == RangeMethod::kPercentile) {
    return absl::StrCat("method percentile, value_percentile ",
                        options.choice.value_percentile);
  }
  if (options.choice.method == RangeMethod::kMse) return "method mse";
  std::vector<std::string> settings;
  for (const FrozenOutput& output : rule.outputs) {
    const Percentiles& percentiles = options.choice.percentiles;
    settings.push_back(output.is_min
                           ? absl::StrCat("min_percentile ", percentiles.min)
                           : absl::StrCat("max_percentile ", percentiles.max));
  }
  if (compat) settings.push_back("compat");
  return absl::StrJoin(settings, ", ");
}

// Warns if a log has one node less often than another. Since every batch logs
// each node once, such a log may have been cut.
void WarnOfACutLog(const std::vector<Choice>& chosen,
                   TransformContext* context) {
  const Choice* fewest = nullptr;
  const Choice* most = nullptr;
  for (const Choice& choice : chosen) {
    if (choice.of_tensor) continue;
    const int64_t count = choice.entry->count;
    if (fewest == nullptr || count < fewest->entry->count) fewest = &choice;
    if (most == nullptr || count > most->entry->count) most = &choice;
  }
  if (fewest == nullptr || fewest->entry->count == most->entry->count) return;
  context->warnings.push_back(
      absl::StrCat("\"", fewest->node, "\" has ",
                   CountText(fewest->entry->count, "observation"), " and \"",
                   most->node, "\" ", most->entry->count,
                   ": not every batch is there whole; if a logging run was "
                   "stopped, log again"));
}

}  // namespace

absl::Status FreezeRanges(const FreezeRule& rule, TransformContext& context,
                          GraphDef* graph) {
  REQUANT_ASSIGN_OR_RETURN(const FreezeOptions options,
                           GetOptions(rule, context));
  REQUANT_ASSIGN_OR_RETURN(GraphIndex index, GraphIndex::Create(graph));
  const bool required =
      HasNodesToFreeze(rule, index, context.parameters.Bool("compat"));
  REQUANT_ASSIGN_OR_RETURN(const RangeTable ranges,
                           ReadRanges(rule, required, context));
  REQUANT_ASSIGN_OR_RETURN(const std::vector<Choice> chosen,
                           ChooseNodes(rule, ranges, index, required, context));
  REQUANT_RETURN_IF_ERROR(CheckNoOutputs(chosen, context));
  REQUANT_RETURN_IF_ERROR(CheckNoneForgotten(rule, chosen, index));
  if (chosen.empty()) {
    context.notes.push_back(absl::StrCat(
        "nothing to freeze: no quantization of this graph uses a ", rule.op));
    if (!HasQuantization(*graph)) {
      context.warnings.push_back(
          "the graph computes nothing in eight bits; run quantize_eightbit "
          "first");
    }
    return absl::OkStatus();
  }
  int64_t fewest = chosen.front().entry->count;
  for (const Choice& choice : chosen) {
    REQUANT_RETURN_IF_ERROR(FreezeNode(rule, choice, options, &index));
    fewest = std::min(fewest, choice.entry->count);
  }
  index.Commit();
  WarnOfACutLog(chosen, &context);
  context.notes.push_back(absl::StrCat(
      "freezes ", CountText(chosen.size(), absl::StrCat(rule.op, " node")),
      " from at least ", CountText(fewest, "observation"), " each (",
      DescribeOptions(rule, options, context.parameters.Bool("compat")), ")"));
  if (fewest < kFewObservations) {
    context.warnings.push_back(
        absl::StrCat("a range from ", CountText(fewest, "observation"),
                     " may not have settled; calibrate with more batches"));
  }
  return absl::OkStatus();
}

std::vector<ParameterSpec> FreezeParameters() {
  return {
      {"min_max_log_file", ParameterType::kString,
       "Log of a calibration run; may be given several times.", "", false,
       true},
      {"ranges_file", ParameterType::kString,
       "Range table, from requant parse_log --output or requant calibrate; may "
       "be given several times. A node that it does not name takes the range "
       "of the float tensor that quantize_eightbit noted on it.",
       "", false, true},
      {"min_percentile", ParameterType::kFloat,
       "The lowest minima to ignore, in percent of the observations.", "5"},
      {"max_percentile", ParameterType::kFloat,
       "The highest maxima to ignore, in percent of the observations.", "5"},
      {"method", ParameterType::kString,
       "minmax: by the percentiles of the batches' minima and maxima. "
       "percentile: by value_percentile of the values. mse: the range with the "
       "least squared error. The last two need a range table that requant "
       "calibrate made of the float graph.",
       "minmax"},
      {"value_percentile", ParameterType::kFloat,
       "With method=percentile: this many percent of the values lie below the "
       "maximum, and as many above the minimum.",
       "99.99"},
      {"compat", ParameterType::kBool,
       "Choose exactly as the original did, mistakes included.", "false"},
  };
}

}  // namespace requant
