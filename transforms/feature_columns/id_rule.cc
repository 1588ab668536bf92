#include "transforms/feature_columns/id_rule.h"

#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "graph/graph_io.h"
#include "tensorflow/core/framework/attr_value.pb.h"

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

// What may stand beside the values: constants and tables filled with them.
bool IsFixed(const NodeDef& node) {
  static const auto* ops = new absl::flat_hash_set<std::string>(
      {"Cast", "Const", "HashTable", "HashTableV2", "Identity",
       "InitializeTable", "InitializeTableFromTextFile",
       "InitializeTableFromTextFileV2", "InitializeTableV2",
       "LookupTableImport", "LookupTableImportV2", "LookupTableSize",
       "LookupTableSizeV2", "NoOp", "Range"});
  return ops->contains(node.op());
}

class RuleReader {
 public:
  RuleReader(const GraphIndex& index, NodeOutput values)
      : index_(index), values_(values) {}

  // The signature of what computes `tensor`; puts the nodes that depend on the
  // values into steps().
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
      // Names that mean nothing for values.
      if (absl::StartsWith(name, "_") || name == "shared_name" ||
          name == "container") {
        continue;
      }
      // In hexadecimal, which cannot pass for the word for values.
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

}  // namespace

bool IdRule::hashes() const { return IsHash(*ids.node); }

absl::StatusOr<IdRule> ReadIdRule(const GraphIndex& index, NodeOutput values,
                                  NodeOutput ids) {
  IdRule rule;
  rule.values = values;
  rule.ids = ids;
  RuleReader reader(index, values);
  REQUANT_ASSIGN_OR_RETURN(rule.signature, reader.Read(ids));
  rule.steps = std::move(reader).steps();
  rule.description = Describe(rule.steps);
  return rule;
}

}  // namespace requant
