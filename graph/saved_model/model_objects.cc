#include "graph/saved_model/model_objects.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "google/protobuf/text_format.h"
#include "graph/graph_index.h"
#include "graph/graph_io.h"
#include "graph/op_catalog.h"
#include "graph/saved_model/graph_function.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace requant {
namespace {

using tensorflow::FunctionDef;
using tensorflow::GraphDef;
using tensorflow::MetaGraphDef;
using tensorflow::NodeDef;
using tensorflow::SavedConcreteFunction;
using tensorflow::SavedObject;
using tensorflow::SavedObjectGraph;
using tensorflow::SignatureDef;

// The specification of a Python function without arguments.
constexpr char kNoArguments[] = R"(
    fullargspec {
      named_tuple_value {
        name: "FullArgSpec"
        values { key: "args" value { list_value {} } }
        values { key: "varargs" value { none_value {} } }
        values { key: "varkw" value { none_value {} } }
        values { key: "defaults" value { none_value {} } }
        values { key: "kwonlyargs" value { list_value {} } }
        values { key: "kwonlydefaults" value { none_value {} } }
        values { key: "annotations" value { dict_value {} } }
      }
    }
    input_signature { tuple_value {} })";
constexpr char kNoInputs[] = R"(
    tuple_value { values { tuple_value {} } values { dict_value {} } })";

bool IsCall(const NodeDef& node) {
  return node.op() == "PartitionedCall" ||
         node.op() == "StatefulPartitionedCall";
}

// A function of the original: the keys, in one signature, of what its arguments
// (but for captured ones) and results are, in order.
struct KeyedFunction {
  const FunctionDef* function = nullptr;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
};

bool IsComplete(const KeyedFunction& keyed) {
  const auto named = [](const std::string& key) { return !key.empty(); };
  return absl::c_all_of(keyed.inputs, named) &&
         absl::c_all_of(keyed.outputs, named);
}

// Finds out how the signatures of a SavedModel and its functions correspond.
class SourceFunctions {
 public:
  explicit SourceFunctions(const MetaGraphDef& source) : source_(source) {
    for (const NodeDef& node : source.graph_def().node()) {
      nodes_[node.name()] = &node;
    }
    for (const FunctionDef& function :
         source.graph_def().library().function()) {
      functions_[function.signature().name()] = &function;
    }
  }

  // Returns the function that a signature's nodes call, which takes keyword
  // arguments.
  std::optional<KeyedFunction> Wrapper(const std::string& key) const;

  // Returns the function that a wrapper calls, which is one of the user's.
  std::optional<KeyedFunction> Inner(const KeyedFunction& wrapper) const;

 private:
  const FunctionDef* Callee(const NodeDef& call) const {
    const auto f = call.attr().find("f");
    if (f == call.attr().end()) return nullptr;
    const auto found = functions_.find(f->second.func().name());
    return found == functions_.end() ? nullptr : found->second;
  }

  const MetaGraphDef& source_;
  absl::flat_hash_map<std::string_view, const NodeDef*> nodes_;
  absl::flat_hash_map<std::string_view, const FunctionDef*> functions_;
};

std::optional<KeyedFunction> SourceFunctions::Wrapper(
    const std::string& key) const {
  const auto found = source_.signature_def().find(key);
  if (found == source_.signature_def().end()) return std::nullopt;
  const SignatureDef& signature = found->second;
  absl::flat_hash_map<std::string_view, std::string> inputs;
  for (const auto& [name, info] : signature.inputs()) {
    inputs[NodeOf(info.name())] = name;
  }
  KeyedFunction wrapper;
  const NodeDef* call = nullptr;
  for (const auto& [name, info] : signature.outputs()) {
    const TensorName tensor = ParseTensorName(info.name());
    const auto node = nodes_.find(tensor.node);
    if (node == nodes_.end() || !IsCall(*node->second)) return std::nullopt;
    if (call == nullptr) {
      call = node->second;
      wrapper.function = Callee(*call);
      if (wrapper.function == nullptr) return std::nullopt;
      wrapper.outputs.resize(wrapper.function->signature().output_arg_size());
    }
    if (call != node->second || tensor.port < 0 ||
        tensor.port >= static_cast<int>(wrapper.outputs.size())) {
      return std::nullopt;
    }
    wrapper.outputs[tensor.port] = name;
  }
  if (call == nullptr) return std::nullopt;
  for (const std::string& input : call->input()) {
    const auto name = inputs.find(NodeOf(input));
    if (name == inputs.end()) break;
    wrapper.inputs.push_back(name->second);
  }
  if (wrapper.inputs.size() != inputs.size() || !IsComplete(wrapper)) {
    return std::nullopt;
  }
  return wrapper;
}

std::optional<KeyedFunction> SourceFunctions::Inner(
    const KeyedFunction& wrapper) const {
  const FunctionDef& outer = *wrapper.function;
  absl::flat_hash_map<std::string_view, const NodeDef*> nodes;
  const NodeDef* call = nullptr;
  for (const NodeDef& node : outer.node_def()) {
    nodes[node.name()] = &node;
    if (!IsCall(node)) continue;
    if (call != nullptr) return std::nullopt;
    call = &node;
  }
  KeyedFunction inner;
  if (call != nullptr) inner.function = Callee(*call);
  if (inner.function == nullptr) return std::nullopt;
  // The arguments after the user's are captured values, in the same order.
  const int captured = outer.signature().input_arg_size() -
                       static_cast<int>(wrapper.inputs.size());
  const int own = inner.function->signature().input_arg_size() - captured;
  if (captured < 0 || own < 0 || own > call->input_size()) return std::nullopt;
  for (int i = 0; i < own; ++i) {
    std::string& key = inner.inputs.emplace_back();
    for (size_t k = 0; k < wrapper.inputs.size(); ++k) {
      if (outer.signature().input_arg(k).name() == call->input(i)) {
        key = wrapper.inputs[k];
      }
    }
  }
  inner.outputs.resize(inner.function->signature().output_arg_size());
  for (size_t k = 0; k < wrapper.outputs.size(); ++k) {
    const auto ret = outer.ret().find(outer.signature().output_arg(k).name());
    if (ret == outer.ret().end()) return std::nullopt;
    std::string tensor = ret->second;
    const auto node = nodes.find(NodeOf(tensor));
    if (node != nodes.end() && node->second->op() == "Identity" &&
        node->second->input_size() > 0) {
      tensor = node->second->input(0);
    }
    const std::pair<std::string_view, std::string_view> parts =
        absl::StrSplit(tensor, absl::MaxSplits(":output:", 1));
    size_t port = 0;
    if (parts.first != call->name() || !absl::SimpleAtoi(parts.second, &port) ||
        port >= inner.outputs.size()) {
      return std::nullopt;
    }
    inner.outputs[port] = wrapper.outputs[k];
  }
  if (!IsComplete(inner)) return std::nullopt;
  return inner;
}

class ObjectMaker {
 public:
  ObjectMaker(const MetaGraphDef& source, const ModelObjectsOptions& options,
              GraphDef* graph)
      : original_(source.object_graph_def()),
        functions_(source),
        options_(options),
        graph_(graph),
        maker_(*graph, [this](const NodeDef& node) { return Captures(node); }) {
    for (const NodeDef& node : graph->node()) nodes_[node.name()] = &node;
    for (const FunctionDef& function : graph->library().function()) {
      names_.insert(function.signature().name());
    }
  }

  absl::StatusOr<std::optional<ModelObjects>> Make();

 private:
  bool Captures(const NodeDef& node) const {
    return node.op() == "VarHandleOp" ||
           options_.initializers.count(node.name()) > 0 ||
           options_.assets.count(node.name()) > 0 ||
           (node.op() == "Const" && static_cast<int64_t>(node.ByteSizeLong()) >=
                                        options_.least_shared_bytes);
  }

  // Adds an object and returns its index. Pointers to objects become invalid.
  int AddObject() {
    objects_.graph.add_nodes();
    return objects_.graph.nodes_size() - 1;
  }
  SavedObject* Object(int index) { return objects_.graph.mutable_nodes(index); }
  int AddUserObject(const std::string& identifier);
  void AddChild(int parent, const std::string& name, int child) {
    auto* reference = Object(parent)->add_children();
    reference->set_node_id(child);
    reference->set_local_name(name);
  }

  // Returns the original's object with this index, or null.
  const SavedObject* OriginalObject(int index) const {
    return index >= 0 && index < original_.nodes_size()
               ? &original_.nodes(index)
               : nullptr;
  }
  absl::Status AddFunction(GraphFunction function,
                           SavedConcreteFunction concrete);
  absl::StatusOr<bool> AddOriginalFunction(const KeyedFunction& keyed,
                                           const std::string& key);
  absl::StatusOr<int> AddNoArgumentFunction(GraphFunction function);
  absl::Status AddTable(const NodeDef& node, int index);
  absl::StatusOr<int> CapturedObject(const std::string& node);
  absl::StatusOr<bool> AddSignatures(const SavedObject& original);
  absl::Status AddAttribute(const std::string& name, const SavedObject& object);
  absl::StatusOr<bool> HasFunction(const std::string& name);
  void DescribeCheckpoint();

  const SavedObjectGraph& original_;
  const SourceFunctions functions_;
  const ModelObjectsOptions& options_;
  GraphDef* const graph_;
  absl::flat_hash_map<std::string_view, const NodeDef*> nodes_;
  GraphFunctionMaker maker_;
  ModelObjects objects_;
  // The names of all functions, and the functions that are added to the graph.
  std::set<std::string> names_;
  std::vector<FunctionDef> added_;
  // The user's functions by names, each with the signature that calls it.
  std::map<std::string, std::pair<KeyedFunction, std::string>> inner_;
  // The objects that stand for nodes of the graph.
  std::map<std::string, int> captured_;
};

int ObjectMaker::AddUserObject(const std::string& identifier) {
  const int index = AddObject();
  auto* object = Object(index)->mutable_user_object();
  object->set_identifier(identifier);
  object->mutable_version()->set_producer(1);
  object->mutable_version()->set_min_consumer(1);
  return index;
}

// Adds the function to the library and describes it.
absl::Status ObjectMaker::AddFunction(GraphFunction function,
                                      SavedConcreteFunction concrete) {
  const std::string name = function.definition.signature().name();
  names_.insert(name);
  added_.push_back(std::move(function.definition));
  concrete.clear_bound_inputs();
  for (const std::string& node : function.captured) {
    REQUANT_ASSIGN_OR_RETURN(const int object, CapturedObject(node));
    concrete.add_bound_inputs(object);
  }
  (*objects_.graph.mutable_concrete_functions())[name] = std::move(concrete);
  return absl::OkStatus();
}

// Adds a function of the original that computes what the signature `key` does.
// Returns whether it is known how it is called.
absl::StatusOr<bool> ObjectMaker::AddOriginalFunction(
    const KeyedFunction& keyed, const std::string& key) {
  const SignatureDef& signature = options_.signatures.at(key);
  GraphPart part;
  part.name = keyed.function->signature().name();
  const auto& concrete = original_.concrete_functions();
  const auto found = concrete.find(part.name);
  if (found == concrete.end() || names_.count(part.name) > 0) return false;
  for (const std::string& input : keyed.inputs) {
    const auto info = signature.inputs().find(input);
    if (info == signature.inputs().end()) return false;
    part.inputs.push_back(info->second.name());
  }
  for (const std::string& output : keyed.outputs) {
    const auto info = signature.outputs().find(output);
    if (info == signature.outputs().end()) return false;
    part.outputs.push_back(info->second.name());
  }
  REQUANT_ASSIGN_OR_RETURN(GraphFunction function, maker_.Make(part));
  REQUANT_RETURN_IF_ERROR(AddFunction(std::move(function), found->second));
  return true;
}

absl::StatusOr<int> ObjectMaker::AddNoArgumentFunction(GraphFunction function) {
  const tensorflow::OpDef signature = function.definition.signature();
  SavedConcreteFunction concrete;
  google::protobuf::TextFormat::ParseFromString(
      kNoInputs, concrete.mutable_canonicalized_input_signature());
  auto* result =
      concrete.mutable_output_signature()->mutable_tensor_spec_value();
  result->mutable_shape();
  result->set_dtype(signature.output_arg(0).type());
  REQUANT_RETURN_IF_ERROR(
      AddFunction(std::move(function), std::move(concrete)));
  const int index = AddObject();
  auto* saved = Object(index)->mutable_function();
  saved->add_concrete_functions(signature.name());
  google::protobuf::TextFormat::ParseFromString(kNoArguments,
                                                saved->mutable_function_spec());
  return index;
}

// Gives the object of a table the functions that make and fill it.
absl::Status ObjectMaker::AddTable(const NodeDef& node, int index) {
  Object(index)->mutable_resource();
  AddChild(0, absl::StrCat("_table_", index), index);
  GraphFunction create;
  auto* signature = create.definition.mutable_signature();
  signature->set_name(absl::StrCat("requant_create_table_", index));
  signature->set_is_stateful(true);
  signature->add_output_arg()->set_name("table");
  signature->mutable_output_arg(0)->set_type(tensorflow::DT_RESOURCE);
  *create.definition.add_node_def() = node;
  (*create.definition.mutable_ret())["table"] = node.name() + ":table_handle:0";
  REQUANT_ASSIGN_OR_RETURN(const int creator,
                           AddNoArgumentFunction(std::move(create)));
  AddChild(index, "_create_resource", creator);
  REQUANT_ASSIGN_OR_RETURN(
      GraphFunction fill,
      maker_.Make({absl::StrCat("requant_fill_table_", index),
                   {},
                   {},
                   {options_.initializers.at(node.name())}}));
  REQUANT_ASSIGN_OR_RETURN(const int initializer,
                           AddNoArgumentFunction(std::move(fill)));
  AddChild(index, "_initialize", initializer);
  return absl::OkStatus();
}

// Returns the object whose value the node has.
absl::StatusOr<int> ObjectMaker::CapturedObject(const std::string& name) {
  const auto [place, added] = captured_.emplace(name, 0);
  if (!added) return place->second;
  const NodeDef& node = *nodes_.at(name);
  const int index = place->second = AddObject();
  if (const auto asset = options_.assets.find(name);
      asset != options_.assets.end()) {
    Object(index)->mutable_asset()->set_asset_file_def_index(asset->second);
  } else if (node.op() == "VarHandleOp") {
    auto* variable = Object(index)->mutable_variable();
    variable->set_name(name);
    variable->set_dtype(node.attr().at("dtype").type());
    *variable->mutable_shape() = node.attr().at("shape").shape();
    // Python keeps only what is an attribute of something.
    AddChild(0, absl::StrCat("_variable_", index), index);
  } else if (node.op() == "Const") {
    Object(index)->mutable_constant()->set_operation(name);
  } else {
    REQUANT_RETURN_IF_ERROR(AddTable(node, index));
  }
  return index;
}

// Adds the object `signatures`, of which `original` is the original's. Returns
// whether all are known.
absl::StatusOr<bool> ObjectMaker::AddSignatures(const SavedObject& original) {
  const int index = AddUserObject("signature_map");
  AddChild(0, "signatures", index);
  // The functions that were added, by what they compute and how.
  std::map<std::string, std::string> known;
  for (const auto& child : original.children()) {
    const std::string& key = child.local_name();
    const SavedObject* object = OriginalObject(child.node_id());
    if (object == nullptr || !object->has_bare_concrete_function())
      return false;
    const auto wrapper = functions_.Wrapper(key);
    const auto signature = options_.signatures.find(key);
    if (!wrapper.has_value() || signature == options_.signatures.end()) {
      return false;
    }
    tensorflow::SavedBareConcreteFunction bare =
        object->bare_concrete_function();
    if (wrapper->function->signature().name() !=
        bare.concrete_function_name()) {
      return false;
    }
    auto inner = functions_.Inner(*wrapper);
    if (inner.has_value()) {
      const std::string name = inner->function->signature().name();
      inner_.emplace(name, std::pair(*std::move(inner), key));
    }
    // Equal signatures share a function.
    const auto [place, is_new] =
        known.emplace(absl::StrCat(DeterministicBytes(signature->second), "\n",
                                   absl::StrJoin(wrapper->inputs, "\n"), "\n\n",
                                   absl::StrJoin(wrapper->outputs, "\n")),
                      bare.concrete_function_name());
    if (is_new) {
      REQUANT_ASSIGN_OR_RETURN(const bool added,
                               AddOriginalFunction(*wrapper, key));
      if (!added) return false;
    }
    bare.set_concrete_function_name(place->second);
    const int function = AddObject();
    *Object(function)->mutable_bare_concrete_function() = std::move(bare);
    AddChild(index, key, function);
  }
  return original.children_size() ==
         static_cast<int>(options_.signatures.size());
}

// Returns whether the user's function was added, now or before.
absl::StatusOr<bool> ObjectMaker::HasFunction(const std::string& name) {
  if (objects_.graph.concrete_functions().contains(name)) return true;
  const auto found = inner_.find(name);
  if (found == inner_.end()) return false;
  const auto& [keyed, key] = found->second;
  return AddOriginalFunction(keyed, key);
}

// Adds an attribute of the original's object if it is a function that computes
// what a signature does.
absl::Status ObjectMaker::AddAttribute(const std::string& name,
                                       const SavedObject& object) {
  SavedObject copy;
  if (object.has_function()) {
    auto* function = copy.mutable_function();
    *function->mutable_function_spec() = object.function().function_spec();
    for (const std::string& concrete : object.function().concrete_functions()) {
      REQUANT_ASSIGN_OR_RETURN(const bool is_there, HasFunction(concrete));
      if (is_there) function->add_concrete_functions(concrete);
    }
    if (function->concrete_functions().empty()) return absl::OkStatus();
  } else if (object.has_bare_concrete_function()) {
    *copy.mutable_bare_concrete_function() = object.bare_concrete_function();
    REQUANT_ASSIGN_OR_RETURN(
        const bool is_there,
        HasFunction(object.bare_concrete_function().concrete_function_name()));
    if (!is_there) return absl::OkStatus();
  } else {
    return absl::OkStatus();
  }
  const int index = AddObject();
  *Object(index) = std::move(copy);
  AddChild(0, name, index);
  return absl::OkStatus();
}

void ObjectMaker::DescribeCheckpoint() {
  for (const SavedObject& object : objects_.graph.nodes()) {
    auto* node = objects_.checkpoint.add_nodes();
    *node->mutable_children() = object.children();
    node->mutable_has_checkpoint_values()->set_value(object.has_variable());
    if (!object.has_variable()) continue;
    auto* value = node->add_attributes();
    value->set_name("VARIABLE_VALUE");
    value->set_full_name(object.variable().name());
    value->set_checkpoint_key(CheckpointKey(object.variable().name()));
  }
}

absl::StatusOr<std::optional<ModelObjects>> ObjectMaker::Make() {
  const SavedObject* root = OriginalObject(0);
  if (root == nullptr) return std::nullopt;
  AddUserObject("_generic_user_object");
  bool has_signatures = false;
  for (const auto& child : root->children()) {
    const SavedObject* object = OriginalObject(child.node_id());
    if (object == nullptr || child.local_name() != "signatures") continue;
    REQUANT_ASSIGN_OR_RETURN(has_signatures, AddSignatures(*object));
  }
  if (!has_signatures) return std::nullopt;
  for (const auto& child : root->children()) {
    const SavedObject* object = OriginalObject(child.node_id());
    if (object == nullptr) continue;
    REQUANT_RETURN_IF_ERROR(AddAttribute(child.local_name(), *object));
  }
  DescribeCheckpoint();
  for (FunctionDef& function : added_) {
    *graph_->mutable_library()->add_function() = std::move(function);
  }
  return std::move(objects_);
}

}  // namespace

absl::StatusOr<std::optional<ModelObjects>> AddModelObjects(
    const MetaGraphDef& source, const ModelObjectsOptions& options,
    GraphDef* graph) {
  return ObjectMaker(source, options, graph).Make();
}

}  // namespace requant
