#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/const_node.h"
#include "graph/freeze/freeze_parts.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace requant {
namespace {

using google::protobuf::RepeatedPtrField;
using tensorflow::DataType;
using tensorflow::FunctionDef;
using tensorflow::GraphDef;
using tensorflow::NodeDef;

bool IsControl(std::string_view input) { return absl::StartsWith(input, "^"); }

// A tensor is "node:port" in a graph, and "node:argument:number" or "argument"
// in a function; in all of them the node comes first and the number last.
int NumberOf(std::string_view tensor) {
  const size_t colon = tensor.rfind(':');
  int number = 0;
  if (colon != std::string_view::npos &&
      absl::SimpleAtoi(tensor.substr(colon + 1), &number)) {
    return number;
  }
  return 0;
}

void KeepControlInputs(NodeDef* node) {
  std::vector<std::string> controls;
  for (const std::string& input : node->input()) {
    if (IsControl(input)) controls.push_back(input);
  }
  node->mutable_input()->Clear();
  node->mutable_input()->Add(controls.begin(), controls.end());
}

void SetType(const std::string& attribute, DataType type, NodeDef* node) {
  (*node->mutable_attr())[attribute].set_type(type);
}

// Sets element `index` of a list of types if it exists.
void SetListedType(const std::string& attribute, int index, DataType type,
                   NodeDef* node) {
  auto* list = (*node->mutable_attr())[attribute].mutable_list();
  if (index < list->type_size()) list->set_type(index, type);
}

void SetListedShape(int index, const tensorflow::TensorShapeProto& shape,
                    NodeDef* node) {
  const auto shapes = node->mutable_attr()->find("output_shapes");
  if (shapes == node->mutable_attr()->end()) return;
  auto* list = shapes->second.mutable_list();
  if (index < list->shape_size()) *list->mutable_shape(index) = shape;
}

// What held for a handle does not hold for a value.
void DropHandleAttributes(NodeDef* node) {
  for (const char* name : {"_output_shapes", "_handle_dtypes", "_handle_shapes",
                           "_handle_data", "_class"}) {
    node->mutable_attr()->erase(name);
  }
}

// Replaces a query about a variable by its answer.
void BecomeTrue(NodeDef* node) {
  KeepControlInputs(node);
  node->set_op("Const");
  *node->mutable_attr() = MakeConst("", tensorflow::Tensor(true)).attr();
}

// The nodes of a graph or function, indexed by which nodes read which.
class Body {
 public:
  explicit Body(GraphDef* graph) : nodes_(*graph->mutable_node()) { Index(); }
  // `name` is the function's name for messages.
  Body(FunctionDef* function, std::string name)
      : nodes_(*function->mutable_node_def()),
        function_(function),
        function_name_(std::move(name)) {
    for (const auto& argument : function->signature().input_arg()) {
      names_.insert(argument.name());
    }
    Index();
  }

  struct Reader {
    int node;
    int input;
  };
  // Returns the nodes that currently read any output of `name`.
  std::vector<Reader> ReadersOf(const std::string& name) const {
    std::vector<Reader> readers;
    const auto found = readers_.find(name);
    if (found == readers_.end()) return readers;
    for (const Reader& reader : found->second) {
      const NodeDef& node = nodes_[reader.node];
      if (reader.input < node.input_size() &&
          NodeOf(node.input(reader.input)) == name) {
        readers.push_back(reader);
      }
    }
    return readers;
  }

  NodeDef* node(int index) { return nodes_.Mutable(index); }
  bool has_loops() const { return has_loops_; }

  // Returns " in the function \"f\"" or "".
  std::string Where() const {
    if (function_ == nullptr) return "";
    return absl::StrCat(" in the function \"", function_name_, "\"");
  }

  // Appends a node under a similar unused name; returns how to read its only
  // output, which its op calls "output".
  std::string Add(NodeDef node) {
    const std::string base = node.name();
    for (int i = 1; !names_.insert(node.name()).second; ++i) {
      node.set_name(absl::StrCat(base, "_", i));
    }
    std::string tensor = function_ == nullptr
                             ? node.name()
                             : absl::StrCat(node.name(), ":output:0");
    *nodes_.Add() = std::move(node);
    return tensor;
  }

  // Gives `node` the op `op`, whose only output is called "output".
  void SetOp(NodeDef* node, const std::string& op,
             const std::string& old_output) {
    node->set_op(op);
    if (function_ == nullptr || old_output == "output") return;
    const std::string from = absl::StrCat(node->name(), ":", old_output, ":0");
    const std::string to = absl::StrCat(node->name(), ":output:0");
    for (const Reader& reader : ReadersOf(node->name())) {
      std::string* input =
          nodes_.Mutable(reader.node)->mutable_input(reader.input);
      if (*input == from) *input = to;
    }
    for (auto& [name, value] : *function_->mutable_ret()) {
      if (value == from) value = to;
    }
  }

 private:
  void Index() {
    for (int i = 0; i < nodes_.size(); ++i) {
      names_.insert(nodes_[i].name());
      has_loops_ = has_loops_ || nodes_[i].op() == "Enter";
      for (int j = 0; j < nodes_[i].input_size(); ++j) {
        const std::string& input = nodes_[i].input(j);
        if (!IsControl(input)) {
          readers_[std::string(NodeOf(input))].push_back({i, j});
        }
      }
    }
  }

  RepeatedPtrField<NodeDef>& nodes_;
  FunctionDef* function_ = nullptr;
  const std::string function_name_;
  absl::flat_hash_set<std::string> names_;
  absl::flat_hash_map<std::string, std::vector<Reader>> readers_;
  bool has_loops_ = false;
};

// Where a variable is: output `number` of `node`, or any output if it is -1.
struct Carrier {
  std::string node;
  int number;
};

// A copy of a function that takes a value instead of a variable.
struct Specialized {
  std::string name;
  // The outputs that return the variable.
  std::set<int> returned;
};

bool PassesOn(std::string_view op) {
  static const auto* ops = new absl::flat_hash_set<std::string>{
      "Identity", "Switch", "Enter", "Exit", "NextIteration", "Merge"};
  return ops->contains(op);
}

// Returns whether the op on references has a counterpart for values.
bool PassesOnReference(std::string_view op) {
  return absl::StartsWith(op, "Ref") && PassesOn(op.substr(3));
}

bool AssignsWithoutOutput(const std::string& op) {
  return op == "AssignVariableOp" || op == "AssignAddVariableOp" ||
         op == "AssignSubVariableOp" || op == "DisableCopyOnRead" ||
         absl::StartsWith(op, "ResourceApply") ||
         absl::StartsWith(op, "ResourceSparseApply") ||
         absl::StartsWith(op, "ResourceScatter") ||
         op == "ResourceStridedSliceAssign";
}

bool ChangesReference(const std::string& op) {
  return op == "Assign" || op == "AssignAdd" || op == "AssignSub" ||
         op == "CountUpTo" || op == "StridedSliceAssign" ||
         absl::StartsWith(op, "Apply") || absl::StartsWith(op, "SparseApply") ||
         (absl::StartsWith(op, "Scatter") && op != "ScatterNd" &&
          op != "ScatterNdNonAliasingAdd");
}

bool IsCall(const std::string& op) {
  return op == "PartitionedCall" || op == "StatefulPartitionedCall";
}
bool IsIf(const std::string& op) { return op == "If" || op == "StatelessIf"; }
bool IsCase(const std::string& op) {
  return op == "Case" || op == "StatelessCase";
}
bool IsWhile(const std::string& op) {
  return op == "While" || op == "StatelessWhile";
}

class Rewriter {
 public:
  explicit Rewriter(GraphDef* graph) : graph_(*graph), top_(graph) {
    for (const FunctionDef& function : graph->library().function()) {
      functions_.emplace(function.signature().name(), &function);
    }
  }

  absl::Status Replace(const FrozenValue& value) {
    return Follow({value.variable, -1}, value, &top_).status();
  }

  const std::vector<std::string>& dropped() const { return dropped_; }

 private:
  // Follows the variable through `body`; returns all nodes that carry it.
  absl::StatusOr<std::vector<Carrier>> Follow(Carrier start,
                                              const FrozenValue& value,
                                              Body* body);
  absl::Status Rewrite(int node, int input, const FrozenValue& value,
                       Body* body, std::vector<Carrier>* carriers);
  absl::Status RewriteReference(int input, const FrozenValue& value,
                                NodeDef* node, Body* body,
                                std::vector<Carrier>* carriers);
  void RewriteGather(const FrozenValue& value, NodeDef* node, Body* body);
  absl::Status RewriteCaller(int input, const FrozenValue& value, NodeDef* node,
                             const Body& body, std::vector<Carrier>* carriers);
  absl::StatusOr<Specialized> Specialize(const std::string& function, int input,
                                         const FrozenValue& value);
  absl::StatusOr<Specialized> MakeSpecialized(const FunctionDef& function,
                                              int input,
                                              const FrozenValue& value);

  GraphDef& graph_;
  Body top_;
  absl::flat_hash_map<std::string, const FunctionDef*> functions_;
  absl::flat_hash_map<std::string, Specialized> specialized_;
  // The originals of the copies made here, through any number of changes.
  absl::flat_hash_map<std::string, std::string> origins_;
  absl::flat_hash_set<std::string> under_way_;
  std::vector<std::string> dropped_;
};

absl::StatusOr<std::vector<Carrier>> Rewriter::Follow(Carrier start,
                                                      const FrozenValue& value,
                                                      Body* body) {
  std::vector<Carrier> carriers = {std::move(start)};
  std::set<std::pair<int, int>> seen;
  for (size_t i = 0; i < carriers.size(); ++i) {
    const Carrier carrier = carriers[i];
    for (const Body::Reader& reader : body->ReadersOf(carrier.node)) {
      const std::string& input = body->node(reader.node)->input(reader.input);
      const bool reads =
          carrier.number < 0 || NumberOf(input) == carrier.number;
      if (reads && seen.insert({reader.node, reader.input}).second) {
        REQUANT_RETURN_IF_ERROR(
            Rewrite(reader.node, reader.input, value, body, &carriers));
      }
    }
  }
  return carriers;
}

// GatherV2 takes the axis as an input.
void Rewriter::RewriteGather(const FrozenValue& value, NodeDef* node,
                             Body* body) {
  const auto batch_dims = node->attr().find("batch_dims");
  const int32_t number =
      batch_dims == node->attr().end() ? 0 : batch_dims->second.i();
  NodeDef axis = MakeConst(absl::StrCat(node->name(), "/axis"),
                           tensorflow::Tensor(number));
  // In a loop of Enter and Exit nodes constants must be of the same iteration.
  if (body->has_loops() && node->input_size() > 1) {
    axis.add_input(absl::StrCat("^", NodeOf(node->input(1))));
  }
  std::vector<std::string> inputs(node->input().begin(), node->input().end());
  inputs.insert(inputs.begin() + std::min<size_t>(2, inputs.size()),
                body->Add(std::move(axis)));
  node->mutable_input()->Clear();
  node->mutable_input()->Add(inputs.begin(), inputs.end());
  node->set_op("GatherV2");
  node->mutable_attr()->erase("dtype");
  node->mutable_attr()->erase("validate_indices");
  SetType("Tparams", value.dtype, node);
  SetType("Taxis", tensorflow::DT_INT32, node);
}

absl::Status Rewriter::RewriteReference(int input, const FrozenValue& value,
                                        NodeDef* node, Body* body,
                                        std::vector<Carrier>* carriers) {
  const std::string op = node->op();
  if (op == "IsVariableInitialized") {
    BecomeTrue(node);
  } else if (PassesOnReference(op)) {
    node->set_op(op.substr(3));
    DropHandleAttributes(node);
    carriers->push_back({node->name(), op == "RefMerge" ? 0 : -1});
  } else if (ChangesReference(op) && (input == 0 || op.find("Apply") == 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an output needs the result of the ", op, " node \"", node->name(),
        "\"", body->Where(), ", which changes the variable \"", value.variable,
        "\"; in a frozen graph it is a constant"));
  }
  return absl::OkStatus();
}

absl::Status Rewriter::Rewrite(int node_index, int input,
                               const FrozenValue& value, Body* body,
                               std::vector<Carrier>* carriers) {
  NodeDef* node = body->node(node_index);
  if (value.is_reference) {
    return RewriteReference(input, value, node, body, carriers);
  }
  const std::string op = node->op();
  if (op == "ReadVariableOp") {
    node->mutable_attr()->clear();
    SetType("T", value.dtype, node);
    body->SetOp(node, "Identity", "value");
  } else if (op == "ResourceGather" && input == 0) {
    RewriteGather(value, node, body);
  } else if (op == "ResourceGatherNd" && input == 0) {
    node->set_op("GatherNd");
    node->mutable_attr()->erase("dtype");
    SetType("Tparams", value.dtype, node);
  } else if (op == "VariableShape") {
    node->set_op("Shape");
    SetType("T", value.dtype, node);
  } else if (op == "VarIsInitializedOp") {
    BecomeTrue(node);
    body->SetOp(node, "Const", "is_initialized");
  } else if (AssignsWithoutOutput(op) && input == 0) {
    if (op != "DisableCopyOnRead") dropped_.push_back(node->name());
    KeepControlInputs(node);
    node->mutable_attr()->clear();
    node->set_op("NoOp");
  } else if (PassesOn(op) && (input == 0 || op == "Merge")) {
    SetType("T", value.dtype, node);
    carriers->push_back({node->name(), op == "Merge" ? 0 : -1});
  } else if (op == "IdentityN") {
    SetListedType("T", input, value.dtype, node);
    carriers->push_back({node->name(), input});
  } else {
    return RewriteCaller(input, value, node, *body, carriers);
  }
  DropHandleAttributes(node);
  return absl::OkStatus();
}

absl::Status Rewriter::RewriteCaller(int input, const FrozenValue& value,
                                     NodeDef* node, const Body& body,
                                     std::vector<Carrier>* carriers) {
  const std::string op = node->op();
  std::vector<std::string*> callees;
  // Input 0 of If and Case is the condition.
  const int offset = IsIf(op) || IsCase(op) ? 1 : 0;
  auto& attributes = *node->mutable_attr();
  if (IsCall(op)) {
    callees = {attributes["f"].mutable_func()->mutable_name()};
  } else if (IsIf(op)) {
    callees = {attributes["then_branch"].mutable_func()->mutable_name(),
               attributes["else_branch"].mutable_func()->mutable_name()};
  } else if (IsCase(op)) {
    for (auto& branch :
         *attributes["branches"].mutable_list()->mutable_func()) {
      callees.push_back(branch.mutable_name());
    }
  } else if (IsWhile(op)) {
    callees = {attributes["body"].mutable_func()->mutable_name(),
               attributes["cond"].mutable_func()->mutable_name()};
  } else if (functions_.contains(op)) {
    callees = {node->mutable_op()};
  }
  if (callees.empty() || input < offset) {
    return absl::UnimplementedError(absl::StrCat(
        "the variable \"", value.variable, "\" is handed to the ", op,
        " node \"", node->name(), "\"", body.Where(),
        ", where it cannot become a constant; choose outputs that do not need "
        "that node"));
  }
  std::set<int> returned;
  for (size_t i = 0; i < callees.size(); ++i) {
    auto callee = Specialize(*callees[i], input - offset, value);
    if (!callee.ok()) return callee.status();
    *callees[i] = callee->name;
    // A loop's condition returns no variables.
    if (IsWhile(op) && i == 1) continue;
    if (i > 0 && callee->returned != returned) {
      return absl::UnimplementedError(
          absl::StrCat("the branches of the ", op, " node \"", node->name(),
                       "\"", body.Where(), " return the variable \"",
                       value.variable, "\" in different places"));
    }
    returned = callee->returned;
  }
  if (IsWhile(op) && returned != std::set<int>{input}) {
    return absl::UnimplementedError(
        absl::StrCat("the loop \"", node->name(), "\"", body.Where(),
                     " does not hand the variable \"", value.variable,
                     "\" unchanged from one round to the next"));
  }
  if (!IsWhile(op)) SetListedType("Tin", input - offset, value.dtype, node);
  for (const int output : returned) {
    SetListedType(IsWhile(op) ? "T" : "Tout", output, value.dtype, node);
    SetListedShape(output, value.shape, node);
    carriers->push_back({node->name(), output});
  }
  node->mutable_attr()->erase("_output_shapes");
  return absl::OkStatus();
}

absl::StatusOr<Specialized> Rewriter::Specialize(const std::string& function,
                                                 int input,
                                                 const FrozenValue& value) {
  const auto found = functions_.find(function);
  if (found == functions_.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the graph calls the function \"", function,
                     "\", which is not in its library"));
  }
  const std::string key = absl::StrCat(function, "\n", input, "\n", value.dtype,
                                       "\n", value.shape.SerializeAsString());
  const auto done = specialized_.find(key);
  if (done != specialized_.end()) return done->second;
  if (!under_way_.insert(function).second) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the function \"", function, "\" calls itself with the variable \"",
        value.variable, "\"; a variable cannot be frozen there"));
  }
  auto made = MakeSpecialized(*found->second, input, value);
  under_way_.erase(function);
  if (made.ok()) specialized_.emplace(key, *made);
  return made;
}

absl::StatusOr<Specialized> Rewriter::MakeSpecialized(
    const FunctionDef& original, int input, const FrozenValue& value) {
  for (const auto& argument : original.signature().input_arg()) {
    if (!argument.number_attr().empty() || !argument.type_list_attr().empty() ||
        input >= original.signature().input_arg_size()) {
      return absl::UnimplementedError(absl::StrCat(
          "the variable \"", value.variable, "\" is handed to the function \"",
          original.signature().name(), "\", which takes a list of arguments"));
    }
  }
  FunctionDef* function = graph_.mutable_library()->add_function();
  *function = original;
  const auto origin = origins_.find(original.signature().name());
  const std::string base =
      origin == origins_.end() ? original.signature().name() : origin->second;
  std::string name = absl::StrCat(base, "_frozen");
  for (int i = 1; functions_.contains(name); ++i) {
    name = absl::StrCat(base, "_frozen_", i);
  }
  function->mutable_signature()->set_name(name);
  functions_.emplace(name, function);
  origins_.emplace(name, base);
  auto* argument = function->mutable_signature()->mutable_input_arg(input);
  argument->set_type(value.dtype);
  argument->clear_type_attr();
  argument->clear_handle_data();
  function->mutable_arg_attr()->erase(input);
  function->mutable_resource_arg_unique_id()->erase(input);
  function->mutable_attr()->erase("_input_shapes");
  Body body(function, base);
  const auto carriers = Follow({argument->name(), -1}, value, &body);
  if (!carriers.ok()) return carriers.status();
  Specialized result{name, {}};
  auto& outputs = *function->mutable_signature()->mutable_output_arg();
  for (int i = 0; i < outputs.size(); ++i) {
    const auto source = function->ret().find(outputs[i].name());
    if (source == function->ret().end()) continue;
    for (const Carrier& carrier : *carriers) {
      if (NodeOf(source->second) == carrier.node &&
          (carrier.number < 0 || NumberOf(source->second) == carrier.number)) {
        outputs[i].set_type(value.dtype);
        outputs[i].clear_handle_data();
        result.returned.insert(i);
      }
    }
  }
  return result;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> HandOutValues(
    const std::vector<FrozenValue>& values, GraphDef* graph) {
  Rewriter rewriter(graph);
  for (const FrozenValue& value : values) {
    REQUANT_RETURN_IF_ERROR(rewriter.Replace(value));
  }
  return rewriter.dropped();
}

bool ChangesVariables(const std::string& op) {
  return (AssignsWithoutOutput(op) && op != "DisableCopyOnRead") ||
         ChangesReference(op);
}

bool OnlyChangesState(const std::string& op) {
  return AssignsWithoutOutput(op) || ChangesReference(op) || op == "Save" ||
         op == "SaveV2" || op == "SaveSlices" || op == "MergeV2Checkpoints" ||
         op == "Restore" || op == "RestoreV2" || op == "RestoreSlice";
}

}  // namespace requant
