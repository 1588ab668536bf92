#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
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

// An input that stands for more tensors than this counts as unknown.
constexpr int64_t kMaxTensorsOfInput = 100000;

// What an input or a result of a body refers to.
struct Source {
  bool exists = false;
  // The node that produces it, or kNoNode for a function's argument.
  int32_t node = kNoNode;
  // Unset if the number of types depends on the caller; DT_INVALID marks a type
  // that does.
  std::optional<std::vector<DataType>> types;
};

class FunctionCheck {
 public:
  FunctionCheck(const FunctionDef& function, OpCatalog* catalog,
                ProblemList* problems)
      : function_(function),
        signature_(function.signature()),
        catalog_(*catalog),
        problems_(*problems),
        body_(function, catalog) {}

  void Check() {
    CheckNames();
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
  void CheckNames() {
    absl::flat_hash_set<std::string_view> names;
    for (const OpDef::ArgDef& argument : signature_.input_arg()) {
      if (!names.insert(argument.name()).second) {
        ReportFunction(
            absl::StrCat("has two arguments named ", Quoted(argument.name())));
      }
    }
    for (int32_t i = 0; i < function_.node_def_size(); ++i) {
      const NodeDef& node = function_.node_def(i);
      if (node.name().empty()) {
        ReportFunction(absl::StrCat("has a node without a name (number ", i,
                                    ", op ", Quoted(node.op()), ")"));
      } else if (!names.insert(node.name()).second) {
        ReportFunction(absl::StrCat("has two nodes or arguments named ",
                                    Quoted(node.name())));
      }
    }
  }

  void CheckNode(int32_t id, NodeEdges* inputs) {
    const NodeDef& node = function_.node_def(id);
    const NodePlace place{node, &signature_};
    const OpEntry* op = catalog_.Find(node.op());
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

  Source Resolve(std::string_view input) const {
    const BodyName name = body_.Parse(input);
    Source source;
    source.exists = name.kind != BodyTensor::kUnknown;
    if (name.kind == BodyTensor::kNode) source.node = name.index;
    if (source.exists && name.control) {
      source.types.emplace();
    } else if (name.kind == BodyTensor::kArgument) {
      ResolveArgument(name, &source);
    } else if (name.op != nullptr) {
      ResolveOutput(name, &source);
    }
    return source;
  }

  void ResolveArgument(const BodyName& name, Source* source) const {
    const OpDef::ArgDef& argument = signature_.input_arg(name.index);
    const bool list = IsList(argument);
    source->exists = list || name.number <= 0;
    if (list && name.number < 0) return;
    DataType type = tensorflow::DT_INVALID;
    if (!list && argument.type_attr().empty() &&
        tensorflow::DataType_IsValid(argument.type())) {
      type = argument.is_ref() && !tensorflow::IsRefType(argument.type())
                 ? tensorflow::MakeRefType(argument.type())
                 : argument.type();
    }
    source->types.emplace(1, type);
  }

  void ResolveOutput(const BodyName& name, Source* source) const {
    const OpDef& definition = *name.op->definition;
    const bool numbered = name.number >= 0;
    const auto types =
        TypesOfArgument(definition.output_arg(name.output),
                        function_.node_def(name.index), definition);
    if (!types.has_value()) {
      if (numbered) source->types.emplace(1, tensorflow::DT_INVALID);
      return;
    }
    source->exists = name.number < types->count;
    const int64_t begin = numbered ? name.number : 0;
    const int64_t count = numbered ? 1 : types->count;
    if (!source->exists || count > kMaxTensorsOfInput) return;
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
      if (body_.Parse(absl::StrCat("^", node)).kind != BodyTensor::kNode) {
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
  const GraphBody body_;
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
