#include "graph/saved_model/merge_signatures.h"

#include <string_view>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/graph_index.h"
#include "graph/graph_io.h"
#include "graph/tensorflow_library.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/op.h"

namespace requant {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::SignatureDef;
using tensorflow::TensorInfo;

using Infos = google::protobuf::Map<std::string, TensorInfo>;

// Returns whether both have the same keys, with equal types and shapes.
bool HaveSameForm(const Infos& a, const Infos& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [key, info] : a) {
    const auto other = b.find(key);
    if (other == b.end() || info.encoding_case() != TensorInfo::kName ||
        other->second.encoding_case() != TensorInfo::kName) {
      return false;
    }
    TensorInfo own = info;
    own.set_name(other->second.name());
    if (!SameMessage(own, other->second)) return false;
  }
  return true;
}

// Finds nodes that may give different values although they are alike.
class StateFinder {
 public:
  explicit StateFinder(const GraphDef& graph) {
    for (const auto& function : graph.library().function()) {
      functions_[function.signature().name()] = &function;
    }
  }

  bool HasState(const NodeDef& node) {
    // The tables of a frozen graph do not change.
    if (absl::StartsWith(node.op(), "LookupTableFind")) return false;
    if (node.op() == "While" || node.op() == "If") {
      return absl::c_any_of(node.attr(), [this](const auto& attribute) {
        return attribute.second.has_func() &&
               FunctionHasState(attribute.second.func().name());
      });
    }
    const tensorflow::OpDef* op = nullptr;
    const auto* ops = tensorflow::OpRegistry::Global();
    return !ops->LookUpOpDef(node.op(), &op).ok() || op->is_stateful();
  }

 private:
  bool FunctionHasState(const std::string& name) {
    // A function that calls itself counts as one with state.
    const auto [known, is_new] = states_.emplace(name, true);
    if (!is_new) return known->second;
    const auto function = functions_.find(name);
    const bool has_state =
        function == functions_.end() ||
        absl::c_any_of(function->second->node_def(),
                       [this](const NodeDef& node) { return HasState(node); });
    return states_[name] = has_state;
  }

  absl::flat_hash_map<std::string, const tensorflow::FunctionDef*> functions_;
  absl::flat_hash_map<std::string, bool> states_;
};

// Returns whether the nodes compute the same from the same inputs. Attributes
// that begin with an underscore say where and how, not what.
bool AreAlike(const NodeDef& a, const NodeDef& b) {
  if (a.op() != b.op() || a.device() != b.device() ||
      a.input_size() != b.input_size()) {
    return false;
  }
  const auto covers = [](const NodeDef& node, const NodeDef& other) {
    for (const auto& [name, value] : node.attr()) {
      if (absl::StartsWith(name, "_")) continue;
      const auto found = other.attr().find(name);
      if (found == other.attr().end() || !SameMessage(value, found->second)) {
        return false;
      }
    }
    return true;
  };
  return covers(a, b) && covers(b, a);
}

// Compares what two signatures compute, node by node.
class SignatureMatcher {
 public:
  SignatureMatcher(const GraphIndex* index, StateFinder* states)
      : index_(*index), states_(*states) {}

  // Lets `other` and `node`, inputs of the two, count as the same. Returns
  // false if one of them is another input too.
  bool Identify(std::string_view other, std::string_view node) {
    const auto [found, is_new] =
        same_.emplace(index_.Find(other), index_.Find(node));
    return is_new || found->second == index_.Find(node);
  }

  // Returns whether the tensors have the same value.
  bool Match(const std::string& other, const std::string& tensor) {
    const TensorName a = ParseTensorName(other), b = ParseTensorName(tensor);
    return a.port == b.port && Pair(a.node, b.node) && Finish();
  }

 private:
  // Notes that the two nodes must be alike; returns false if they are not.
  bool Pair(std::string_view other, std::string_view name) {
    const NodeDef* a = index_.Find(other);
    const NodeDef* b = index_.Find(name);
    if (a == nullptr || b == nullptr) return false;
    const auto [found, is_new] = same_.emplace(a, b);
    if (found->second != b) return false;
    if (!is_new) return true;
    // A node that both have may still depend on different inputs of theirs.
    if (a != b && (!AreAlike(*a, *b) || states_.HasState(*a))) return false;
    pending_.push_back({a, b});
    return true;
  }

  // Compares the inputs of all pairs that were noted.
  bool Finish() {
    while (!pending_.empty()) {
      const auto [a, b] = pending_.back();
      pending_.pop_back();
      for (int i = 0; i < a->input_size(); ++i) {
        const TensorName from_a = ParseTensorName(a->input(i));
        const TensorName from_b = ParseTensorName(b->input(i));
        if (from_a.port != from_b.port || !Pair(from_a.node, from_b.node)) {
          return false;
        }
      }
    }
    return true;
  }

  const GraphIndex& index_;
  StateFinder& states_;
  // The counterpart of each node; a node that both have is its own.
  absl::flat_hash_map<const NodeDef*, const NodeDef*> same_;
  std::vector<std::pair<const NodeDef*, const NodeDef*>> pending_;
};

bool ComputeTheSame(const GraphIndex& index, StateFinder* states,
                    const SignatureDef& other, const SignatureDef& signature) {
  if (!HaveSameForm(other.inputs(), signature.inputs()) ||
      !HaveSameForm(other.outputs(), signature.outputs()) ||
      other.method_name() != signature.method_name() ||
      other.defaults_size() + signature.defaults_size() > 0) {
    return false;
  }
  SignatureMatcher matcher(&index, states);
  for (const auto& [key, info] : other.inputs()) {
    const std::string& name = signature.inputs().at(key).name();
    // An input that nothing needs is no longer in the graph.
    if (index.Find(NodeOf(info.name())) == nullptr) continue;
    if (index.Find(NodeOf(name)) == nullptr) return false;
    if (ParseTensorName(info.name()).port != ParseTensorName(name).port ||
        !matcher.Identify(NodeOf(info.name()), NodeOf(name))) {
      return false;
    }
  }
  for (const auto& [key, info] : other.outputs()) {
    if (!matcher.Match(info.name(), signature.outputs().at(key).name())) {
      return false;
    }
  }
  return true;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> MergeSignatures(
    const GraphDef& graph, std::map<std::string, SignatureDef>* signatures) {
  REQUANT_RETURN_IF_ERROR(LoadTensorFlow());
  // Nothing is edited through the index.
  REQUANT_ASSIGN_OR_RETURN(const GraphIndex index,
                           GraphIndex::Create(const_cast<GraphDef*>(&graph)));
  StateFinder states(graph);
  std::vector<std::string> merged;
  // What people call comes before other names for it.
  std::vector<SignatureDef*> kept;
  const auto consider = [&](const std::string& key, SignatureDef* signature) {
    for (const SignatureDef* other : kept) {
      if (!ComputeTheSame(index, &states, *signature, *other)) continue;
      *signature = *other;
      merged.push_back(key);
      return;
    }
    kept.push_back(signature);
  };
  const auto first = signatures->find("serving_default");
  if (first != signatures->end()) kept.push_back(&first->second);
  for (auto& [key, signature] : *signatures) {
    if (first == signatures->end() || key != first->first) {
      consider(key, &signature);
    }
  }
  return merged;
}

}  // namespace requant
