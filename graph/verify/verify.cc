#include "graph/verify/verify.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/graph_index.h"
#include "graph/node_order.h"
#include "graph/op_catalog.h"
#include "graph/tensorflow_library.h"
#include "graph/verify/verify_cycles.h"
#include "graph/verify/verify_functions.h"
#include "graph/verify/verify_node.h"
#include "graph/verify/verify_report.h"
#include "graph/verify/verify_shapes.h"
#include "tensorflow/core/public/version.h"

namespace requant {

using tensorflow::DataType;
using tensorflow::GraphDef;
using tensorflow::NodeDef;

namespace {

// As TensorFlow's import has it.
bool IsValidNodeName(std::string_view name) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '.' || c == '_';
  };
  if (!is_plain(name[0])) return false;
  for (const char c : name) {
    if (!is_plain(c) && c != '-' && c != '/' && c != '\\' && c != '>') {
      return false;
    }
  }
  return true;
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
          CheckShapes(graph_, ops_, inputs_, ports_, order.sorted, &problems_));
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
      inputs_.first.push_back(inputs_.producer.size());
      if (!problems_.full()) {
        CheckInputOrder({node}, ProblemKind::kStructure, &problems_);
      }
    }
  }

  void ResolveInput(const NodeDef& node, const std::string& input) {
    const TensorName name = ParseTensorName(input);
    const auto found = ids_.find(name.node);
    const int32_t producer = found == ids_.end() ? -1 : found->second;
    ports_.push_back(name.port);
    input_types_.push_back(tensorflow::DT_INVALID);
    if (producer < 0) {
      inputs_.producer.push_back(-1);
      ReportInput(node, input,
                  absl::StrCat("but no node is named ", Quoted(name.node)));
      return;
    }
    const NodeDef& from = graph_.node(producer);
    const bool loop = !name.control() && IsLoopEdge(from.op(), node.op());
    inputs_.producer.push_back(loop ? -1 : producer);
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
    if (problems_.full()) return;
    problems_.Add(ProblemKind::kStructure, node.name(),
                  absl::StrCat(NodePlace{node}.Describe(), " reads ",
                               Quoted(input), ", ", why));
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

  // Each unknown op once, whatever the number of its nodes.
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
      if (problems_.full()) return;
      const int count = others[node->op()];
      problems_.Add(
          ProblemKind::kOp, node->name(),
          absl::StrCat(NodePlace{*node}.Describe(), " has an unknown op",
                       count == 0 ? ""
                       : count == 1
                           ? ", as has one other node"
                           : absl::StrCat(", as have ", count, " others"),
                       catalog_.DidYouMeanOp(node->op())));
    }
  }

  void CheckNode(int32_t id) {
    const NodePlace place{graph_.node(id)};
    if (!place.node.name().empty() && !IsValidNodeName(place.node.name())) {
      problems_.Add(ProblemKind::kOther, place.Path(),
                    absl::StrCat(place.Describe(),
                                 " has a character in its name that "
                                 "TensorFlow does not allow there"));
    }
    const OpEntry* op = ops_[id];
    if (op == nullptr) return;
    CheckDeprecation(place, *op->definition);
    const size_t problems_before = problems_.size();
    CheckAttributes(place, *op, &catalog_, &problems_);
    if (problems_.size() == problems_before) CheckCounts(place, *op);
    data_types_.clear();
    for (int64_t e = inputs_.first[id]; e < inputs_.first[id + 1]; ++e) {
      if (ports_[e] != kControlPort) data_types_.push_back(input_types_[e]);
    }
    CheckInputTypes(place, *op, data_types_, &problems_);
  }

  // Attributes may be good by themselves and yet make no sense as counts.
  void CheckCounts(const NodePlace& place, const OpEntry& op) {
    const auto& definition = *op.definition;
    if (!CountTensors(definition.input_arg(), place.node, definition) ||
        !CountTensors(definition.output_arg(), place.node, definition)) {
      problems_.Add(ProblemKind::kAttribute, place.Path(),
                    absl::StrCat(place.Describe(),
                                 " has attributes that give no possible number "
                                 "or type of inputs and outputs"));
    }
  }

  void CheckDeprecation(const NodePlace& place,
                        const tensorflow::OpDef& definition) {
    const int version = definition.deprecation().version();
    if (!definition.has_deprecation() ||
        graph_.versions().producer() < version) {
      return;
    }
    problems_.Add(
        ProblemKind::kOp, place.Path(),
        absl::StrCat(place.Describe(),
                     " has an op that is gone since graph "
                     "version ",
                     version, ", but the graph is of version ",
                     graph_.versions().producer(), ": ",
                     ShortReason(definition.deprecation().explanation())));
  }

  const GraphDef& graph_;
  const VerifyOptions options_;
  OpCatalog catalog_;
  ProblemList problems_;
  absl::flat_hash_map<std::string_view, int32_t> ids_;
  std::vector<const OpEntry*> ops_;  // null for an unknown op
  // Without the back edges of loops; `ports_` and `input_types_` run parallel
  // to inputs_.producer.
  NodeInputs inputs_;
  std::vector<int32_t> ports_;
  std::vector<DataType> input_types_;
  std::vector<DataType> data_types_;  // of one node
};

}  // namespace

absl::StatusOr<std::vector<GraphProblem>> VerifyGraph(
    const GraphDef& graph, const VerifyOptions& options) {
  REQUANT_RETURN_IF_ERROR(LoadTensorFlow());
  return Verifier(graph, options).Verify();
}

}  // namespace requant
