#include "transforms/feature_columns/feature_columns.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "graph/const_node.h"

namespace requant {
namespace {

using tensorflow::NodeDef;

// Returns whether a Reshape of a matrix with `width` columns, if it can run at
// all, leaves the matrix unchanged.
bool KeepsMatrix(const GraphIndex& index, const NodeDef& reshape,
                 NodeOutput matrix, int64_t width) {
  if (reshape.op() != "Reshape") return false;
  const NodeOutput shape = TensorSource(index, reshape, 1);
  PatternMatcher matcher(&index);
  return matcher.Match(
             OneOf({Op("Pack", {Any(), Integers({width})}).With("N", 2),
                    Integers({-1, width}),
                    Op("ConcatV2",
                       {Op("Slice", {Any(), Integers({0}), Integers({1})}),
                        Op("Slice", {Op("Shape", {Any().As("matrix")}),
                                     Integers({1}), Integers({-1})}),
                        Integers({0})})
                        .With("N", 2)}),
             shape) &&
         (matcher["matrix"].node == nullptr || matcher["matrix"] == matrix);
}

bool SameValue(const NodeDef& a, const NodeDef& b) {
  const auto first = ConstValue(a);
  const auto second = ConstValue(b);
  return first.ok() && second.ok() && first->dtype() == second->dtype() &&
         first->shape() == second->shape() &&
         first->SummarizeValue(-1) == second->SummarizeValue(-1);
}

bool SameColumn(const CategoricalColumn& a, const CategoricalColumn& b) {
  if (a.placeholders != b.placeholders || a.signature != b.signature) {
    return false;
  }
  return a.missing_constant == b.missing_constant ||
         (a.missing_constant != nullptr && b.missing_constant != nullptr &&
          SameValue(*a.missing_constant, *b.missing_constant));
}

// Returns the nodes whose output is the same as `root`'s.
std::vector<NodeDef*> AliasesOf(const GraphIndex& index, NodeDef* root,
                                int64_t width) {
  std::vector<NodeDef*> aliases = {root};
  for (size_t i = 0; i < aliases.size(); ++i) {
    for (const Use& use : index.Uses(aliases[i]->name())) {
      const bool is_same =
          use.port == 0 && use.input == 0 &&
          (use.node->op() == "Identity" ||
           KeepsMatrix(index, *use.node, {aliases[i], 0}, width));
      if (is_same && std::find(aliases.begin(), aliases.end(), use.node) ==
                         aliases.end()) {
        aliases.push_back(use.node);
      }
    }
  }
  return aliases;
}

std::string Left(const NodeDef& node, std::string_view reason) {
  return absl::StrCat("leaves \"", node.name(), "\": ", reason);
}

class ColumnFinder {
 public:
  explicit ColumnFinder(const GraphIndex& index) : index_(index) {}

  FeatureColumns Find() {
    FindLookups();
    for (const NodeDef& node : index_.graph().node()) {
      if (DataInputs(node) == node.input_size() &&
          ConcatenatesColumns(index_, node)) {
        ReadJoin(index_.Find(node.name()), node.input_size() - 1,
                 &found_.concats);
      }
    }
    for (const NodeDef& node : index_.graph().node()) {
      if (node.op() == "AddN") {
        ReadJoin(index_.Find(node.name()), node.input_size(), &found_.sums);
      }
    }
    for (size_t i = 0; i < found_.lookups.size(); ++i) Number(i);
    return std::move(found_);
  }

 private:
  void FindLookups() {
    for (const NodeDef& node : index_.graph().node()) {
      if (node.op() != "Select" && node.op() != "SelectV2") continue;
      std::string problem;
      auto matched = MatchLookup(index_, index_.Find(node.name()), &problem);
      if (!matched.has_value()) {
        if (!problem.empty()) {
          found_.left.push_back(Left(node, problem));
          left_.insert(&node);
        }
        continue;
      }
      TableLookup lookup = std::move(matched->lookup);
      lookup.column = kUnnumbered;
      lookup.aliases = AliasesOf(index_, lookup.root, lookup.width);
      for (NodeDef* alias : lookup.aliases) {
        lookup_of_[alias] = found_.lookups.size();
      }
      found_.lookups.push_back(std::move(lookup));
      columns_.push_back(std::move(matched->column));
    }
  }

  // Records the columns among the first `inputs` inputs of `join` if one is a
  // lookup or all are numeric.
  void ReadJoin(NodeDef* join, int inputs, std::vector<NodeDef*>* joins) {
    bool has_lookup = false;
    bool all_known = true;
    std::vector<std::pair<NumericColumn, NumericRead>> numeric;
    std::vector<std::string> left;
    for (int i = 0; i < inputs; ++i) {
      const NodeOutput source = TensorSource(index_, *join, i);
      if (source.node == nullptr) return;
      if (source.port == 0 && lookup_of_.count(source.node) > 0) {
        has_lookup = true;
        continue;
      }
      // A linear model multiplies numeric columns by their weights.
      const bool is_sum = join->op() == "AddN";
      NodeDef* reader = is_sum ? source.node : join;
      const int input = is_sum ? 0 : i;
      NumericColumn column;
      NumericRead read{0, reader, input, {}};
      if ((reader == join || reader->op() == "MatMul") &&
          MatchNumeric(TensorSource(index_, *reader, input), &column, &read)) {
        numeric.emplace_back(std::move(column), read);
      } else {
        all_known = false;
        if (IsLeft(source)) continue;
        left.push_back(Left(
            *source.node,
            "neither one value per record that is looked up in a table, nor "
            "numbers shifted and scaled by constants"));
      }
    }
    if (!has_lookup && !all_known) return;
    found_.left.insert(found_.left.end(), left.begin(), left.end());
    for (int i = 0; i < inputs; ++i) {
      const auto lookup = lookup_of_.find(TensorSource(index_, *join, i).node);
      if (lookup != lookup_of_.end()) Number(lookup->second);
    }
    for (auto& [column, read] : numeric) {
      read.column = NumberOf(std::move(column));
      found_.numeric_reads.push_back(read);
    }
    joins->push_back(join);
  }

  // Returns whether `tensor` comes, through Reshapes, from a lookup in left_.
  bool IsLeft(NodeOutput tensor) const {
    for (int i = 0; tensor.node != nullptr && i < index_.graph().node_size();
         ++i) {
      if (left_.count(tensor.node) > 0) return true;
      if (tensor.node->op() != "Reshape") return false;
      tensor = TensorSource(index_, *tensor.node, 0);
    }
    return false;
  }

  // Numbers a lookup's column unless it already has a number.
  void Number(size_t lookup) {
    if (found_.lookups[lookup].column != kUnnumbered) return;
    const CategoricalColumn& column = columns_[lookup];
    auto& known = found_.categorical;
    auto same = std::find_if(known.begin(), known.end(),
                             [&](const CategoricalColumn& other) {
                               return SameColumn(other, column);
                             });
    found_.lookups[lookup].column = same - known.begin();
    if (same == known.end()) known.push_back(column);
  }

  int NumberOf(NumericColumn column) {
    auto& known = found_.numeric;
    const auto same = std::find_if(
        known.begin(), known.end(), [&](const NumericColumn& other) {
          return other.placeholder == column.placeholder &&
                 other.steps == column.steps;
        });
    const int number = same - known.begin();
    if (same == known.end()) known.push_back(std::move(column));
    return number;
  }

  // Matches x op constant.
  std::optional<std::pair<std::string, float>> StepOf(
      const NodeDef& node) const {
    static const auto* signs =
        new absl::flat_hash_map<std::string, std::string>({{"Sub", "-"},
                                                           {"RealDiv", "/"},
                                                           {"Mul", "*"},
                                                           {"Add", "+"},
                                                           {"AddV2", "+"}});
    const auto sign = signs->find(node.op());
    const NodeOutput operand = TensorSource(index_, node, 1);
    if (sign == signs->end() || operand.node == nullptr) return std::nullopt;
    const auto value = ScalarConstValue(*operand.node);
    if (!value.ok() || ConstValue(*operand.node)->dims() > 2) {
      return std::nullopt;
    }
    return std::pair{sign->second, *value};
  }

  // Matches a float Placeholder, possibly with a second dimension added.
  bool IsNumbers(NodeOutput tensor, NumericColumn* column) const {
    PatternMatcher matcher(&index_);
    if (!matcher.Match(DenseValues(), tensor)) return false;
    column->placeholder = matcher["placeholder"].node;
    const auto shape = PlaceholderShape(*column->placeholder);
    if (!shape.has_value() ||
        TypeAttribute(*column->placeholder, "dtype") != tensorflow::DT_FLOAT) {
      return false;
    }
    if (matcher["expanded"].node != nullptr) return shape->size() == 1;
    column->width = shape->size() == 2 ? (*shape)[1] : -1;
    return column->width > 0;
  }

  // Matches a numeric column that ends at `tensor`.
  bool MatchNumeric(NodeOutput tensor, NumericColumn* column,
                    NumericRead* read) const {
    std::vector<NodeDef*> reshapes;
    while (tensor.node != nullptr && tensor.port == 0 &&
           tensor.node->op() == "Reshape" &&
           static_cast<int>(reshapes.size()) < index_.graph().node_size()) {
      reshapes.push_back(tensor.node);
      tensor = TensorSource(index_, *tensor.node, 0);
    }
    read->value = tensor;
    for (int left = index_.graph().node_size(); left > 0; --left) {
      if (tensor.node == nullptr || tensor.port != 0) return false;
      const auto step = StepOf(*tensor.node);
      if (!step.has_value()) break;
      column->steps.insert(column->steps.begin(), *step);
      tensor = TensorSource(index_, *tensor.node, 0);
    }
    if (!IsNumbers(tensor, column)) return false;
    return std::all_of(
        reshapes.begin(), reshapes.end(), [&](const NodeDef* reshape) {
          return KeepsMatrix(index_, *reshape,
                             TensorSource(index_, *reshape, 0), column->width);
        });
  }

  static constexpr int kUnnumbered = -1;

  const GraphIndex& index_;
  FeatureColumns found_;
  // The column of each lookup.
  std::vector<CategoricalColumn> columns_;
  absl::flat_hash_map<const NodeDef*, size_t> lookup_of_;
  // Roots of lookups that were left as they are.
  absl::flat_hash_set<const NodeDef*> left_;
};

}  // namespace

FeatureColumns FindFeatureColumns(const GraphIndex& index) {
  return ColumnFinder(index).Find();
}

}  // namespace requant
