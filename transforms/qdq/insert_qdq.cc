#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/message_text.h"
#include "base/status_macros.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "graph/const_node.h"
#include "graph/graph_index.h"
#include "ranges/range_choice.h"
#include "ranges/range_table.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/types.pb.h"
#include "transforms/layers/graph_builder.h"
#include "transforms/qdq/qdq_sites.h"
#include "transforms/transform.h"

namespace requant {
namespace {

using tensorflow::FunctionDef;
using tensorflow::GraphDef;
using tensorflow::NodeDef;

// Values this small count as zero, because their scale would overflow.
constexpr float kLeastWidth = 1e-30f;

// Returns the least m for which -m to m holds both numbers. All ranges of pairs
// are such, with 127 levels on either side of zero.
float Magnitude(float min, float max) { return std::max({-min, max, 0.0f}); }

// Returns whether a range of this magnitude is too narrow to have a scale.
bool IsTooNarrow(float magnitude) { return 2 * magnitude < kLeastWidth; }

void SetMode(NodeDef* node) {
  auto& attributes = *node->mutable_attr();
  attributes["mode"].set_s("SCALED");
  // Codes start at -127, since with -128 the range would not be symmetric.
  attributes["narrow_range"].set_b(true);
}

// Inserts pairs (a QuantizeV2 and a Dequantize with two constants) into a graph
// or a function, whose nodes must not be changed otherwise until Commit().
class PairInserter {
 public:
  // `function` is its number in the library, or -1 for the graph's own nodes.
  PairInserter(GraphDef* graph, int function)
      : nodes_(*MutableNodes(function, graph)),
        in_function_(function >= 0),
        has_loops_(absl::c_any_of(nodes_,
                                  [](const NodeDef& node) {
                                    return node.op() == "Enter" ||
                                           node.op() == "RefEnter";
                                  })),
        names_(*graph, function) {}

  // Makes the site's node read its input through a pair: the existing one of
  // another site with the same tensor, or a new one.
  void Insert(const QdqSite& site, float magnitude) {
    const auto [known, is_new] = results_.try_emplace(site.range);
    if (is_new) known->second = AddPair(site, magnitude);
    nodes_.Mutable(site.node_number)->set_input(site.input, known->second);
  }

  int pairs() const { return results_.size(); }

  // Moves the new nodes in front of those that they were made for.
  void Commit() {
    google::protobuf::RepeatedPtrField<NodeDef> old;
    old.Swap(&nodes_);
    nodes_.Reserve(old.size() + added_.size());
    auto next = added_.begin();
    for (int32_t i = 0; i < old.size(); ++i) {
      for (; next != added_.end() && next->first == i; ++next) {
        *nodes_.Add() = std::move(next->second);
      }
      *nodes_.Add() = std::move(*old.Mutable(i));
    }
  }

 private:
  // Adds a pair and returns the name of its result.
  std::string AddPair(const QdqSite& site, float magnitude) {
    const std::string prefix = absl::StrCat(site.node, "_eightbit_");
    const int output = site.range.second;
    const std::string input =
        output == 0 ? site.producer
                    : absl::StrCat(site.producer, "__port__", output);
    const std::string min = AddEnd(site, prefix + "min_" + input, -magnitude);
    const std::string max = AddEnd(site, prefix + "max_" + input, magnitude);
    NodeDef quantize = MakeNode(
        prefix + "quantize_" + input, "QuantizeV2",
        {site.tensor, OutputOf(min, 0, "output"), OutputOf(max, 0, "output")},
        {{"T", tensorflow::DT_QINT8}});
    SetMode(&quantize);
    // oneDNN's kernel rounds like this whatever the attribute says.
    (*quantize.mutable_attr())["round_mode"].set_s("HALF_TO_EVEN");
    // By default, a range narrower than .01 would be widened.
    (*quantize.mutable_attr())["ensure_minimum_range"].set_f(0);
    const std::string codes = Add(site, std::move(quantize));
    NodeDef dequantize = MakeNode(
        absl::StrCat(site.node, "_dequantize"), "Dequantize",
        {OutputOf(codes, 0, "output"), OutputOf(codes, 1, "output_min"),
         OutputOf(codes, 2, "output_max")},
        {{"T", tensorflow::DT_QINT8}, {"dtype", tensorflow::DT_FLOAT}});
    SetMode(&dequantize);
    return OutputOf(Add(site, std::move(dequantize)), 0, "output");
  }

  std::string AddEnd(const QdqSite& site, const std::string& name,
                     float value) {
    NodeDef node = MakeScalarConst(name, value);
    // This puts the constants into the same loop iteration as the tensor.
    if (has_loops_ && !site.producer_op.empty()) {
      node.add_input(absl::StrCat("^", site.producer));
    }
    return Add(site, std::move(node));
  }

  // Adds a node before the site's under its own name or a similar free one, and
  // returns the name.
  std::string Add(const QdqSite& site, NodeDef node) {
    node.set_name(names_.Take(node.name()));
    node.set_device(nodes_[site.node_number].device());
    added_.emplace_back(site.node_number, std::move(node));
    return added_.back().second.name();
  }

  // Returns a new node's tensor, named by number in a graph and by argument in
  // a function.
  std::string OutputOf(const std::string& node, int number,
                       std::string_view argument) const {
    if (in_function_) return absl::StrCat(node, ":", argument, ":0");
    return FormatTensorName(node, number);
  }

  google::protobuf::RepeatedPtrField<NodeDef>& nodes_;
  const bool in_function_;
  const bool has_loops_;
  FreeNames names_;
  // The replacement input for each tensor's readers.
  absl::flat_hash_map<RangeKey, std::string> results_;
  // The new nodes, each with the number of the node it precedes, ascending.
  std::vector<std::pair<int32_t, NodeDef>> added_;
};

std::string TensorOf(const RangeKey& key) {
  return absl::StrCat(key.first, ":", key.second);
}

// Returns "\"f::x:0\", which node \"m\" of function \"f\" reads, and 3 more
// inputs".
std::string Describe(const std::vector<const QdqSite*>& sites) {
  const QdqSite& first = *sites.front();
  return absl::StrCat("\"", TensorOf(first.range), "\", which node \"",
                      first.node, "\"", OfFunction(first.function), " reads",
                      sites.size() > 1
                          ? ", and " + CountText(sites.size() - 1, "more input")
                          : "");
}

struct QdqRangeOptions {
  // The magnitude for all tensors, unless there is a table.
  float fixed = 1;
  // The observed ranges, or null, and how a range is chosen from them.
  const RangeTable* table = nullptr;
  RangeChoiceOptions choice;
  // Whether sites that the table lacks stay as they are. Otherwise they are an
  // error, except in functions that the graph does not reach: no run of the
  // graph can observe those.
  bool skip_missing = false;
};

// Returns the magnitude for a tensor. One that is too narrow is treated as that
// of zeros, which any range holds.
absl::StatusOr<float> ChosenMagnitude(const RangeKey& key,
                                      const RangeEntry& entry,
                                      const RangeChoiceOptions& options) {
  REQUANT_RETURN_IF_ERROR(CheckRangeEntry(TensorOf(key), entry));
  const auto magnitude = ChooseMagnitudeBy(options, entry);
  if (!magnitude.ok()) {
    return absl::Status(magnitude.status().code(),
                        absl::StrCat("\"", TensorOf(key),
                                     "\": ", magnitude.status().message()));
  }
  return IsTooNarrow(*magnitude) ? 1 : *magnitude;
}

// Returns each site's magnitude, or nullopt if it has none, and adds a warning
// about such sites.
absl::StatusOr<std::vector<std::optional<float>>> MagnitudesOf(
    const std::vector<QdqSite>& sites, const QdqRangeOptions& options,
    std::vector<std::string>* warnings) {
  std::vector<std::optional<float>> magnitudes(sites.size(), options.fixed);
  if (options.table == nullptr) return magnitudes;
  absl::flat_hash_map<RangeKeyView, float> chosen;
  std::vector<const QdqSite*> missing, unreached;
  for (size_t i = 0; i < sites.size(); ++i) {
    const RangeKey& key = sites[i].range;
    magnitudes[i].reset();
    const RangeEntry* entry = options.table->Find(key.first, key.second);
    if (entry == nullptr) {
      (sites[i].reached ? missing : unreached).push_back(&sites[i]);
      continue;
    }
    const auto [known, is_new] = chosen.try_emplace(key);
    if (is_new) {
      REQUANT_ASSIGN_OR_RETURN(known->second,
                               ChosenMagnitude(key, *entry, options.choice));
    }
    magnitudes[i] = known->second;
  }
  if (!missing.empty() && !options.skip_missing) {
    return absl::NotFoundError(
        absl::StrCat("the range table has no range for ", Describe(missing),
                     "; calibrate this very graph, or leave them in float with "
                     "missing=skip"));
  }
  if (!missing.empty()) {
    warnings->push_back(absl::StrCat("left in float, for want of a range: ",
                                     Describe(missing)));
  }
  if (!unreached.empty()) {
    warnings->push_back(
        absl::StrCat("left in float, being in functions that the graph does "
                     "not call and without a range: ",
                     Describe(unreached)));
  }
  return magnitudes;
}

struct Inserted {
  int pairs = 0;
  int pairs_of_graph = 0;
  int activations = 0;
  int weights = 0;
  int functions = 0;
};

// Requires that the sites of each function are consecutive.
Inserted InsertPairs(const std::vector<QdqSite>& sites,
                     const std::vector<std::optional<float>>& magnitudes,
                     GraphDef* graph) {
  Inserted inserted;
  for (size_t begin = 0; begin < sites.size();) {
    const int function = sites[begin].function_number;
    PairInserter inserter(graph, function);
    size_t i = begin;
    for (; i < sites.size() && sites[i].function_number == function; ++i) {
      if (!magnitudes[i].has_value()) continue;
      inserter.Insert(sites[i], *magnitudes[i]);
      ++(sites[i].is_weight ? inserted.weights : inserted.activations);
    }
    if (inserter.pairs() > 0) {
      inserter.Commit();
      inserted.pairs += inserter.pairs();
      if (function >= 0) {
        ++inserted.functions;
      } else {
        inserted.pairs_of_graph = inserter.pairs();
      }
    }
    begin = i;
  }
  return inserted;
}

// Reads all options except the table.
absl::StatusOr<QdqRangeOptions> ReadRangeOptions(const Parameters& parameters) {
  QdqRangeOptions options;
  const float min = parameters.Float("min"), max = parameters.Float("max");
  if (!std::isfinite(min) || !std::isfinite(max) || min >= max) {
    return absl::InvalidArgumentError(
        absl::StrFormat("min=%g is not below max=%g, or not finite", min, max));
  }
  options.fixed = Magnitude(min, max);
  if (IsTooNarrow(options.fixed)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("min=%g and max=%g are too near to zero for a scale: "
                        "give a wider range",
                        min, max));
  }
  REQUANT_ASSIGN_OR_RETURN(
      options.choice, ReadRangeChoice(parameters.String("method"),
                                      parameters.Float("value_percentile")));
  const std::string missing = parameters.String("missing");
  if (missing != "error" && missing != "skip") {
    return absl::InvalidArgumentError(
        absl::StrCat("missing is error or skip, not \"", missing, "\""));
  }
  options.skip_missing = missing == "skip";
  return options;
}

// Fails if a function has an op's name, because it would replace that op.
absl::Status CheckFunctionNames(const GraphDef& graph) {
  for (const FunctionDef& function : graph.library().function()) {
    const std::string& name = function.signature().name();
    if (name == "Const" || name == "QuantizeV2" || name == "Dequantize") {
      return absl::InvalidArgumentError(
          absl::StrCat("the graph has a function named \"", name,
                       "\", like an op that is needed; rename it"));
    }
  }
  return absl::OkStatus();
}

// Returns "the graph", "2 functions" or "the graph and 1 function".
std::string Places(const Inserted& inserted) {
  const std::string functions = CountText(inserted.functions, "function");
  if (inserted.functions == 0) return "the graph";
  return inserted.pairs_of_graph == 0
             ? functions
             : absl::StrCat("the graph and ", functions);
}

void Report(const QdqSites& found, const Inserted& inserted,
            const QdqRangeOptions& options, TransformContext* context) {
  if (inserted.pairs > 0) {
    context->notes.push_back(absl::StrCat(
        CountText(inserted.pairs, "pair"), " for ",
        CountText(inserted.activations, "activation"), " and ",
        CountText(inserted.weights, "weight"), " in ", Places(inserted), ", ",
        options.table == nullptr
            ? absl::StrFormat("all with the range %g to %g", -options.fixed,
                              options.fixed)
            : absl::StrCat("each with its own range by ",
                           RangeMethodName(options.choice.method))));
  }
  if (found.already_quantized > 0) {
    context->notes.push_back(
        absl::StrCat(CountText(found.already_quantized, "input"),
                     " left as before, behind a Dequantize already"));
  }
  if (found.sites.empty() && found.already_quantized == 0) {
    const auto& ops = context->parameters.All("op");
    context->warnings.push_back(absl::StrCat(
        "there is nothing to quantize: neither the graph nor a function has a ",
        absl::StrJoin(ops.empty() ? DefaultQdqOps() : ops, " or "),
        " with such float inputs"));
  }
  if (!found.skipped.empty()) {
    const size_t more = found.skipped.size() - 1;
    context->warnings.push_back(
        absl::StrCat("left alone: ", found.skipped.front(),
                     more > 0 ? absl::StrCat(" (and ", more, " more)") : ""));
  }
}

absl::Status InsertQdq(TransformContext& context, GraphDef* graph) {
  const Parameters& parameters = context.parameters;
  REQUANT_ASSIGN_OR_RETURN(const QdqInputs inputs,
                           ParseQdqInputs(parameters.String("inputs")));
  REQUANT_ASSIGN_OR_RETURN(QdqRangeOptions range_options,
                           ReadRangeOptions(parameters));
  REQUANT_RETURN_IF_ERROR(CheckFunctionNames(*graph));
  REQUANT_ASSIGN_OR_RETURN(const RangeTable table,
                           ReadRangeTables(parameters.All("ranges_file")));
  if (parameters.Has("ranges_file")) range_options.table = &table;
  REQUANT_ASSIGN_OR_RETURN(
      const QdqSites found,
      FindQdqSites(*graph, {parameters.All("op"), inputs}));
  REQUANT_ASSIGN_OR_RETURN(
      const auto magnitudes,
      MagnitudesOf(found.sites, range_options, &context.warnings));
  const Inserted inserted = InsertPairs(found.sites, magnitudes, graph);
  Report(found, inserted, range_options, &context);
  return absl::OkStatus();
}

REQUANT_REGISTER_TRANSFORM(
    InsertQdq,
    {"insert_qdq",
     "Puts a QuantizeV2 and a Dequantize before inputs of MatMuls, in the "
     "graph and in its functions.",
     "For models whose variables stay in a SavedModel. The graph still "
     "computes in float, but on inputs that have been rounded to eight bits. A "
     "tensor that several nodes read gets one pair. An input that comes from a "
     "Dequantize is left as it is, so that doing it again changes nothing. New "
     "nodes are named <node>_eightbit_min_<input>, "
     "<node>_eightbit_max_<input>, <node>_eightbit_quantize_<input> and "
     "<node>_dequantize, for a second pair of the node <node>_dequantize_1. "
     "All functions of the library are changed, also those that only a "
     "SavedModel's objects name; of the latter, inputs without a range in the "
     "table stay as they are.",
     {{"op", ParameterType::kString,
       "Inputs of nodes of this type; may be given several times. MatMul, "
       "BatchMatMul, BatchMatMulV2 and BatchMatMulV3 without it; Einsum, "
       "convolutions and fused MatMuls can be chosen too.",
       "", false, true},
      {"inputs", ParameterType::kString,
       "activations, weights (constants and values of variables) or both, "
       "which arithmetic in eight bits needs.",
       "both"},
      {"ranges_file", ParameterType::kString,
       "Range table of this very graph from \"requant calibrate\"; may be "
       "given several times. A tensor of a function is \"function::node\" "
       "there.",
       "", false, true},
      {"method", ParameterType::kString,
       "How ranges are chosen from the table: minmax, percentile (of the "
       "values), or mse (least squared error).",
       "mse"},
      {"value_percentile", ParameterType::kFloat,
       "Of method=percentile: the share of values, in percent, that a range "
       "covers at either end.",
       "99.99"},
      {"missing", ParameterType::kString,
       "What becomes of an input that the table lacks: error, or skip, which "
       "leaves it in float.",
       "error"},
      {"min", ParameterType::kFloat,
       "Without ranges_file: where all ranges begin.", "-1"},
      {"max", ParameterType::kFloat,
       "Without ranges_file: where all ranges end.", "1"}}});

}  // namespace
}  // namespace requant
