#include "graph/verify/verify.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text/printable.h"
#include "graph/graph_index.h"
#include "graph/graph_wiring.h"
#include "graph/op_catalog.h"
#include "graph/tensorflow_library.h"
#include "graph/verify/verify_parts.h"
#include "tensorflow/core/public/version.h"

namespace requant {

using tensorflow::DataType;
using tensorflow::GraphDef;
using tensorflow::NodeDef;

namespace {

constexpr size_t kNamesShown = 5;
constexpr size_t kLongestReason = 240;

// Returns at most `length` bytes of `text`, without cutting a UTF-8 character.
std::string_view Prefix(std::string_view text, size_t length) {
  if (text.size() <= length) return text;
  while (length > 0 && (text[length] & 0xC0) == 0x80) --length;
  return text.substr(0, length);
}

// Returns whether TensorFlow's import accepts the name.
bool IsValidNodeName(std::string_view name) {
  const auto is_plain = [](char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_';
  };
  return is_plain(name[0]) && absl::c_all_of(name, [&](char c) {
           return is_plain(c) || absl::StrContains("-/\\>", c);
         });
}

class Verifier {
 public:
  Verifier(const GraphDef& graph, const VerifyOptions& options)
      : graph_(graph),
        options_(options),
        catalog_(graph.library()),
        problems_(options.max_problems) {}

  absl::StatusOr<std::vector<GraphProblem>> Verify() {
    CheckNames();
    CheckInputs();
    const NodeOrder order = SortNodes(inputs_);
    ReportCycles(order, graph_.node(), nullptr, ProblemKind::kStructure,
                 &problems_);
    CheckVersions();
    CheckOps();
    for (int32_t id = 0; id < graph_.node_size() && !problems_.full(); ++id) {
      CheckNode(id);
    }
    CheckFunctions(graph_.library(), &catalog_, &problems_);
    if (options_.shapes && problems_.empty()) {
      REQUANT_RETURN_IF_ERROR(
          CheckShapes(graph_, ops_, inputs_, order.sorted, &problems_));
    }
    return problems_.Take();
  }

 private:
  void CheckNames() {
    ids_.reserve(graph_.node_size());
    ops_.reserve(graph_.node_size());
    for (int32_t id = 0; id < graph_.node_size(); ++id) {
      const NodeDef& node = graph_.node(id);
      ops_.push_back(catalog_.Find(node.op()));
      if (node.name().empty()) {
        problems_.Add(ProblemKind::kStructure, "",
                      absl::StrCat("node number ", id, " (op ",
                                   Quoted(node.op()), ") has no name"));
      } else if (!ids_.emplace(node.name(), id).second) {
        problems_.Add(
            ProblemKind::kStructure, node.name(),
            absl::StrCat("two nodes are named ", Quoted(node.name())));
      }
    }
  }

  void CheckInputs() {
    for (int32_t id = 0; id < graph_.node_size(); ++id) {
      const NodeDef& node = graph_.node(id);
      for (const std::string& input : node.input()) ResolveInput(node, input);
      inputs_.EndNode();
      if (!problems_.full()) {
        CheckInputOrder({node}, ProblemKind::kStructure, &problems_);
      }
    }
  }

  void ResolveInput(const NodeDef& node, const std::string& input) {
    const TensorName name = ParseTensorName(input);
    const auto found = ids_.find(name.node);
    input_types_.push_back(tensorflow::DT_INVALID);
    inputs_.edges.push_back({kNoNode, name.port});
    if (found == ids_.end()) {
      ReportInput(node, input,
                  absl::StrCat("but no node is named ", Quoted(name.node)));
      return;
    }
    const int32_t producer = found->second;
    const NodeDef& from = graph_.node(producer);
    if (name.control() || !IsLoopEdge(from.op(), node.op())) {
      inputs_.edges.back().node = producer;
    }
    if (name.control() || ops_[producer] == nullptr) return;
    const Output output = OutputAt(from, *ops_[producer], name.port);
    if (output.state == Output::kOutOfRange) {
      const auto count = CountTensors(ops_[producer]->definition->output_arg(),
                                      from, *ops_[producer]->definition);
      ReportInput(
          node, input,
          absl::StrCat("but that node (", from.op(), ") has ",
                       count.has_value() ? absl::StrCat(*count) : "fewer",
                       count == 1 ? " output" : " outputs"));
    }
    input_types_.back() = output.type;
  }

  void ReportInput(const NodeDef& node, const std::string& input,
                   const std::string& why) {
    NodePlace{node}.Report(ProblemKind::kStructure,
                           absl::StrCat("reads ", Quoted(input), ", ", why),
                           &problems_);
  }

  void CheckVersions() {
    const auto& versions = graph_.versions();
    if (versions.min_consumer() > TF_GRAPH_DEF_VERSION) {
      problems_.Add(
          ProblemKind::kOther, "",
          absl::StrCat("the graph asks for a TensorFlow with graph version ",
                       versions.min_consumer(), " or later; this one has ",
                       TF_GRAPH_DEF_VERSION));
    }
  }

  // Reports each unknown op once, however many nodes have it.
  void CheckOps() {
    absl::flat_hash_map<std::string_view, int> others;
    std::vector<const NodeDef*> first;
    for (int32_t id = 0; id < graph_.node_size(); ++id) {
      if (ops_[id] != nullptr) continue;
      const auto [found, inserted] = others.emplace(graph_.node(id).op(), 0);
      if (inserted) {
        first.push_back(&graph_.node(id));
      } else {
        ++found->second;
      }
    }
    for (const NodeDef* node : first) {
      const int count = others[node->op()];
      const std::string more =
          count == 0   ? ""
          : count == 1 ? ", as has one other node"
                       : absl::StrCat(", as have ", count, " others");
      if (problems_.full()) return;
      NodePlace{*node}.Report(ProblemKind::kOp,
                              absl::StrCat("has an unknown op", more,
                                           catalog_.DidYouMeanOp(node->op())),
                              &problems_);
    }
  }

  void CheckNode(int32_t id) {
    const NodePlace place{graph_.node(id)};
    if (!place.node.name().empty() && !IsValidNodeName(place.node.name())) {
      place.Report(ProblemKind::kOther,
                   "has a character in its name that TensorFlow does not allow "
                   "there",
                   &problems_);
    }
    const OpEntry* op = ops_[id];
    if (op == nullptr) return;
    CheckDeprecation(place, *op->definition);
    const size_t problems_before = problems_.size();
    CheckAttributes(place, *op, &catalog_, &problems_);
    if (problems_.size() == problems_before) CheckCounts(place, *op);
    data_types_.clear();
    for (int64_t e = inputs_.first[id]; e < inputs_.first[id + 1]; ++e) {
      if (inputs_.edges[e].port != kControlPort) {
        data_types_.push_back(input_types_[e]);
      }
    }
    CheckInputTypes(place, *op, data_types_, &problems_);
  }

  // Checks attributes that may be valid individually but give invalid counts.
  void CheckCounts(const NodePlace& place, const OpEntry& op) {
    const auto& definition = *op.definition;
    if (!CountTensors(definition.input_arg(), place.node, definition) ||
        !CountTensors(definition.output_arg(), place.node, definition)) {
      place.Report(ProblemKind::kAttribute,
                   "has attributes that give no possible number or type of "
                   "inputs and outputs",
                   &problems_);
    }
  }

  void CheckDeprecation(const NodePlace& place,
                        const tensorflow::OpDef& definition) {
    const int version = definition.deprecation().version();
    if (!definition.has_deprecation() ||
        graph_.versions().producer() < version) {
      return;
    }
    place.Report(
        ProblemKind::kOp,
        absl::StrCat("has an op that is gone since graph version ", version,
                     ", but the graph is of version ",
                     graph_.versions().producer(), ": ",
                     ShortReason(definition.deprecation().explanation())),
        &problems_);
  }

  const GraphDef& graph_;
  const VerifyOptions options_;
  OpCatalog catalog_;
  ProblemList problems_;
  absl::flat_hash_map<std::string_view, int32_t> ids_;
  std::vector<const OpEntry*> ops_;  // null for an unknown op
  // The edges without loops' back edges, and the type of each edge's tensor.
  NodeEdges inputs_;
  std::vector<DataType> input_types_;
  std::vector<DataType> data_types_;  // the current node's
};

}  // namespace

std::string Quoted(std::string_view text) {
  return absl::StrCat("\"", Printable(text), "\"");
}

std::string ShortReason(std::string_view message) {
  message = message.substr(0, message.find('\n'));
  // What follows describes the whole node.
  message = message.substr(0, message.find("; NodeDef: "));
  const std::string_view shown = Prefix(message, kLongestReason);
  std::string text = Printable(shown);
  if (shown.size() < message.size()) {
    text += "...";
  } else if (!text.empty() && text.back() == '.') {
    text.pop_back();
  }
  return text;
}

std::string NodePlace::Describe() const {
  const std::string text = absl::StrCat("node ", Quoted(node.name()), " (",
                                        Printable(node.op()), ")");
  return function == nullptr
             ? text
             : absl::StrCat(text, " of function ", Quoted(function->name()));
}

void NodePlace::Report(ProblemKind kind, std::string_view what,
                       ProblemList* problems) const {
  if (problems->full()) return;
  problems->Add(kind,
                function == nullptr
                    ? node.name()
                    : absl::StrCat(function->name(), "/", node.name()),
                absl::StrCat(Describe(), " ", what));
}

bool IsLoopEdge(const std::string& producer_op,
                const std::string& consumer_op) {
  return (consumer_op == "Merge" || consumer_op == "RefMerge") &&
         (producer_op == "NextIteration" || producer_op == "RefNextIteration");
}

void ReportCycles(const NodeOrder& order,
                  const google::protobuf::RepeatedPtrField<NodeDef>& nodes,
                  const tensorflow::OpDef* function, ProblemKind kind,
                  ProblemList* problems) {
  for (const std::vector<int32_t>& cycle : order.cycles) {
    if (problems->full()) return;
    std::string names;
    const size_t shown = std::min(cycle.size(), kNamesShown);
    for (size_t i = 0; i < shown; ++i) {
      absl::StrAppend(&names, Quoted(nodes[cycle[i]].name()), " -> ");
    }
    if (cycle.size() > shown) {
      absl::StrAppend(&names, "... (", cycle.size() - shown, " more) -> ");
    }
    absl::StrAppend(&names, Quoted(nodes[cycle[0]].name()));
    NodePlace{nodes[cycle[0]], function}.Report(
        kind, absl::StrCat("depends on its own output: ", names), problems);
  }
}

absl::StatusOr<std::vector<GraphProblem>> VerifyGraph(
    const GraphDef& graph, const VerifyOptions& options) {
  REQUANT_RETURN_IF_ERROR(LoadTensorFlow());
  return Verifier(graph, options).Verify();
}

}  // namespace requant
