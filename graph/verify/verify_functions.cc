#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "graph/graph_wiring.h"
#include "graph/op_catalog.h"
#include "graph/verify/verify_parts.h"
#include "tensorflow/core/framework/types.h"

namespace requant {

using tensorflow::DataType;
using tensorflow::FunctionDef;
using tensorflow::FunctionDefLibrary;
using tensorflow::NodeDef;
using tensorflow::OpDef;

namespace {

// An input that stands for more tensors than this is taken as unknown.
constexpr int64_t kMaxTensorsOfInput = 100000;

// What an input or a result of a body names.
struct Source {
  bool exists = false;
  // The node that produces it; kNoNode for an argument of the function.
  int32_t node = kNoNode;
  // Nothing when their number depends on the caller; DT_INVALID for a type that
  // does.
  std::optional<std::vector<DataType>> types;
};

class FunctionCheck {
 public:
  FunctionCheck(const FunctionDef& function, OpCatalog* catalog,
                ProblemList* problems)
      : function_(function),
        signature_(function.signature()),
        catalog_(*catalog),
        problems_(*problems) {}

  void Check() {
    IndexNames();
    NodeEdges inputs;
    for (int32_t id = 0; id < function_.node_def_size(); ++id) {
      if (problems_.full()) return;
      CheckNode(id, &inputs);
      inputs.EndNode();
    }
    ReportCycles(SortNodes(inputs), function_.node_def(), &signature_,
                 ProblemKind::kOther, &problems_);
    CheckResults();
  }

 private:
  void IndexNames() {
    for (int i = 0; i < signature_.input_arg_size(); ++i) {
      if (!arguments_.emplace(signature_.input_arg(i).name(), i).second) {
        ReportFunction(absl::StrCat("has two arguments named ",
                                    Quoted(signature_.input_arg(i).name())));
      }
    }
    ops_.reserve(function_.node_def_size());
    for (int32_t i = 0; i < function_.node_def_size(); ++i) {
      const NodeDef& node = function_.node_def(i);
      ops_.push_back(catalog_.Find(node.op()));
      if (node.name().empty()) {
        ReportFunction(absl::StrCat("has a node without a name (number ", i,
                                    ", op ", Quoted(node.op()), ")"));
      } else if (arguments_.contains(node.name()) ||
                 !nodes_.emplace(node.name(), i).second) {
        ReportFunction(absl::StrCat("has two nodes or arguments named ",
                                    Quoted(node.name())));
      }
    }
  }

  void CheckNode(int32_t id, NodeEdges* inputs) {
    const NodeDef& node = function_.node_def(id);
    const NodePlace place{node, &signature_};
    const OpEntry* op = ops_[id];
    if (op == nullptr) {
      place.Report(
          ProblemKind::kOp,
          absl::StrCat("has an unknown op", catalog_.DidYouMeanOp(node.op())),
          &problems_);
    } else {
      CheckAttributes(place, *op, &catalog_, &problems_);
    }
    CheckInputOrder(place, ProblemKind::kInput, &problems_);
    std::optional<std::vector<DataType>> types = std::vector<DataType>();
    for (const std::string& input : node.input()) {
      if (problems_.full()) return;
      const Source source = Resolve(input);
      if (!source.exists) {
        place.Report(ProblemKind::kMissingInput,
                     absl::StrCat("reads ", Quoted(input),
                                  ", which names no node or argument there"),
                     &problems_);
      }
      if (!source.exists || !source.types.has_value()) {
        types.reset();
      } else if (types.has_value()) {
        types->insert(types->end(), source.types->begin(), source.types->end());
      }
      const bool loop =
          source.node != kNoNode &&
          IsLoopEdge(function_.node_def(source.node).op(), node.op());
      inputs->edges.push_back({loop ? kNoNode : source.node, 0});
    }
    if (op != nullptr && types.has_value()) {
      CheckInputTypes(place, *op, *types, &problems_);
    }
  }

  // Knows "argument", "argument:index", "node:output", "node:output:index" and
  // "^node".
  Source Resolve(std::string_view input) const {
    Source source;
    const bool control = !input.empty() && input[0] == '^';
    if (control) input.remove_prefix(1);
    const size_t colon = control ? std::string_view::npos : input.find(':');
    const std::string_view head = input.substr(0, colon);
    const std::string_view rest =
        colon == std::string_view::npos ? "" : input.substr(colon + 1);
    if (const auto found = arguments_.find(head); found != arguments_.end()) {
      ResolveArgument(signature_.input_arg(found->second), control, rest,
                      &source);
    } else if (const auto node = nodes_.find(head); node != nodes_.end()) {
      source.node = node->second;
      if (control) {
        source.exists = true;
        source.types.emplace();
      } else {
        ResolveOutput(node->second, rest, &source);
      }
    }
    return source;
  }

  void ResolveArgument(const OpDef::ArgDef& argument, bool control,
                       std::string_view rest, Source* source) const {
    const bool list = IsList(argument);
    if (control) {
      source->exists = true;
      source->types.emplace();
      return;
    }
    int index;
    source->exists = rest.empty() || (absl::SimpleAtoi(rest, &index) &&
                                      index >= 0 && (list || index == 0));
    if (list && rest.empty()) return;
    DataType type = tensorflow::DT_INVALID;
    if (!list && argument.type_attr().empty() &&
        tensorflow::DataType_IsValid(argument.type())) {
      type = argument.is_ref() && !tensorflow::IsRefType(argument.type())
                 ? tensorflow::MakeRefType(argument.type())
                 : argument.type();
    }
    source->types = std::vector<DataType>{type};
  }

  void ResolveOutput(int32_t id, std::string_view rest, Source* source) const {
    const OpEntry* op = ops_[id];
    if (op == nullptr) {
      source->exists = true;
      return;
    }
    const size_t colon = rest.find(':');
    const auto output = op->output_index.find(rest.substr(0, colon));
    if (output == op->output_index.end()) return;
    const auto types =
        TypesOfArgument(op->definition->output_arg(output->second),
                        function_.node_def(id), *op->definition);
    int64_t begin = 0;
    if (colon != std::string_view::npos &&
        (!absl::SimpleAtoi(rest.substr(colon + 1), &begin) || begin < 0 ||
         (types.has_value() && begin >= types->count))) {
      return;
    }
    source->exists = true;
    if (!types.has_value()) {
      if (colon != std::string_view::npos)
        source->types = std::vector<DataType>{tensorflow::DT_INVALID};
      return;
    }
    const int64_t count = colon != std::string_view::npos ? 1 : types->count;
    if (count > kMaxTensorsOfInput) return;
    source->types.emplace();
    for (int64_t i = begin; i < begin + count; ++i) {
      source->types->push_back(types->At(i));
    }
  }

  void CheckResults() {
    for (const OpDef::ArgDef& output : signature_.output_arg()) {
      if (problems_.full()) return;
      const auto found = function_.ret().find(output.name());
      if (found == function_.ret().end()) {
        ReportFunction(absl::StrCat("returns nothing for its output ",
                                    Quoted(output.name())));
        continue;
      }
      CheckResult(output, found->second);
    }
    std::map<std::string, std::string> controls(function_.control_ret().begin(),
                                                function_.control_ret().end());
    for (const auto& [name, node] : controls) {
      if (!nodes_.contains(node)) {
        ReportFunction(absl::StrCat("names ", Quoted(node),
                                    " as its control output ", Quoted(name),
                                    ", but has no such node"));
      }
    }
    for (const std::string& name : signature_.control_output()) {
      if (!controls.count(name)) {
        ReportFunction(
            absl::StrCat("has no node for its control output ", Quoted(name)));
      }
    }
  }

  void CheckResult(const OpDef::ArgDef& output, const std::string& value) {
    const Source source = Resolve(value);
    if (!source.exists || absl::StartsWith(value, "^")) {
      ReportFunction(absl::StrCat("returns ", Quoted(value), " as ",
                                  Quoted(output.name()),
                                  ", which names no node or argument there"));
      return;
    }
    if (IsList(output) || !output.type_attr().empty() ||
        !source.types.has_value() || source.types->size() != 1) {
      return;
    }
    const DataType given = source.types->front();
    if (given != tensorflow::DT_INVALID &&
        !tensorflow::TypesCompatible(output.type(), given)) {
      ReportFunction(
          absl::StrCat("declares its output ", Quoted(output.name()), " as ",
                       tensorflow::DataTypeString(output.type()),
                       " but returns ", tensorflow::DataTypeString(given)));
    }
  }

  void ReportFunction(const std::string& what) {
    problems_.Add(
        ProblemKind::kOther, signature_.name(),
        absl::StrCat("function ", Quoted(signature_.name()), " ", what));
  }

  const FunctionDef& function_;
  const OpDef& signature_;
  OpCatalog& catalog_;
  ProblemList& problems_;
  absl::flat_hash_map<std::string_view, int> arguments_;
  absl::flat_hash_map<std::string_view, int32_t> nodes_;
  std::vector<const OpEntry*> ops_;
};

void CheckGradient(const tensorflow::GradientDef& gradient, OpCatalog* catalog,
                   ProblemList* problems) {
  for (const std::string& name :
       {gradient.function_name(), gradient.gradient_func()}) {
    if (catalog->Find(name) == nullptr) {
      problems->Add(
          ProblemKind::kOther, name,
          absl::StrCat("the gradient of function ",
                       Quoted(gradient.function_name()), " needs ",
                       Quoted(name), ", which is not in the graph's library"));
    }
  }
}

}  // namespace

void CheckFunctions(const FunctionDefLibrary& library, OpCatalog* catalog,
                    ProblemList* problems) {
  absl::flat_hash_set<std::string_view> names;
  for (const FunctionDef& function : library.function()) {
    if (problems->full()) return;
    const std::string& name = function.signature().name();
    if (name.empty()) {
      problems->Add(ProblemKind::kOther, "",
                    "the library has a function without a name");
    } else if (!names.insert(name).second) {
      problems->Add(ProblemKind::kOther, name,
                    absl::StrCat("two functions are named ", Quoted(name)));
    }
    if (IsTooVariable(function.signature())) {
      problems->Add(
          ProblemKind::kOther, name,
          absl::StrCat("function ", Quoted(name), " has more than ",
                       kMaxVariableParts, " attributes or list arguments"));
      continue;
    }
    FunctionCheck(function, catalog, problems).Check();
  }
  for (const auto& gradient : library.gradient()) {
    if (problems->full()) return;
    CheckGradient(gradient, catalog, problems);
  }
}

}  // namespace requant
