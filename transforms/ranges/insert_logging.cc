#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/message_text.h"
#include "base/status_macros.h"
#include "graph/graph_index.h"
#include "graph/op_catalog.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "transforms/transform.h"

namespace requant {
namespace {

using tensorflow::DataType;
using tensorflow::GraphDef;
using tensorflow::NodeDef;

constexpr std::string_view kPrintSuffix = "__print__";

// Returns whether a call of insert_logging names the node.
bool IsNamed(const NodeDef& node, const std::vector<std::string>& ops,
             const std::vector<std::string>& prefixes) {
  return (ops.empty() || absl::c_linear_search(ops, node.op())) &&
         (prefixes.empty() ||
          absl::c_any_of(prefixes, [&](const std::string& prefix) {
            return absl::StartsWith(node.name(), prefix);
          }));
}

// Maps the names of nodes to those of their outputs that other nodes read.
using LoggedNodes = absl::flat_hash_map<std::string, std::set<int>>;

LoggedNodes FindLoggedNodes(const GraphDef& graph,
                            const Parameters& parameters) {
  const auto& ops = parameters.All("op");
  const auto& prefixes = parameters.All("prefix");
  LoggedNodes logged;
  for (const NodeDef& node : graph.node()) {
    if (IsNamed(node, ops, prefixes)) logged[node.name()];
  }
  for (const NodeDef& node : graph.node()) {
    for (const std::string& input : node.input()) {
      const TensorName name = ParseTensorName(input);
      if (name.control()) continue;
      const auto found = logged.find(name.node);
      if (found != logged.end()) found->second.insert(name.port);
    }
  }
  absl::erase_if(logged,
                 [](const auto& entry) { return entry.second.empty(); });
  return logged;
}

std::string NothingLogged(const GraphDef& graph, const Parameters& parameters) {
  std::map<std::string, int> ops;
  for (const NodeDef& node : graph.node()) ++ops[node.op()];
  std::vector<std::string> asked;
  for (const char* name : {"op", "prefix"}) {
    for (const std::string& value : parameters.All(name)) {
      asked.push_back(absl::StrCat(name, "=", value));
    }
  }
  return absl::StrCat(
      "logs nothing, the graph stays as it is: there is no node",
      asked.empty() ? "" : " with ", absl::StrJoin(asked, ", "),
      " whose output another node reads; the graph has ",
      absl::StrJoin(ops, ", ", [](std::string* out, const auto& entry) {
        absl::StrAppend(out, entry.second, " ", entry.first);
      }));
}

// Spells out the port even if it is 0, as TensorFlow's insert_logging does.
std::string TensorAt(std::string_view node, int port) {
  return absl::StrCat(node, ":", port);
}

// Returns a Print that passes on the node's first output in use and prints all
// outputs in use.
absl::StatusOr<NodeDef> MakePrint(const NodeDef& node,
                                  const std::set<int>& ports,
                                  const Parameters& parameters) {
  REQUANT_ASSIGN_OR_RETURN(const std::vector<DataType> types,
                           OutputTypes(node));
  if (*ports.rbegin() >= static_cast<int>(types.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("output ", *ports.rbegin(), " of node \"", node.name(),
                     "\" is read, but ", node.op(), " has ", types.size()));
  }
  NodeDef print;
  print.set_name(absl::StrCat(node.name(), kPrintSuffix));
  print.set_op("Print");
  std::string message;
  if (parameters.Bool("show_op")) {
    absl::StrAppend(&message, ";", node.op(), ";");
  }
  if (parameters.Bool("show_name")) {
    absl::StrAppend(&message, ";", print.name(), ";");
  }
  absl::StrAppend(&message, parameters.String("message"));
  auto& attributes = *print.mutable_attr();
  attributes["message"].set_s(message);
  attributes["first_n"].set_i(parameters.Int("first_n"));
  attributes["summarize"].set_i(parameters.Int("summarize"));
  print.add_input(TensorAt(node.name(), *ports.begin()));
  attributes["T"].set_type(types[*ports.begin()]);
  auto* printed = attributes["U"].mutable_list();
  for (int port : ports) {
    print.add_input(TensorAt(node.name(), port));
    printed->add_type(types[port]);
  }
  return print;
}

// Makes the readers of logged outputs read the Print nodes instead.
void RedirectReaders(const LoggedNodes& logged, GraphDef* graph) {
  for (NodeDef& node : *graph->mutable_node()) {
    for (std::string& input : *node.mutable_input()) {
      const TensorName name = ParseTensorName(input);
      const auto found = logged.find(name.node);
      if (found != logged.end() && name.port == *found->second.begin()) {
        input = TensorAt(absl::StrCat(name.node, kPrintSuffix), 0);
      }
    }
  }
}

// Puts a Print after each node that is logged.
absl::Status InsertPrints(const LoggedNodes& logged,
                          const Parameters& parameters, GraphDef* graph) {
  GraphDef with_prints;
  for (NodeDef& node : *graph->mutable_node()) {
    if (absl::EndsWith(node.name(), kPrintSuffix) &&
        logged.contains(absl::StripSuffix(node.name(), kPrintSuffix))) {
      return absl::AlreadyExistsError(absl::StrCat(
          "the graph already has a node \"", node.name(),
          "\"; insert logging into a graph that is not logged yet"));
    }
    NodeDef* kept = with_prints.add_node();
    kept->Swap(&node);
    const auto found = logged.find(kept->name());
    if (found == logged.end()) continue;
    REQUANT_ASSIGN_OR_RETURN(*with_prints.add_node(),
                             MakePrint(*kept, found->second, parameters));
  }
  graph->mutable_node()->Swap(with_prints.mutable_node());
  return absl::OkStatus();
}

absl::Status InsertLogging(TransformContext& context, GraphDef* graph) {
  const LoggedNodes logged = FindLoggedNodes(*graph, context.parameters);
  if (logged.empty()) {
    context.warnings.push_back(NothingLogged(*graph, context.parameters));
    return absl::OkStatus();
  }
  RedirectReaders(logged, graph);
  REQUANT_RETURN_IF_ERROR(InsertPrints(logged, context.parameters, graph));
  context.notes.push_back(
      absl::StrCat("logs ", CountText(logged.size(), "node")));
  return absl::OkStatus();
}

REQUANT_REGISTER_TRANSFORM(
    InsertLogging,
    {"insert_logging",
     "Puts a Print after nodes, which writes their values to stderr as the "
     "graph runs.",
     "Used before a calibration run: insert_logging(op=RequantizationRange, "
     "show_name=true, message=\"__requant_min_max:\") writes the lines that "
     "freeze_requantization_ranges reads; likewise op=Min with \"__min:\" for "
     "freeze_min and op=Max with \"__max:\" for freeze_max. Only outputs that "
     "another node reads are printed. Where there is nothing to log, as in a "
     "model without Relu, which has no RequantizationRange, the graph stays as "
     "it is, with a warning.",
     {{"op", ParameterType::kString,
       "Log nodes of this op; all ops without it.", "", false, true},
      {"prefix", ParameterType::kString,
       "Log nodes whose name starts with this; all names without it.", "",
       false, true},
      {"show_name", ParameterType::kBool,
       "Start the message with the Print node's name between semicolons.",
       "false"},
      {"show_op", ParameterType::kBool,
       "Start the message with the op between semicolons.", "false"},
      {"message", ParameterType::kString, "Text before the values."},
      {"first_n", ParameterType::kInt,
       "Log this many times per node; -1 means always.", "-1"},
      {"summarize", ParameterType::kInt,
       "How many values of a tensor to print.", "1024"}}});

}  // namespace
}  // namespace requant
