#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "graph/const_node.h"
#include "graph/graph_io.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "transforms/feature_columns/feature_columns.h"

// An embedding or linear column of an estimator has some sixty nodes: the dense
// strings become a SparseTensor without the empty ones, the strings are hashed,
// and safe_embedding_lookup_sparse drops negative ids, fills empty rows, looks
// up each distinct id once, adds up the rows of a record and puts zeros where a
// record had no value. With one value per record, the result is simply the row
// of the value's bucket, or zeros. The matcher checks each node that could make
// it anything else.

namespace requant {
namespace {

using tensorflow::NodeDef;

bool IsHash(const NodeDef& node) {
  return absl::StartsWith(node.op(), "StringToHashBucket");
}

bool WorksOnEachValue(const NodeDef& node) {
  static const auto* ops = new absl::flat_hash_set<std::string>(
      {"Add",        "AddV2",     "AsString",        "Cast",
       "Equal",      "Fill",      "Greater",         "GreaterEqual",
       "Identity",   "Less",      "LessEqual",       "LogicalAnd",
       "LogicalNot", "LogicalOr", "LookupTableFind", "LookupTableFindV2",
       "Mul",        "NotEqual",  "Select",          "SelectV2",
       "Shape",      "Sub"});
  return IsHash(node) || ops->contains(node.op());
}

// Returns whether it may be an input beside the values: a constant or table.
bool IsFixed(const NodeDef& node) {
  static const auto* ops = new absl::flat_hash_set<std::string>(
      {"Cast", "Const", "HashTable", "HashTableV2", "Identity",
       "InitializeTable", "InitializeTableFromTextFile",
       "InitializeTableFromTextFileV2", "InitializeTableV2",
       "LookupTableImport", "LookupTableImportV2", "LookupTableSize",
       "LookupTableSizeV2", "NoOp", "Range"});
  return ops->contains(node.op());
}

// Reads the nodes between a column's values and its ids. Fails, naming the
// node, if one does not treat each value separately or needs another input of
// the graph.
class RuleReader {
 public:
  RuleReader(const GraphIndex& index, NodeOutput values)
      : index_(index), values_(values) {}

  // Returns the signature of what computes `tensor`, equal for rules that give
  // equal ids. Adds the nodes that depend on the values to steps().
  absl::StatusOr<std::string> Read(NodeOutput tensor) {
    if (tensor == values_) return std::string("values");
    const auto known = signatures_.find(tensor.node);
    if (known != signatures_.end()) return known->second;
    if (++depth_ > kDeepest) {
      return absl::InvalidArgumentError("its ids take too many steps");
    }
    REQUANT_ASSIGN_OR_RETURN(std::string signature, ReadNode(*tensor.node));
    --depth_;
    const bool depends = absl::StrContains(signature, "values");
    if (!(depends ? WorksOnEachValue(*tensor.node) : IsFixed(*tensor.node))) {
      return absl::InvalidArgumentError(
          absl::StrCat("its ids come from \"", tensor.node->name(), "\", a ",
                       tensor.node->op()));
    }
    if (depends) steps_.push_back(tensor.node);
    signatures_[tensor.node] = signature;
    return signature;
  }

  std::vector<NodeDef*> steps() && { return std::move(steps_); }

 private:
  static constexpr int kDeepest = 64;

  absl::StatusOr<std::string> ReadNode(const NodeDef& node) {
    std::string text = absl::StrCat(node.op(), "(");
    for (const std::string& input : node.input()) {
      const TensorName name = ParseTensorName(input);
      NodeOutput source{index_.Find(name.node), name.port};
      if (source.node == nullptr) {
        return absl::InvalidArgumentError(
            absl::StrCat("\"", node.name(), "\" lacks an input"));
      }
      REQUANT_ASSIGN_OR_RETURN(const std::string read, Read(source));
      absl::StrAppend(&text, read, ":", name.port, ",");
    }
    const std::map<std::string, tensorflow::AttrValue> attributes(
        node.attr().begin(), node.attr().end());
    for (const auto& [name, value] : attributes) {
      // These attributes do not affect values.
      if (absl::StartsWith(name, "_") || name == "shared_name" ||
          name == "container") {
        continue;
      }
      // Hexadecimal cannot be confused with the word that stands for values.
      absl::StrAppend(&text, name, "=",
                      absl::BytesToHexString(DeterministicBytes(value)), ",");
    }
    return absl::StrCat(text, ")");
  }

  const GraphIndex& index_;
  const NodeOutput values_;
  absl::flat_hash_map<const NodeDef*, std::string> signatures_;
  std::vector<NodeDef*> steps_;
  int depth_ = 0;
};

std::string Describe(const std::vector<NodeDef*>& steps) {
  std::vector<std::string> texts;
  for (const NodeDef* step : steps) {
    if (IsHash(*step)) {
      texts.push_back(absl::StrCat(step->op(), " into ",
                                   IntegerAttribute(*step, "num_buckets"),
                                   " buckets"));
    } else if (absl::StartsWith(step->op(), "LookupTableFind")) {
      texts.push_back("position in a vocabulary");
    }
  }
  if (!texts.empty()) return absl::StrJoin(texts, " or ");
  return steps.empty() ? "the number itself" : "the number itself or a default";
}

// Matches the first row of a batch's indices: fill[:, 0].
TensorPattern FirstColumnOf(const TensorPattern& tensor) {
  return Op("StridedSlice",
            {tensor, Integers({0, 0}), Integers({0, 1}), Integers({1, 1})})
      .With("begin_mask", 1)
      .With("end_mask", 1)
      .With("shrink_axis_mask", 2);
}

TensorPattern MaybeCast(const TensorPattern& tensor) {
  return OneOf({Op("Cast", {tensor}), tensor});
}

// Matches safe_embedding_lookup_sparse after it has pruned ids.
TensorPattern SafeLookup() {
  // The same inputs make the same rows, whichever node computes them.
  const auto fill = [](int port) {
    return Op("SparseFillEmptyRows",
              {Any().As("indices"), Any().As("ids"), Any().As("shape")}, port);
  };
  const TensorPattern unique = Op("Unique", {fill(1)});
  const TensorPattern looked_up =
      Op("GatherV2", {Constant().As("table"), unique, Integers({0})})
          .With("batch_dims", 0);
  const TensorPattern segments = MaybeCast(FirstColumnOf(fill(0)));
  constexpr char kCombiners[] =
      "SparseSegmentMean|SparseSegmentSum|SparseSegmentSqrtN";
  const TensorPattern rows = OneOf(
      {Op(kCombiners, {looked_up, Op("Unique", {fill(1)}, 1), segments}),
       Op(kCombiners, {Constant().As("table"), MaybeCast(fill(1)), segments})});
  const TensorPattern width =
      Op("StridedSlice", {Op("Shape", {Any().As("rows")}), Integers({1}),
                          Integers({2}), Integers({1})});
  const TensorPattern is_empty =
      Op("Tile", {Op("Reshape", {fill(2), Integers({-1, 1})}),
                  Op("Pack", {Integers({1}), width})});
  return Op("Select|SelectV2",
            {is_empty, Op("ZerosLike", {Any().As("rows")}), rows.As("rows")});
}

// Matches the part of `tensor` that is kept when ids below 0 are dropped.
TensorPattern KeptOf(const TensorPattern& tensor) {
  const TensorPattern kept = Op(
      "Reshape",
      {Op("Where", {Op("GreaterEqual", {Any().As("all_ids"), Integers({0})})}),
       Integers({-1})});
  return Op("GatherV2", {tensor, kept.As("kept"), Integers({0})})
      .With("batch_dims", 0);
}

// Matches shapes [s0, *] and [*, s1] of a matrix [s0, s1], which must be its
// own shape because the number of elements is the same.
TensorPattern SameMatrixShape() {
  const TensorPattern shape = MaybeCast(Any().As("old_shape"));
  const TensorPattern first = OneOf(
      {Op("Prod",
          {Op("Slice", {shape, Integers({0}), Integers({1})}), Integers({0})}),
       Op("StridedSlice", {shape, Integers({0}), Integers({1}), Integers({1})})
           .With("shrink_axis_mask", 1)});
  const TensorPattern second =
      Op("GatherV2", {shape, Integers({1}), Integers({0})});
  return MaybeCast(OneOf({Op("Pack", {first, Any()}).With("N", 2),
                          Op("Pack", {Any(), second}).With("N", 2)}));
}

// Matches the indices of values that are not the one for missing values.
TensorPattern PresentIndices() {
  return Op(
      "Where",
      {Op("NotEqual", {Any().As("dense"),
                       MaybeCast(Constant().As("constant")).As("missing")})});
}

// Matches bucket numbers, [batch, 1], as a SparseTensor: "ids" with their
// "indices" and "shape".
TensorPattern BucketIds() {
  const TensorPattern buckets = Op("Bucketize", {Any().As("dense")});
  // There is a zero for each record: a feature's only number has the index 0.
  const TensorPattern zeros =
      Op("Tile", {Op("Range", {Integers({0}), Integers({1}), Integers({1})}),
                  Op("Pack", {Any().As("batch")}).With("N", 1)});
  return Op("Add|AddV2",
            {Op("Reshape", {buckets.As("buckets"), Integers({-1})}).As("flat"),
             Op("Mul", {Constant(), zeros.As("zeros")})});
}

TensorPattern BucketBatch() {
  return Op("StridedSlice", {Op("Shape", {Any().As("buckets")}), Integers({0}),
                             Integers({1}), Integers({1})})
      .With("shrink_axis_mask", 1);
}

TensorPattern BucketIndices() {
  const TensorPattern records = Op(
      "Reshape",
      {Op("Tile",
          {Op("ExpandDims",
              {Op("Range", {Integers({0}), Any().As("batch"), Integers({1})}),
               Integers({1})}),
           Integers({1, 1})}),
       Integers({-1})});
  return MaybeCast(
      Op("Transpose",
         {Op("Pack", {records, Any().As("zeros")}).With("N", 2).With("axis", 0),
          Integers({1, 0})}));
}

TensorPattern BucketShape() {
  return MaybeCast(Op("Pack", {Any().As("batch"), Integers({1})}).With("N", 2));
}

// Returns an attribute's bytes for use in a signature.
std::string AttributeBytes(const NodeDef& node, const std::string& name) {
  const auto found = node.attr().find(name);
  return found == node.attr().end() ? "" : DeterministicBytes(found->second);
}

// Matches a single lookup.
class LookupMatcher {
 public:
  explicit LookupMatcher(const GraphIndex* index) : index_(index) {}

  // On failure problem() says why, or is empty if `root` does not resemble a
  // lookup.
  bool Match(NodeDef* root) {
    PatternMatcher lookup(index_);
    const NodeOutput rows = TensorSource(*index_, *root, 2);
    const bool looks_like_one =
        rows.node != nullptr && rows.node->op().find("SparseSegment") == 0;
    if (!lookup.Match(SafeLookup(), {root, 0})) {
      return looks_like_one && Fail(lookup.problem());
    }
    found_.root = root;
    return ReadTable(lookup["table"].node) &&
           MatchIds(lookup["indices"], lookup["ids"], lookup["shape"]);
  }

  const std::string& problem() const { return problem_; }
  MatchedLookup found() const { return {found_, column_}; }

 private:
  bool Fail(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  bool ReadTable(NodeDef* table) {
    const auto value = ConstValue(*table);
    if (!value.ok()) return Fail(std::string(value.status().message()));
    if (value->dims() != 2) {
      return Fail(
          absl::StrCat("its table \"", table->name(), "\" is not a matrix"));
    }
    if (!tensorflow::DataTypeCanUseMemcpy(value->dtype())) {
      return Fail(
          absl::StrCat("its table \"", table->name(), "\" has no numbers"));
    }
    found_.table = table;
    found_.rows = value->dim_size(0);
    found_.width = value->dim_size(1);
    found_.type = value->dtype();
    return true;
  }

  bool MatchIds(NodeOutput indices, NodeOutput ids, NodeOutput shape) {
    PatternMatcher pruning(index_);
    if (!pruning.Match(KeptOf(Any().As("all_ids")), ids) ||
        !pruning.Match(KeptOf(Any().As("all_indices")), indices)) {
      return Fail(pruning.problem());
    }
    const bool is_int64 =
        TypeAttribute(*ids.node, "Tparams") == tensorflow::DT_INT64;
    ids = pruning["all_ids"];
    indices = pruning["all_indices"];
    if (!PassReshapes(&indices, &shape)) return false;
    if (indices.node->op() == "SparseCross") {
      return MatchCross(indices.node, indices, ids, shape);
    }
    if (!is_int64) return MatchBuckets(indices, ids, shape);
    PatternMatcher values(index_);
    if (!values.Match(PresentIndices(), indices) ||
        !values.Match(Op("Shape", {Any().As("dense")}), shape) ||
        !values.Match(DenseValues(), values["dense"])) {
      return Fail(values.problem());
    }
    NodeDef* gather = GatherOf(values["dense"], indices);
    if (gather == nullptr) {
      return Fail(absl::StrCat("nothing gathers the values at \"",
                               indices.node->name(), "\""));
    }
    RuleReader rule(*index_, {gather, 0});
    auto signature = rule.Read(ids);
    if (!signature.ok()) return Fail(std::string(signature.status().message()));
    column_.signature = *std::move(signature);
    column_.values = gather;
    column_.steps = std::move(rule).steps();
    column_.description = Describe(column_.steps);
    column_.ids = ids;
    column_.hashes = IsHash(*ids.node);
    column_.missing = values["missing"];
    column_.missing_constant = values["constant"].node;
    return ReadPlaceholder(values) &&
           (!column_.hashes || CheckBuckets(*ids.node));
  }

  // Matches a bucketized feature.
  bool MatchBuckets(NodeOutput indices, NodeOutput ids, NodeOutput shape) {
    PatternMatcher values(index_);
    if (!values.Match(BucketIds(), ids) ||
        !values.Match(BucketBatch(), values["batch"]) ||
        !values.Match(BucketIndices(), indices) ||
        !values.Match(BucketShape(), shape) ||
        !values.Match(DenseValues(), values["dense"])) {
      return Fail(values.problem());
    }
    const NodeDef& buckets = *values["buckets"].node;
    column_.ids = values["flat"];
    column_.type = tensorflow::DT_INT32;
    column_.signature =
        absl::StrCat("buckets ", AttributeBytes(buckets, "boundaries"));
    column_.description =
        absl::StrCat("cut into ", BoundariesOf(buckets) + 1, " buckets");
    return ReadPlaceholder(values);
  }

  static int BoundariesOf(const NodeDef& bucketize) {
    const auto found = bucketize.attr().find("boundaries");
    return found == bucketize.attr().end() ? 0 : found->second.list().f_size();
  }

  // Matches crossed features, all of which must be dense.
  bool MatchCross(NodeDef* cross, NodeOutput indices, NodeOutput ids,
                  NodeOutput shape) {
    if (!(indices == NodeOutput{cross, 0} && ids == NodeOutput{cross, 1} &&
          shape == NodeOutput{cross, 2})) {
      return Fail(absl::StrCat("not all outputs of \"", cross->name(),
                               "\" are used together"));
    }
    if (IntegerAttribute(*cross, "N") != 0) {
      return Fail(absl::StrCat(
          "\"", cross->name(),
          "\" crosses columns that may have several values per record"));
    }
    for (int i = 0; i < cross->input_size(); ++i) {
      PatternMatcher values(index_);
      if (!values.Match(DenseValues(), TensorSource(*index_, *cross, i))) {
        return Fail(values.problem());
      }
      if (!ReadPlaceholder(values)) return false;
    }
    column_.ids = ids;
    column_.signature =
        absl::StrCat("cross ", AttributeBytes(*cross, "hashed_output"),
                     AttributeBytes(*cross, "num_buckets"),
                     AttributeBytes(*cross, "hash_key"));
    column_.description =
        absl::StrCat("SparseCross into ",
                     IntegerAttribute(*cross, "num_buckets"), " buckets");
    return CheckBuckets(*cross);
  }

  // Returns the node that gathers the values of `dense` at `indices`.
  NodeDef* GatherOf(NodeOutput dense, NodeOutput indices) const {
    for (const Use& use : index_->Uses(indices.node->name())) {
      if (use.node->op() == "GatherNd" && use.input == 1 &&
          TensorSource(*index_, *use.node, 1) == indices &&
          TensorSource(*index_, *use.node, 0) == dense) {
        return use.node;
      }
    }
    return nullptr;
  }

  // Skips back over SparseReshapes that change nothing.
  bool PassReshapes(NodeOutput* indices, NodeOutput* shape) {
    for (int left = index_->graph().node_size(); left > 0; --left) {
      NodeDef* node = indices->node;
      if (node == nullptr || node->op() != "SparseReshape") return true;
      PatternMatcher matcher(index_);
      if (!matcher.Match(
              Op("SparseReshape", {Any().As("indices"), Any().As("old_shape"),
                                   SameMatrixShape()}),
              *indices)) {
        return Fail(matcher.problem());
      }
      if (!(*shape == NodeOutput{node, 1})) {
        return Fail(absl::StrCat("the shape of \"", node->name(),
                                 "\" is not the one that is used"));
      }
      *indices = matcher["indices"];
      *shape = matcher["old_shape"];
    }
    return Fail("its nodes form a cycle");
  }

  // Records the placeholder that DenseValues matched.
  bool ReadPlaceholder(const PatternMatcher& values) {
    NodeDef* placeholder = values["placeholder"].node;
    const bool expanded = values["expanded"].node != nullptr;
    const auto shape = PlaceholderShape(*placeholder);
    const bool is_one_value =
        shape.has_value() &&
        (expanded ? shape->size() == 1
                  : shape->size() == 2 && (*shape)[1] == 1);
    if (!is_one_value) {
      return Fail(absl::StrCat("\"", placeholder->name(),
                               "\" may have several values per record"));
    }
    column_.placeholders.push_back(placeholder);
    column_.has_second_dimension = !expanded;
    return true;
  }

  bool CheckBuckets(const NodeDef& hash) {
    const int64_t buckets = IntegerAttribute(hash, "num_buckets");
    return (buckets >= 1 && buckets <= found_.rows) ||
           Fail(absl::StrCat("\"", hash.name(), "\" has ", buckets,
                             " buckets, its table ", found_.rows, " rows"));
  }

  const GraphIndex* index_;
  TableLookup found_;
  CategoricalColumn column_;
  std::string problem_;
};

}  // namespace

std::optional<std::vector<int64_t>> PlaceholderShape(const NodeDef& node) {
  const auto shape = node.attr().find("shape");
  if (shape == node.attr().end() || !shape->second.has_shape() ||
      shape->second.shape().unknown_rank()) {
    return std::nullopt;
  }
  std::vector<int64_t> sizes;
  for (const auto& dim : shape->second.shape().dim()) {
    sizes.push_back(dim.size());
  }
  return sizes;
}

TensorPattern DenseValues() {
  return OneOf({Op("ExpandDims", {Op("Placeholder", {}).As("placeholder"),
                                  OneOf({Integers({-1}), Integers({1})})})
                    .As("expanded"),
                Op("Placeholder", {}).As("placeholder")});
}

std::optional<MatchedLookup> MatchLookup(const GraphIndex& index, NodeDef* root,
                                         std::string* problem) {
  LookupMatcher matcher(&index);
  if (matcher.Match(root)) return matcher.found();
  *problem = matcher.problem();
  return std::nullopt;
}

}  // namespace requant
