#include "transforms/eightbit/embedding_plan.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/const_node.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "transforms/layers/quantized_layer.h"
#include "transforms/layers/tensor_pattern.h"

namespace requant {
namespace {

using tensorflow::NodeDef;
using tensorflow::Tensor;

// Models have far fewer nodes than this between a table and its quantization.
constexpr int kMaxDepth = 64;

enum class OpKind { kOther, kConcat, kPack, kArrange, kGather };

// Recognizes only ops that have kernels for quint8 and qint8.
OpKind KindOf(const NodeDef& node) {
  static const auto* kinds = new absl::flat_hash_map<std::string, OpKind>{
      {"Concat", OpKind::kConcat},   {"ConcatV2", OpKind::kConcat},
      {"Pack", OpKind::kPack},       {"Identity", OpKind::kArrange},
      {"Reshape", OpKind::kArrange}, {"ExpandDims", OpKind::kArrange},
      {"Squeeze", OpKind::kArrange}, {"Slice", OpKind::kArrange},
      {"Gather", OpKind::kGather},   {"GatherV2", OpKind::kGather},
      {"GatherNd", OpKind::kGather},
  };
  const auto found = kinds->find(node.op());
  return found == kinds->end() ? OpKind::kOther : found->second;
}

bool HasControlInputs(const NodeDef& node) {
  return node.input_size() > 0 &&
         ParseTensorName(node.input(node.input_size() - 1)).control();
}

// Returns what a QuantizeV2 computes, or why that is not known.
absl::StatusOr<CodeFormula> FormulaOf(const GraphIndex& index,
                                      const NodeDef& quantize) {
  if (DataInputs(quantize) != 3) {
    return absl::InvalidArgumentError("it does not have three inputs");
  }
  const auto unknown = [](std::string_view what) {
    return absl::UnimplementedError(
        absl::StrCat("codes of ", what, " are not computed ahead"));
  };
  CodeFormula formula;
  if (TypeAttribute(quantize, "T") == tensorflow::DT_QUINT8) {
    formula.type = tensorflow::DT_QUINT8;
  } else if (TypeAttribute(quantize, "T") == tensorflow::DT_QINT8) {
    formula.type = tensorflow::DT_QINT8;
  } else {
    return unknown("types other than quint8 and qint8");
  }
  const std::string mode = StringAttribute(quantize, "mode", "MIN_COMBINED");
  const std::string rounding =
      StringAttribute(quantize, "round_mode", "HALF_AWAY_FROM_ZERO");
  formula.scaled = mode == "SCALED";
  if (!formula.scaled && mode != "MIN_FIRST") return unknown("mode " + mode);
  if (formula.scaled != (rounding == "HALF_TO_EVEN")) {
    return unknown(absl::StrCat("mode ", mode, " with ", rounding));
  }
  const auto axis = quantize.attr().find("axis");
  if (BoolAttribute(quantize, "narrow_range") ||
      (axis != quantize.attr().end() && axis->second.i() != -1)) {
    return unknown("a narrow range or one per channel");
  }
  const auto range = QuantizeV2Range(index, quantize);
  if (!range) {
    return absl::FailedPreconditionError(
        "its range is not constant (freeze_min and freeze_max make it so)");
  }
  formula.min = range->min;
  formula.max = range->max;
  if (!HasScale(formula)) {
    return absl::InvalidArgumentError("its range is empty");
  }
  return formula;
}

class Planner {
 public:
  Planner(const TransformContext& context, const GraphIndex& index)
      : index_(index) {
    for (const auto* names : {&context.inputs, &context.outputs}) {
      for (const std::string& name : *names) {
        named_.emplace(ParseTensorName(name).node);
      }
    }
  }

  EmbeddingPlans Plan() {
    // Quantizing a table that must also stay in float only makes the graph
    // bigger. Leaving it out can give another table one more float reader.
    EmbeddingPlans plans = PlanOnce();
    while (KeepSharedTables(plans)) plans = PlanOnce();
    return plans;
  }

 private:
  // The kinds of tensors.
  enum class Source {
    kFloat,     // must be quantized in place
    kConstant,  // consists only of constants
    kLookup,    // contains rows of tables
  };

  // The sizes of a plan's lists, for undoing later additions.
  struct Mark {
    size_t retyped;
    size_t constants;
    size_t floats;
  };

  EmbeddingPlans PlanOnce() {
    EmbeddingPlans plans;
    absl::flat_hash_set<const NodeDef*> done;
    for (const NodeDef& node : index_.graph().node()) {
      if (node.op() != "QuantizeV2" || done.contains(&node)) continue;
      EmbeddingPlan plan;
      plan.quantizes = {index_.Find(node.name())};
      const absl::Status status = PlanMove(&plan);
      done.insert(plan.quantizes.begin(), plan.quantizes.end());
      if (status.ok()) {
        plans.moves.push_back(std::move(plan));
        continue;
      }
      for (const NodeDef* quantize : plan.quantizes) {
        plans.left[std::string(status.message())].push_back(quantize->name());
      }
    }
    return plans;
  }

  // Completes a plan that has one QuantizeV2. The error says why it cannot
  // move.
  absl::Status PlanMove(EmbeddingPlan* plan) {
    plan_ = plan;
    NodeDef* quantize = plan->quantizes.front();
    absl::StatusOr<CodeFormula> formula = FormulaOf(index_, *quantize);
    if (!formula.ok()) return formula.status();
    plan->formula = *formula;
    if (CountReads(*quantize) == 0) {
      return absl::FailedPreconditionError("nothing reads it");
    }
    plan->quantizes = EqualQuantizes(quantize, *formula);
    for (const NodeDef* equal : plan->quantizes) {
      if (named_.contains(equal->name())) {
        return absl::FailedPreconditionError(
            "it is an input or output of the graph");
      }
      if (HasControlInputs(*equal)) {
        return absl::FailedPreconditionError("it has control inputs");
      }
    }
    const Source source =
        Visit({quantize, 0}, static_cast<int>(plan->quantizes.size()), 0);
    if (source == Source::kLookup) return absl::OkStatus();
    return absl::FailedPreconditionError(
        plan->obstacles.empty() ? "no rows gathered from a constant reach it"
                                : plan->obstacles.front());
  }

  // Returns all QuantizeV2 nodes that do the same to the same tensor.
  std::vector<NodeDef*> EqualQuantizes(NodeDef* quantize,
                                       const CodeFormula& formula) const {
    std::vector<NodeDef*> equal = {quantize};
    const TensorName tensor = ParseTensorName(quantize->input(0));
    for (const Use& use : index_.Uses(tensor.node)) {
      if (use.node == quantize || use.node->op() != "QuantizeV2" ||
          use.input != 0 || use.port != tensor.port) {
        continue;
      }
      const auto other = FormulaOf(index_, *use.node);
      if (other.ok() && *other == formula) equal.push_back(use.node);
    }
    std::sort(equal.begin() + 1, equal.end(),
              [](const NodeDef* a, const NodeDef* b) {
                return a->name() < b->name();
              });
    return equal;
  }

  // Adds to the plan what is needed to read codes at `place`, or nothing if the
  // result is kFloat. At most `readers` places may read the tensor.
  Source Visit(ReadingPlace place, int readers, int depth) {
    if (NodeDef* constant = ConstantAt(place); constant != nullptr) {
      if (!IsFinite(*constant)) return NotFinite(*constant);
      plan_->constants.push_back({place, constant, /*is_table=*/false});
      return Source::kConstant;
    }
    NodeDef* node = index_.Producer(*place.node, place.input);
    if (node == nullptr || depth > kMaxDepth ||
        ParseTensorName(place.node->input(place.input)).port != 0) {
      return Source::kFloat;
    }
    const OpKind kind = KindOf(*node);
    if (kind == OpKind::kOther ||
        TypeAttribute(*node, ValueTypeOf(*node)) != tensorflow::DT_FLOAT) {
      return Source::kFloat;
    }
    if (!MayChangeType(*node, *place.node, readers)) return Source::kFloat;
    const Mark mark = {plan_->retyped.size(), plan_->constants.size(),
                       plan_->floats.size()};
    plan_->retyped.push_back(node);
    const Source source = VisitInputs(node, kind, depth);
    if (source == Source::kFloat) {
      plan_->retyped.resize(mark.retyped);
      plan_->constants.resize(mark.constants);
      plan_->floats.resize(mark.floats);
    }
    return source;
  }

  Source VisitInputs(NodeDef* node, OpKind kind, int depth) {
    switch (kind) {
      case OpKind::kGather:
        return VisitTable(node);
      case OpKind::kConcat:
        return VisitConcat(node, depth);
      case OpKind::kPack:
        return VisitPack(node, depth);
      default:
        return DataInputs(*node) == 0 ? Source::kFloat
                                      : Visit({node, 0}, 1, depth + 1);
    }
  }

  Source VisitTable(NodeDef* gather) {
    if (DataInputs(*gather) < 2) return Source::kFloat;
    NodeDef* table = ConstantAt({gather, 0});
    if (table == nullptr) return Source::kFloat;
    // Such a gather gives 0 for an index out of bounds: the float 0, whose code
    // is not always 0.
    const std::string policy =
        StringAttribute(*gather, "bad_indices_policy", "");
    if (policy == "IGNORE") {
      return Obstacle(absl::StrCat("\"", gather->name(),
                                   "\" gives 0 for indices out of bounds"));
    }
    if (const auto found = kept_.find(table->name()); found != kept_.end()) {
      return Obstacle(found->second);
    }
    if (!IsFinite(*table)) return NotFinite(*table);
    plan_->constants.push_back({{gather, 0}, table, /*is_table=*/true});
    return IsConstantExpression(*gather, 1) ? Source::kConstant
                                            : Source::kLookup;
  }

  Source VisitConcat(NodeDef* concat, int depth) {
    const ConcatInputs values = ValuesOf(*concat);
    bool any_lookup = false;
    std::vector<ReadingPlace> floats;
    for (int i = values.first; i < values.end; ++i) {
      const Source source = Visit({concat, i}, 1, depth + 1);
      if (source == Source::kLookup) any_lookup = true;
      if (source == Source::kFloat) floats.push_back({concat, i});
    }
    if (!any_lookup) return floats.empty() ? Source::kConstant : Source::kFloat;
    for (const ReadingPlace& place : floats) {
      // TensorFlow quantizes what it can fold with a different formula.
      if (IsConstantExpression(*place.node, place.input)) {
        return Obstacle(absl::StrCat(
            "\"", concat->input(place.input),
            "\" is computed from constants (run fold_constants first)"));
      }
      plan_->floats.push_back(place);
    }
    return Source::kLookup;
  }

  // A float input of a Pack can be a scalar, which QuantizeV2 does not clip.
  Source VisitPack(NodeDef* pack, int depth) {
    Source all = Source::kConstant;
    for (int i = 0; i < DataInputs(*pack); ++i) {
      const Source source = Visit({pack, i}, 1, depth + 1);
      if (source == Source::kFloat) return Source::kFloat;
      if (source == Source::kLookup) all = Source::kLookup;
    }
    return all;
  }

  Source Obstacle(std::string reason) {
    constexpr size_t kEnough = 3;
    auto& known = plan_->obstacles;
    if (known.size() < kEnough &&
        std::find(known.begin(), known.end(), reason) == known.end()) {
      known.push_back(std::move(reason));
    }
    return Source::kFloat;
  }

  Source NotFinite(const NodeDef& constant) {
    return Obstacle(
        absl::StrCat("\"", constant.name(),
                     "\" is damaged or has values that are not finite"));
  }

  // Returns whether only `readers` nodes of the plan, one of which is `reader`,
  // see the values of `node`.
  bool MayChangeType(const NodeDef& node, const NodeDef& reader, int readers) {
    const bool is_named = named_.contains(node.name());
    if (!is_named && CountReads(node) == readers) return true;
    if (ReachesTable(node)) {
      Obstacle(absl::StrCat("\"", node.name(),
                            is_named ? "\" is an input or output of the graph"
                                     : "\" is also read by ",
                            is_named ? "" : OtherReaders(node, reader)));
    }
    return false;
  }

  std::string OtherReaders(const NodeDef& node, const NodeDef& reader) const {
    std::set<std::string> names;
    bool is_first = true;
    for (const Use& use : index_.Uses(node.name())) {
      if (use.port == kControlPort) continue;
      if (use.node == &reader && std::exchange(is_first, false)) continue;
      names.insert(absl::StrCat("\"", use.node->name(), "\""));
    }
    return absl::StrJoin(names, ", ");
  }

  int CountReads(const NodeDef& node) const {
    int reads = 0;
    for (const Use& use : index_.Uses(node.name())) {
      reads += use.port != kControlPort;
    }
    return reads;
  }

  // Returns whether the values of `node` include rows gathered from a constant.
  bool ReachesTable(const NodeDef& root) const {
    std::vector<const NodeDef*> stack = {&root};
    absl::flat_hash_set<const NodeDef*> seen;
    while (!stack.empty()) {
      const NodeDef* node = stack.back();
      stack.pop_back();
      if (node == nullptr || !seen.insert(node).second) continue;
      const OpKind kind = KindOf(*node);
      if (kind == OpKind::kGather &&
          ConstantAt({index_.Find(node->name()), 0}) != nullptr) {
        return true;
      }
      if (kind == OpKind::kOther || kind == OpKind::kGather) continue;
      for (int i = 0; i < DataInputs(*node); ++i) {
        stack.push_back(index_.Producer(*node, i));
      }
    }
    return false;
  }

  // Returns the float Const that is read at `place`, perhaps through Identity
  // nodes, or nullptr.
  NodeDef* ConstantAt(ReadingPlace place) const {
    NodeDef* node = place.node;
    int input = place.input;
    for (int hops = 0; hops < kMaxDepth; ++hops) {
      if (input >= DataInputs(*node)) return nullptr;
      node = index_.Producer(*node, input);
      if (node == nullptr || named_.contains(node->name())) return nullptr;
      if (node->op() == "Const") {
        return node->input().empty() &&
                       TypeAttribute(*node, "dtype") == tensorflow::DT_FLOAT
                   ? node
                   : nullptr;
      }
      if (node->op() != "Identity" || HasControlInputs(*node)) return nullptr;
      input = 0;
    }
    return nullptr;
  }

  bool IsFinite(const NodeDef& constant) {
    const auto [found, is_new] = finite_.try_emplace(constant.name(), false);
    if (!is_new) return found->second;
    const auto value = ConstValue(constant);
    if (!value.ok() || value->dtype() != tensorflow::DT_FLOAT) return false;
    const auto flat = value->flat<float>();
    found->second = std::all_of(flat.data(), flat.data() + flat.size(),
                                [](float x) { return std::isfinite(x); });
    return found->second;
  }

  // Returns whether this input depends on nothing that is fed or read in a run.
  bool IsConstantExpression(const NodeDef& reader, int input) const {
    std::vector<const NodeDef*> stack = {index_.Producer(reader, input)};
    absl::flat_hash_set<const NodeDef*> seen;
    while (!stack.empty()) {
      const NodeDef* node = stack.back();
      stack.pop_back();
      if (node == nullptr || named_.contains(node->name())) return false;
      if (node->op() == "Const" || !seen.insert(node).second) continue;
      if (node->input().empty() || node->op() == "PlaceholderWithDefault") {
        return false;
      }
      for (int i = 0; i < node->input_size(); ++i) {
        stack.push_back(index_.Producer(*node, i));
      }
    }
    return true;
  }

  // Finds tables that would still be read as floats after the plans are carried
  // out, or that would need as many copies as a float has bytes. Returns
  // whether it found any.
  bool KeepSharedTables(const EmbeddingPlans& plans) {
    struct Copies {
      absl::flat_hash_set<std::pair<const NodeDef*, int>> readers;
      std::vector<CodeFormula> formulas;
    };
    std::map<std::string, Copies> tables;
    for (const EmbeddingPlan& plan : plans.moves) {
      for (const ConstantRead& read : plan.constants) {
        if (!read.is_table) continue;
        Copies& copies = tables[read.constant->name()];
        copies.readers.insert({read.place.node, read.place.input});
        auto& formulas = copies.formulas;
        if (std::find(formulas.begin(), formulas.end(), plan.formula) ==
            formulas.end()) {
          formulas.push_back(plan.formula);
        }
      }
    }
    bool any = false;
    for (const auto& [name, copies] : tables) {
      std::string other = OtherReader(name, copies.readers);
      if (other.empty() && copies.formulas.size() < sizeof(float)) continue;
      kept_[name] =
          other.empty()
              ? absl::StrCat("table \"", name,
                             "\" is quantized in too many ways to be smaller")
              : absl::StrCat("table \"", name, "\" also serves \"", other,
                             "\" in float");
      any = true;
    }
    return any;
  }

  // Returns a node that reads the Const `name`, directly or through Identity
  // nodes, and is not among `readers`; "" if there is none.
  std::string OtherReader(
      const std::string& name,
      const absl::flat_hash_set<std::pair<const NodeDef*, int>>& readers)
      const {
    std::vector<std::string> stack = {name};
    absl::flat_hash_set<std::string> seen;
    std::string first;
    const auto found = [&](const std::string& node) {
      if (first.empty() || node < first) first = node;
    };
    while (!stack.empty()) {
      const std::string node = std::move(stack.back());
      stack.pop_back();
      if (!seen.insert(node).second) continue;
      const std::vector<Use> uses = index_.Uses(node);
      if (uses.empty() || named_.contains(node)) found(node);
      for (const Use& use : uses) {
        if (use.port == kControlPort ||
            readers.contains({use.node, use.input})) {
          continue;
        }
        if (use.node->op() == "Identity") {
          stack.push_back(use.node->name());
        } else {
          found(use.node->name());
        }
      }
    }
    return first;
  }

  const GraphIndex& index_;
  // The nodes that are inputs or outputs of the graph.
  absl::flat_hash_set<std::string> named_;
  // The tables that stay in float, with the reasons.
  absl::flat_hash_map<std::string, std::string> kept_;
  absl::flat_hash_map<std::string, bool> finite_;
  EmbeddingPlan* plan_ = nullptr;
};

}  // namespace

std::string ValueTypeOf(const NodeDef& node) {
  return KindOf(node) == OpKind::kGather ? "Tparams" : "T";
}

ConcatInputs ValuesOf(const NodeDef& concat) {
  const int inputs = DataInputs(concat);
  return concat.op() == "Concat" ? ConcatInputs{1, inputs}
                                 : ConcatInputs{0, inputs - 1};
}

EmbeddingPlans PlanEmbeddings(const TransformContext& context,
                              const GraphIndex& index) {
  return Planner(context, index).Plan();
}

}  // namespace requant
