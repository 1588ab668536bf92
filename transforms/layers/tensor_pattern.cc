#include "transforms/layers/tensor_pattern.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/const_node.h"
#include "tensorflow/core/framework/attr_value.pb.h"

namespace requant {

using tensorflow::NodeDef;

namespace {

bool PassesOn(const NodeDef& node) {
  return node.op() == "Identity" || node.op() == "StopGradient" ||
         node.op() == "Snapshot";
}

NodeOutput DirectInput(const GraphIndex& index, const NodeDef& node,
                       int input) {
  if (input >= node.input_size()) return {};
  const TensorName name = ParseTensorName(node.input(input));
  if (name.control()) return {};
  return {index.Find(name.node), name.port};
}

// Returns the integers of a Const of type int32 or int64, in their order; empty
// for anything else.
std::vector<int64_t> IntegersOf(const NodeDef& node) {
  const auto value = ConstValue(node);
  if (!value.ok()) return {};
  std::vector<int64_t> integers;
  if (value->dtype() == tensorflow::DT_INT32) {
    const auto flat = value->flat<int32_t>();
    integers.assign(flat.data(), flat.data() + flat.size());
  } else if (value->dtype() == tensorflow::DT_INT64) {
    const auto flat = value->flat<int64_t>();
    integers.assign(flat.data(), flat.data() + flat.size());
  }
  return integers;
}

}  // namespace

NodeOutput TensorSource(const GraphIndex& index, const NodeDef& node,
                        int input) {
  NodeOutput source = DirectInput(index, node, input);
  // A limit is needed because a cycle of Identity nodes would never end.
  int left = index.graph().node_size();
  while (source.node != nullptr && PassesOn(*source.node) && left-- > 0) {
    const NodeOutput next = DirectInput(index, *source.node, 0);
    if (next.node == nullptr) break;
    source = next;
  }
  return source;
}

NodeDef* MakerOfValues(const GraphIndex& index, std::string_view tensor) {
  static const auto* keepers = new absl::flat_hash_set<std::string>{
      "ExpandDims", "Identity", "Reshape", "Squeeze"};
  NodeDef* node = index.Find(ParseTensorName(tensor).node);
  absl::flat_hash_set<const NodeDef*> seen;
  while (node != nullptr && keepers->contains(node->op()) &&
         seen.insert(node).second) {
    node = index.Producer(*node, 0);
  }
  return node;
}

const NodeDef* GatheredTable(const GraphIndex& index, std::string_view tensor) {
  const NodeDef* node = MakerOfValues(index, tensor);
  if (node == nullptr || (node->op() != "GatherNd" &&
                          node->op() != "GatherV2" && node->op() != "Gather")) {
    return nullptr;
  }
  const NodeOutput table = TensorSource(index, *node, 0);
  return table.node != nullptr && table.node->op() == "Const" ? table.node
                                                              : nullptr;
}

int64_t IntegerAttribute(const NodeDef& node, const std::string& name) {
  const auto found = node.attr().find(name);
  return found == node.attr().end() ? 0 : found->second.i();
}

bool BoolAttribute(const NodeDef& node, const std::string& name) {
  const auto found = node.attr().find(name);
  return found != node.attr().end() && found->second.b();
}

std::string StringAttribute(const NodeDef& node, const std::string& name,
                            const std::string& otherwise) {
  const auto found = node.attr().find(name);
  return found == node.attr().end() ? otherwise : found->second.s();
}

tensorflow::DataType TypeAttribute(const NodeDef& node, const std::string& name,
                                   tensorflow::DataType otherwise) {
  const auto found = node.attr().find(name);
  return found == node.attr().end() ? otherwise : found->second.type();
}

int DataInputs(const NodeDef& node) {
  return std::find_if(node.input().begin(), node.input().end(),
                      [](const std::string& input) {
                        return ParseTensorName(input).control();
                      }) -
         node.input().begin();
}

bool ConcatenatesColumns(const GraphIndex& index, const NodeDef& node) {
  if (node.op() != "ConcatV2") return false;
  const int inputs = DataInputs(node);
  if (inputs < 2) return false;
  const NodeOutput axis = TensorSource(index, node, inputs - 1);
  if (axis.node == nullptr) return false;
  const std::vector<int64_t> values = IntegersOf(*axis.node);
  return values.size() == 1 && (values[0] == 1 || values[0] == -1);
}

TensorPattern TensorPattern::As(std::string given) const {
  TensorPattern named = *this;
  named.name = std::move(given);
  return named;
}

TensorPattern TensorPattern::With(const std::string& attribute,
                                  int64_t value) const {
  TensorPattern limited = *this;
  limited.attributes[attribute] = value;
  return limited;
}

TensorPattern Any() { return {}; }

TensorPattern Op(std::string_view ops, std::vector<TensorPattern> inputs,
                 int port) {
  return {TensorPattern::Kind::kOp, absl::StrSplit(ops, '|'), port,
          std::move(inputs)};
}

TensorPattern Constant() { return {TensorPattern::Kind::kConstant}; }

TensorPattern Integers(std::vector<int64_t> values) {
  return {TensorPattern::Kind::kIntegers, {}, 0, {}, std::move(values)};
}

TensorPattern OneOf(std::vector<TensorPattern> patterns) {
  return {TensorPattern::Kind::kOneOf, {}, 0, std::move(patterns)};
}

bool PatternMatcher::Match(const TensorPattern& pattern, NodeOutput tensor) {
  problem_.clear();
  problem_depth_ = -1;
  return MatchAt(pattern, tensor, 0);
}

NodeOutput PatternMatcher::operator[](const std::string& name) const {
  const auto found = named_.find(name);
  return found == named_.end() ? NodeOutput() : found->second;
}

bool PatternMatcher::Fail(int depth, std::string problem) {
  if (depth > problem_depth_) {
    problem_depth_ = depth;
    problem_ = std::move(problem);
  }
  return false;
}

bool PatternMatcher::MatchAt(const TensorPattern& pattern, NodeOutput tensor,
                             int depth) {
  if (tensor.node == nullptr) return Fail(depth, "an input is missing");
  return MatchKind(pattern, tensor, depth) &&
         (pattern.name.empty() || Bind(pattern.name, tensor, depth));
}

bool PatternMatcher::MatchKind(const TensorPattern& pattern, NodeOutput tensor,
                               int depth) {
  const NodeDef& node = *tensor.node;
  switch (pattern.kind) {
    case TensorPattern::Kind::kAny:
      return true;
    case TensorPattern::Kind::kOp:
      return MatchOp(pattern, tensor, depth);
    case TensorPattern::Kind::kConstant:
      return node.op() == "Const" ||
             Fail(depth, absl::StrCat("\"", node.name(), "\" is a ", node.op(),
                                      ", not a constant"));
    case TensorPattern::Kind::kIntegers:
      return IntegersOf(node) == pattern.integers ||
             Fail(depth,
                  absl::StrCat("\"", node.name(), "\" is not the constant ",
                               absl::StrJoin(pattern.integers, ", ")));
    case TensorPattern::Kind::kOneOf:
      return MatchOneOf(pattern, tensor, depth);
  }
  return false;
}

bool PatternMatcher::MatchOp(const TensorPattern& pattern, NodeOutput tensor,
                             int depth) {
  const NodeDef& node = *tensor.node;
  if (std::find(pattern.ops.begin(), pattern.ops.end(), node.op()) ==
      pattern.ops.end()) {
    return Fail(depth,
                absl::StrCat("\"", node.name(), "\" is a ", node.op(), ", not ",
                             absl::StrJoin(pattern.ops, " or ")));
  }
  if (tensor.port != pattern.port) {
    return Fail(depth, absl::StrCat("output ", tensor.port, " of \"",
                                    node.name(), "\" is read"));
  }
  for (const auto& [name, value] : pattern.attributes) {
    if (IntegerAttribute(node, name) != value) {
      return Fail(depth, absl::StrCat("\"", node.name(), "\" has ", name, "=",
                                      IntegerAttribute(node, name)));
    }
  }
  for (size_t i = 0; i < pattern.children.size(); ++i) {
    if (!MatchAt(pattern.children[i], TensorSource(*index_, node, i),
                 depth + 1)) {
      return false;
    }
  }
  return true;
}

bool PatternMatcher::MatchOneOf(const TensorPattern& pattern, NodeOutput tensor,
                                int depth) {
  for (const TensorPattern& alternative : pattern.children) {
    std::map<std::string, NodeOutput> before = named_;
    if (MatchAt(alternative, tensor, depth)) return true;
    named_ = std::move(before);
  }
  return false;
}

bool PatternMatcher::Bind(const std::string& name, NodeOutput tensor,
                          int depth) {
  const auto [found, is_new] = named_.emplace(name, tensor);
  return is_new || found->second == tensor ||
         Fail(depth, absl::StrCat("\"", tensor.node->name(), "\" and \"",
                                  found->second.node->name(),
                                  "\" are read where one tensor should be"));
}

}  // namespace requant
