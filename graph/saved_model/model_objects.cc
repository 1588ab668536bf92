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
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "google/protobuf/text_format.h"
#include "graph/graph_index.h"
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

std::vector<std::string> KeysOf(
    const google::protobuf::Map<std::string, tensorflow::TensorInfo>& tensors) {
  std::vector<std::string> keys;
  for (const auto& [key, info] : tensors) keys.push_back(key);
  return keys;
}

// Finds out how the signatures of a SavedModel and its functions correspond.
class SourceFunctions {
 public:
  explicit SourceFunctions(const MetaGraphDef& source) : source_(source) {
    for (const FunctionDef& function :
         source.graph_def().library().function()) {
      functions_[function.signature().name()] = &function;
    }
  }

  // Returns a signature's function, which takes keyword arguments.
  std::optional<KeyedFunction> Wrapper(
      const std::string& key,
      const tensorflow::SavedBareConcreteFunction& bare) const;

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
  absl::flat_hash_map<std::string_view, const FunctionDef*> functions_;
};

std::optional<KeyedFunction> SourceFunctions::Wrapper(
    const std::string& key,
    const tensorflow::SavedBareConcreteFunction& bare) const {
  const auto found = source_.signature_def().find(key);
  const auto function = functions_.find(bare.concrete_function_name());
  const auto& concrete = source_.object_graph_def().concrete_functions();
  const auto described = concrete.find(bare.concrete_function_name());
  if (found == source_.signature_def().end() || function == functions_.end() ||
      described == concrete.end()) {
    return std::nullopt;
  }
  const SignatureDef& signature = found->second;
  KeyedFunction wrapper;
  wrapper.function = function->second;
  wrapper.inputs = {bare.argument_keywords().begin(),
                    bare.argument_keywords().end()};
  const auto& outputs = described->second.output_signature().dict_value();
  for (const auto& [name, spec] : outputs.fields()) {
    wrapper.outputs.push_back(name);
  }
  // TensorFlow flattens dictionaries in the order of their keys.
  absl::c_sort(wrapper.outputs);
  const tensorflow::OpDef& arguments = wrapper.function->signature();
  if (!absl::c_is_permutation(wrapper.inputs, KeysOf(signature.inputs())) ||
      !absl::c_is_permutation(wrapper.outputs, KeysOf(signature.outputs())) ||
      static_cast<int>(wrapper.inputs.size()) > arguments.input_arg_size() ||
      static_cast<int>(wrapper.outputs.size()) != arguments.output_arg_size()) {
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
  if (inner.function == nullptr || inner.function == &outer) {
    return std::nullopt;
  }
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
  if (!absl::c_is_permutation(inner.inputs, wrapper.inputs) ||
      !absl::c_is_permutation(inner.outputs, wrapper.outputs)) {
    return std::nullopt;
  }
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
    for (const FunctionDef& function : graph->library().function()) {
      names_.insert(function.signature().name());
    }
    for (const auto& [name, function] : original_.concrete_functions()) {
      int64_t number = 0;
      if (absl::SimpleAtoi(name.substr(name.rfind('_') + 1), &number) &&
          number < int64_t{1} << 40) {
        last_number_ = std::max(last_number_, number);
      }
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
  // TensorFlow's fingerprints tell functions apart by the numbers at the ends
  // of their names.
  std::string NewName(const char* prefix) {
    return absl::StrCat(prefix, ++last_number_);
  }
  absl::StatusOr<int> AddNoArgumentFunction(GraphFunction function);
  absl::Status AddTable(const NodeDef& node, int index);
  absl::StatusOr<int> CapturedObject(const std::string& node);
  void AddWrapper(const KeyedFunction& wrapper, const KeyedFunction& inner);
  absl::StatusOr<bool> AddSignature(
      const std::string& key,
      const tensorflow::SavedBareConcreteFunction& bare);
  absl::StatusOr<bool> AddSignatures(const SavedObject& original);
  void AddAttribute(const std::string& name, const SavedObject& object);
  bool HasFunction(const std::string& name) const {
    return objects_.graph.concrete_functions().contains(name);
  }
  void DescribeCheckpoint();

  const SavedObjectGraph& original_;
  const SourceFunctions functions_;
  const ModelObjectsOptions& options_;
  GraphDef* const graph_;
  GraphFunctionMaker maker_;
  ModelObjects objects_;
  // The names of all functions, and the functions that are added to the graph.
  std::set<std::string> names_;
  std::vector<FunctionDef> added_;
  // The tensors, arguments first, of the original's functions.
  std::map<std::string, std::vector<std::string>> computed_;
  // The largest number that ends a function's name.
  int64_t last_number_ = 0;
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
// Returns false if it is not known how it is called, or if it already computes
// something else.
absl::StatusOr<bool> ObjectMaker::AddOriginalFunction(
    const KeyedFunction& keyed, const std::string& key) {
  const SignatureDef& signature = options_.signatures.at(key);
  GraphPart part;
  part.name = keyed.function->signature().name();
  const auto& concrete = original_.concrete_functions();
  const auto found = concrete.find(part.name);
  // Returns whether all are single tensors.
  const auto add = [](const std::vector<std::string>& keys, const auto& infos,
                      std::vector<std::string>* tensors) {
    return absl::c_all_of(keys, [&](const std::string& key) {
      const auto info = infos.find(key);
      if (info == infos.end() || !info->second.has_name()) return false;
      tensors->push_back(info->second.name());
      return true;
    });
  };
  if (!add(keyed.inputs, signature.inputs(), &part.inputs) ||
      !add(keyed.outputs, signature.outputs(), &part.outputs)) {
    return false;
  }
  std::vector<std::string> tensors = part.inputs;
  tensors.insert(tensors.end(), part.outputs.begin(), part.outputs.end());
  const auto known = computed_.find(part.name);
  if (known != computed_.end()) return known->second == tensors;
  if (found == concrete.end() || names_.count(part.name) > 0) return false;
  computed_[part.name] = std::move(tensors);
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
  signature->set_name(NewName("requant_create_table_"));
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
      maker_.Make({NewName("requant_fill_table_"),
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
  REQUANT_ASSIGN_OR_RETURN(const NodeDef* found, maker_.Find(name));
  const NodeDef& node = *found;
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

// Adds a signature's function, which calls `inner` as the original's did.
void ObjectMaker::AddWrapper(const KeyedFunction& wrapper,
                             const KeyedFunction& inner) {
  const FunctionDef& callee =
      *absl::c_find_if(added_, [&](const FunctionDef& function) {
        return function.signature().name() ==
               inner.function->signature().name();
      });
  const tensorflow::OpDef& called = callee.signature();
  FunctionDef function;
  tensorflow::OpDef* signature = function.mutable_signature();
  signature->set_name(wrapper.function->signature().name());
  signature->set_is_stateful(called.is_stateful());
  NodeDef* call = function.add_node_def();
  call->set_name("call");
  call->set_op(called.is_stateful() ? "StatefulPartitionedCall"
                                    : "PartitionedCall");
  (*call->mutable_attr())["f"].mutable_func()->set_name(called.name());
  const auto place = [](const std::vector<std::string>& keys,
                        const std::string& key) {
    return static_cast<int>(absl::c_find(keys, key) - keys.begin());
  };
  for (const std::string& key : wrapper.inputs) {
    const int i = place(inner.inputs, key);
    *signature->add_input_arg() = called.input_arg(i);
  }
  // A function without arguments has this attribute too.
  auto* types = (*call->mutable_attr())["Tin"].mutable_list();
  for (int i = 0; i < called.input_arg_size(); ++i) {
    const auto& argument = called.input_arg(i);
    call->add_input(argument.name());
    types->add_type(argument.type());
    if (i >= static_cast<int>(inner.inputs.size())) {
      *signature->add_input_arg() = argument;
    }
  }
  for (const auto& result : called.output_arg()) {
    (*call->mutable_attr())["Tout"].mutable_list()->add_type(result.type());
  }
  for (const std::string& key : wrapper.outputs) {
    const int i = place(inner.outputs, key);
    *signature->add_output_arg() = called.output_arg(i);
    (*function.mutable_ret())[called.output_arg(i).name()] =
        absl::StrCat("call:output:", i);
  }
  const auto& concrete = objects_.graph.concrete_functions();
  SavedConcreteFunction described =
      original_.concrete_functions().at(signature->name());
  *described.mutable_bound_inputs() = concrete.at(called.name()).bound_inputs();
  (*objects_.graph.mutable_concrete_functions())[signature->name()] =
      std::move(described);
  names_.insert(signature->name());
  added_.push_back(std::move(function));
}

// Adds the function of a signature and the one that it calls, if that is known.
// Returns whether it is known how it is called.
absl::StatusOr<bool> ObjectMaker::AddSignature(
    const std::string& key, const tensorflow::SavedBareConcreteFunction& bare) {
  const auto wrapper = functions_.Wrapper(key, bare);
  if (!wrapper.has_value() || options_.signatures.count(key) == 0 ||
      names_.count(bare.concrete_function_name()) > 0) {
    return false;
  }
  const auto inner = functions_.Inner(*wrapper);
  if (!inner.has_value()) return AddOriginalFunction(*wrapper, key);
  REQUANT_ASSIGN_OR_RETURN(const bool added, AddOriginalFunction(*inner, key));
  if (!added) return AddOriginalFunction(*wrapper, key);
  AddWrapper(*wrapper, *inner);
  return true;
}

// Adds the object `signatures`, of which `original` is the original's. Returns
// whether all are known.
absl::StatusOr<bool> ObjectMaker::AddSignatures(const SavedObject& original) {
  const int index = AddUserObject("signature_map");
  AddChild(0, "signatures", index);
  for (const auto& child : original.children()) {
    const std::string& key = child.local_name();
    const SavedObject* object = OriginalObject(child.node_id());
    if (object == nullptr || !object->has_bare_concrete_function()) {
      return false;
    }
    const auto& bare = object->bare_concrete_function();
    REQUANT_ASSIGN_OR_RETURN(const bool added, AddSignature(key, bare));
    if (!added) return false;
    const int function = AddObject();
    *Object(function)->mutable_bare_concrete_function() = bare;
    AddChild(index, key, function);
  }
  return original.children_size() ==
         static_cast<int>(options_.signatures.size());
}

// Adds an attribute of the original's object if it is a function that computes
// what a signature does.
void ObjectMaker::AddAttribute(const std::string& name,
                               const SavedObject& object) {
  SavedObject copy;
  if (object.has_function()) {
    auto* function = copy.mutable_function();
    *function->mutable_function_spec() = object.function().function_spec();
    for (const std::string& concrete : object.function().concrete_functions()) {
      if (HasFunction(concrete)) function->add_concrete_functions(concrete);
    }
    if (function->concrete_functions().empty()) return;
  } else if (object.has_bare_concrete_function()) {
    *copy.mutable_bare_concrete_function() = object.bare_concrete_function();
    if (!HasFunction(
            object.bare_concrete_function().concrete_function_name())) {
      return;
    }
  } else {
    return;
  }
  const int index = AddObject();
  *Object(index) = std::move(copy);
  AddChild(0, name, index);
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
    AddAttribute(child.local_name(), *object);
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
