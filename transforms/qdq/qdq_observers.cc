#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "graph/freeze/freeze_parts.h"
#include "graph/freeze/needed_nodes.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/function.pb.h"
#include "transforms/qdq/qdq_sites.h"

namespace requant {
namespace {

using tensorflow::FunctionDef;
using tensorflow::GraphDef;
using tensorflow::NodeDef;

// The attribute of an observing Identity that holds the number of its key.
constexpr char kKeyAttribute[] = "_requant_observed";
constexpr char kObserver[] = "requant_observe";
// A session with this many nodes has no memory left for values.
constexpr int64_t kMostNodes = 1'000'000;
constexpr char kCopy[] = "requant_observe/";

class ObserverMaker {
 public:
  ObserverMaker(const GraphDef& graph, const std::vector<std::string>& outputs)
      : original_(graph), graph_(graph) {
    for (const std::string& output : outputs) {
      outputs_.emplace_back(ParseTensorName(output).node);
    }
  }

  absl::StatusOr<QdqObservers> Make(const QdqSites& sites) {
    AddMarks(sites);
    InlineOptions options;
    options.outputs = outputs_;
    options.max_nodes = kMostNodes;
    REQUANT_RETURN_IF_ERROR(InlineFunctions(options, &graph_).status());
    REQUANT_ASSIGN_OR_RETURN(const GraphIndex index,
                             GraphIndex::Create(&graph_));
    const std::vector<NodeDef*> marks = FindMarks(index);
    AddNodes(index, marks);
    for (const NodeDef* mark : marks) {
      const int64_t key = mark->attr().at(kKeyAttribute).i();
      found_[key].tensors.push_back(
          absl::StrCat(renamed_.at(mark->name()), ":0"));
    }
    QdqObservers result;
    *added_.mutable_versions() = original_.versions();
    result.added = std::move(added_);
    for (size_t key = 0; key < found_.size(); ++key) {
      QdqObserver& observer = found_[key];
      if (observer.tensors.empty()) {
        result.not_observed.push_back(
            {std::move(observer.range), conditional_keys_.contains(key)});
      } else {
        result.observers.push_back(std::move(observer));
      }
    }
    return result;
  }

 private:
  // Adds an Identity that reads the tensor of each key.
  void AddMarks(const QdqSites& sites) {
    std::map<RangeKey, int64_t> keys;
    absl::flat_hash_map<int, FreeNames> names;
    for (const QdqSite& site : sites.sites) {
      if (!site.reached) continue;
      const auto [key, is_new] = keys.emplace(site.range, found_.size());
      if (!is_new) continue;
      found_.push_back({site.range, site.is_weight, {}});
      const int function = site.function_number;
      FreeNames& free =
          names.try_emplace(function, original_, function).first->second;
      NodeDef& mark = *MutableNodes(function, &graph_)->Add();
      mark.set_name(free.Take(absl::StrCat(kObserver, "_", key->second)));
      mark.set_op("Identity");
      mark.add_input(site.tensor);
      (*mark.mutable_attr())["T"].set_type(tensorflow::DT_FLOAT);
      (*mark.mutable_attr())[kKeyAttribute].set_i(key->second);
    }
  }

  // Returns the nodes that may run several times or not at all: those between a
  // loop's or a branch's start and its end.
  static NodeSet ConditionalNodes(const GraphIndex& index) {
    NodeSet conditional;
    std::vector<const NodeDef*> open;
    for (const NodeDef& node : index.graph().node()) {
      const std::string_view op = absl::StripPrefix(node.op(), "Ref");
      if (op == "Enter" || op == "Switch") open.push_back(&node);
    }
    while (!open.empty()) {
      const NodeDef* node = open.back();
      open.pop_back();
      const std::string_view op = absl::StripPrefix(node->op(), "Ref");
      if (op == "Exit" || op == "Merge") continue;
      if (!conditional.insert(node).second) continue;
      for (const Use& use : index.Uses(node->name())) open.push_back(use.node);
    }
    return conditional;
  }

  // Functions that are still called run conditionally; others were inlined.
  void FindConditionalFunctions(const NodeSet& needed) {
    const auto called = CalledFunctions(needed, graph_.library());
    for (const FunctionDef& function : graph_.library().function()) {
      if (!called.contains(function.signature().name())) continue;
      for (const NodeDef& node : function.node_def()) {
        const auto key = node.attr().find(kKeyAttribute);
        if (key == node.attr().end()) continue;
        conditional_keys_.insert(key->second.i());
      }
    }
  }

  // Returns the marks that can be fetched if the outputs can be.
  std::vector<NodeDef*> FindMarks(const GraphIndex& index) {
    const NodeSet needed = NeededNodes(index, outputs_);
    const NodeSet conditional = ConditionalNodes(index);
    std::vector<NodeDef*> marks;
    for (NodeDef& node : *graph_.mutable_node()) {
      if (node.attr().count(kKeyAttribute) == 0) continue;
      const NodeDef* producer = index.Producer(node, 0);
      if (producer == nullptr || !needed.contains(producer)) continue;
      if (conditional.contains(producer)) {
        conditional_keys_.insert(node.attr().at(kKeyAttribute).i());
      } else {
        marks.push_back(&node);
      }
    }
    FindConditionalFunctions(needed);
    return marks;
  }

  // Returns whether the session's graph has the node in its present form.
  static bool IsOriginal(
      const NodeDef& node,
      const absl::flat_hash_map<std::string, const NodeDef*>& originals) {
    const auto found = originals.find(node.name());
    if (found == originals.end()) return false;
    const NodeDef& original = *found->second;
    return node.op() == original.op() &&
           absl::c_equal(node.input(), original.input());
  }

  // Adds what the marks need and the session lacks, under free names.
  void AddNodes(const GraphIndex& index, const std::vector<NodeDef*>& marks) {
    absl::flat_hash_map<std::string, const NodeDef*> originals;
    for (const NodeDef& node : original_.node()) {
      originals.emplace(node.name(), &node);
    }
    std::vector<std::string> names;
    for (const NodeDef* mark : marks) names.push_back(mark->name());
    const NodeSet needed = NeededNodes(index, names);
    std::vector<const NodeDef*> open;
    NodeSet changed;
    for (const NodeDef* node : needed) {
      if (IsOriginal(*node, originals)) continue;
      changed.insert(node);
      open.push_back(node);
    }
    // Readers of a changed node have changed too.
    while (!open.empty()) {
      const NodeDef* node = open.back();
      open.pop_back();
      for (const Use& use : index.Uses(node->name())) {
        if (needed.contains(use.node) && changed.insert(use.node).second) {
          open.push_back(use.node);
        }
      }
    }
    // Goes in the graph's order, to get the same names every time.
    FreeNames free(original_, /*function=*/-1);
    for (const NodeDef& node : graph_.node()) {
      if (!changed.contains(&node)) continue;
      renamed_.emplace(node.name(),
                       free.Take(originals.contains(node.name())
                                     ? absl::StrCat(kCopy, node.name())
                                     : std::string(node.name())));
    }
    for (const NodeDef& node : graph_.node()) {
      if (!changed.contains(&node)) continue;
      NodeDef& copy = *added_.add_node();
      copy = node;
      copy.set_name(renamed_.at(node.name()));
      for (std::string& input : *copy.mutable_input()) {
        const TensorName tensor = ParseTensorName(input);
        const auto renamed = renamed_.find(std::string(tensor.node));
        if (renamed == renamed_.end()) continue;
        input = FormatTensorName(renamed->second, tensor.port);
      }
    }
  }

  const GraphDef& original_;
  GraphDef graph_;
  std::vector<std::string> outputs_;
  // Indexed by the number of the key.
  std::vector<QdqObserver> found_;
  absl::flat_hash_set<int64_t> conditional_keys_;
  // Maps names in graph_ to names in added_.
  absl::flat_hash_map<std::string, std::string> renamed_;
  GraphDef added_;
};

}  // namespace

absl::StatusOr<QdqObservers> MakeQdqObservers(
    const GraphDef& graph, const QdqSiteOptions& options,
    const std::vector<std::string>& outputs) {
  REQUANT_ASSIGN_OR_RETURN(const QdqSites sites, FindQdqSites(graph, options));
  return ObserverMaker(graph, outputs).Make(sites);
}

}  // namespace requant
