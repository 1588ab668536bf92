#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "graph/freeze/freeze_parts.h"
#include "graph/tensorflow_library.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"

namespace requant {

using tensorflow::FunctionDef;
using tensorflow::GraphDef;
using tensorflow::NodeDef;
using Nodes = google::protobuf::RepeatedPtrField<NodeDef>;

namespace {

// Returns the function that a node calls, or null.
using CalledFunction = std::function<const FunctionDef*(const NodeDef& node)>;

// Counts the nodes of a graph after the calls that wanted nodes depend on,
// including nested ones, are replaced by the bodies of their functions. Visits
// the graph and each function once, however often it is called. A recursive
// call counts as one node.
class Counter {
 public:
  // Stops counting at `limit`.
  Counter(const CalledFunction& called, int64_t limit)
      : called_(called), limit_(limit) {}

  // Uses an explicit stack because calls can nest to any depth.
  int64_t SizeOf(const Nodes& nodes, std::vector<std::string_view> wanted) {
    std::vector<Body> stack = {
        {nullptr, Calls(nodes, std::move(wanted)), 0, nodes.size()}};
    while (true) {
      Body& body = stack.back();
      if (body.next == body.calls.size()) {
        const int64_t size = std::min(body.size, limit_);
        if (body.function == nullptr) return size;
        sizes_[body.function] = size;
        stack.pop_back();
        continue;
      }
      const FunctionDef* callee = body.calls[body.next];
      const auto [known, is_new] = sizes_.try_emplace(callee, 0);
      if (!is_new) {
        body.size = std::min(limit_, body.size + known->second);
        ++body.next;
        continue;
      }
      // The caller looks at the size again when it is known; until then it is
      // zero, which also covers recursive calls.
      stack.push_back({callee, Calls(callee->node_def(), Results(*callee)), 0,
                       callee->node_def_size()});
    }
  }

 private:
  struct Body {
    // Null for the graph.
    const FunctionDef* function;
    std::vector<const FunctionDef*> calls;
    size_t next;
    int64_t size;
  };

  static std::vector<std::string_view> Results(const FunctionDef& function) {
    std::vector<std::string_view> results;
    for (const auto& [name, tensor] : function.ret()) results.push_back(tensor);
    for (const auto& [name, node] : function.control_ret()) {
      results.push_back(node);
    }
    return results;
  }

  // Returns the functions that the wanted nodes call, once for each call.
  std::vector<const FunctionDef*> Calls(
      const Nodes& nodes, std::vector<std::string_view> wanted) const {
    absl::flat_hash_map<std::string_view, const NodeDef*> unseen;
    unseen.reserve(nodes.size());
    for (const NodeDef& node : nodes) unseen.emplace(node.name(), &node);
    std::vector<const FunctionDef*> calls;
    while (!wanted.empty()) {
      const auto found = unseen.find(NodeOf(wanted.back()));
      wanted.pop_back();
      if (found == unseen.end()) continue;
      const NodeDef& node = *found->second;
      unseen.erase(found);
      wanted.insert(wanted.end(), node.input().begin(), node.input().end());
      const FunctionDef* function = called_(node);
      if (function != nullptr) calls.push_back(function);
    }
    return calls;
  }

  const CalledFunction& called_;
  const int64_t limit_;
  absl::flat_hash_map<const FunctionDef*, int64_t> sizes_;
};

bool IsCallOp(const std::string& op) {
  return op == "PartitionedCall" || op == "StatefulPartitionedCall";
}

void AddInputs(const std::vector<std::string>& inputs, NodeDef* node) {
  node->mutable_input()->Add(inputs.begin(), inputs.end());
}

// Adapts attributes that refer to things outside the node.
void AdaptToCaller(const NodeDef& call, NodeDef* node) {
  if (node->device().empty()) node->set_device(call.device());
  // This refers to nodes by their old names.
  node->mutable_attr()->erase("_class");
  // The loops of two calls must not get mixed up.
  const auto loop = node->mutable_attr()->find("frame_name");
  if (loop != node->mutable_attr()->end()) {
    loop->second.set_s(absl::StrCat(call.name(), "/", loop->second.s()));
  }
}

// What replaces a call's outputs once its body is in the graph.
struct InlinedCall {
  // The tensors, by output number.
  std::vector<std::string> outputs;
  std::vector<tensorflow::DataType> types;
  // Nodes that have run by the time the call has.
  std::vector<std::string> effects;
};

// A function that an inlined node comes from.
struct Frame {
  std::string function;
  // The index of the enclosing frame, or -1.
  int parent;
};

class Inliner {
 public:
  Inliner(const InlineOptions& options, GraphDef* graph)
      : options_(options), graph_(*graph) {}

  absl::StatusOr<int> Run();

 private:
  const FunctionDef* FunctionOf(const NodeDef& node) const;
  absl::Status CheckSize() const;
  absl::Status Walk();
  absl::Status Visit(int node);
  absl::Status Inline(int node, const FunctionDef& function);
  absl::Status CheckRecursion(const NodeDef& call, int frame) const;
  void AddBody(int call, const FunctionDef& function,
               tensorflow::InstantiationResult body);
  void AddEffects(const NodeDef& call, const FunctionDef& function,
                  const absl::flat_hash_map<std::string, std::string>& names,
                  InlinedCall* inlined);
  std::vector<std::string> InputsReady(
      const NodeDef& call, const std::vector<std::string>& arguments,
      const tensorflow::DataTypeVector& types);
  void KeepName(int node, bool for_effects);
  void Resolve(std::string_view input, std::vector<std::string>* resolved,
               int depth) const;
  std::vector<std::string> ResolveInputs(const NodeDef& node) const;
  std::string NewName(const std::string& base);
  int Append(NodeDef node, int frame);

  const InlineOptions& options_;
  GraphDef& graph_;
  absl::flat_hash_map<std::string, const FunctionDef*> functions_;
  absl::flat_hash_map<std::string, int> ids_;
  absl::flat_hash_map<std::string, InlinedCall> inlined_;
  std::vector<int> frame_of_;
  std::vector<Frame> frames_;
  std::vector<int> to_visit_;
  std::vector<bool> seen_;
  bool has_switches_ = false;
};

const FunctionDef* Inliner::FunctionOf(const NodeDef& node) const {
  std::string name = node.op();
  if (IsCallOp(node.op())) {
    const auto f = node.attr().find("f");
    if (f == node.attr().end()) return nullptr;
    name = f->second.func().name();
  }
  const auto found = functions_.find(name);
  return found == functions_.end() ? nullptr : found->second;
}

// Returns an unused name and reserves it.
std::string Inliner::NewName(const std::string& base) {
  std::string name = base;
  for (int i = 1; !ids_.emplace(name, -1).second; ++i) {
    name = absl::StrCat(base, "_", i);
  }
  return name;
}

int Inliner::Append(NodeDef node, int frame) {
  const int id = graph_.node_size();
  ids_[node.name()] = id;
  *graph_.add_node() = std::move(node);
  frame_of_.push_back(frame);
  seen_.push_back(false);
  return id;
}

absl::Status Inliner::CheckRecursion(const NodeDef& call, int frame) const {
  const std::string& name = FunctionOf(call)->signature().name();
  std::vector<std::string> chain = {name};
  for (int i = frame; i >= 0; i = frames_[i].parent) {
    chain.push_back(frames_[i].function);
    if (frames_[i].function != name) continue;
    std::reverse(chain.begin(), chain.end());
    return absl::InvalidArgumentError(
        absl::StrCat("the function \"", name, "\" calls itself (",
                     absl::StrJoin(chain, " → "),
                     "); a graph without functions cannot do that"));
  }
  return absl::OkStatus();
}

// In a branch of a Switch a call runs only if all its inputs are alive, but
// body nodes without inputs would always run. Returns control inputs for them.
std::vector<std::string> Inliner::InputsReady(
    const NodeDef& call, const std::vector<std::string>& arguments,
    const tensorflow::DataTypeVector& types) {
  std::vector<std::string> ready;
  if (!has_switches_) return ready;
  for (size_t i = 0; i < arguments.size(); ++i) {
    NodeDef node;
    node.set_name(NewName(absl::StrCat(call.name(), "/input_", i)));
    node.set_op("Identity");
    node.add_input(arguments[i]);
    (*node.mutable_attr())["T"].set_type(types[i]);
    ready.push_back(absl::StrCat("^", node.name()));
    Append(std::move(node), -1);
  }
  return ready;
}

// Sets which nodes must have run when the call has. If there are several, adds
// one that follows them all, so that whatever waits needs only one edge.
void Inliner::AddEffects(
    const NodeDef& call, const FunctionDef& function,
    const absl::flat_hash_map<std::string, std::string>& names,
    InlinedCall* inlined) {
  NodeDef all;
  all.set_op("NoOp");
  for (const std::string& effect : function.signature().control_output()) {
    const auto node = function.control_ret().find(effect);
    if (node == function.control_ret().end()) continue;
    const auto name = names.find(node->second);
    if (name == names.end()) continue;
    inlined->effects.push_back(name->second);
    all.add_input(absl::StrCat("^", name->second));
  }
  if (inlined->effects.size() < 2) return;
  all.set_name(NewName(absl::StrCat(call.name(), "/done")));
  inlined->effects = {all.name()};
  Append(std::move(all), static_cast<int>(frames_.size()) - 1);
}

// `body` has inputs as in a GraphDef, and _Arg and _Retval nodes.
void Inliner::AddBody(int call_id, const FunctionDef& function,
                      tensorflow::InstantiationResult body) {
  const NodeDef call = graph_.node(call_id);
  std::vector<std::string> arguments, controls;
  for (const std::string& input : call.input()) {
    (input[0] == '^' ? controls : arguments).push_back(input);
  }
  const std::vector<std::string> ready =
      InputsReady(call, arguments, body.arg_types);
  absl::flat_hash_map<std::string, std::string> names;
  absl::flat_hash_map<std::string, int> argument_of;
  for (const NodeDef& node : body.nodes) {
    if (node.op() == "_Arg") {
      argument_of[node.name()] = node.attr().at("index").i();
    } else if (node.op() != "_Retval") {
      names[node.name()] = NewName(absl::StrCat(call.name(), "/", node.name()));
    }
  }
  const auto renamed = [&](const std::string& input) -> std::string {
    const TensorName name = ParseTensorName(input);
    const auto argument = argument_of.find(name.node);
    if (argument == argument_of.end()) {
      return FormatTensorName(names[name.node], name.port);
    }
    const std::string& value = arguments[argument->second];
    if (!name.control()) return value;
    return absl::StrCat("^", ParseTensorName(value).node);
  };
  frames_.push_back({function.signature().name(), frame_of_[call_id]});
  InlinedCall inlined;
  inlined.types.assign(body.ret_types.begin(), body.ret_types.end());
  inlined.outputs.resize(inlined.types.size());
  for (NodeDef& node : body.nodes) {
    if (node.op() == "_Arg") continue;
    if (node.op() == "_Retval") {
      inlined.outputs[node.attr().at("index").i()] = renamed(node.input(0));
      continue;
    }
    bool starts = true;
    for (std::string& input : *node.mutable_input()) {
      starts = starts && argument_of.contains(ParseTensorName(input).node);
      input = renamed(input);
    }
    if (node.input().empty()) AddInputs(ready, &node);
    if (starts) AddInputs(controls, &node);
    node.set_name(names[node.name()]);
    AdaptToCaller(call, &node);
    Append(std::move(node), static_cast<int>(frames_.size()) - 1);
  }
  AddEffects(call, function, names, &inlined);
  inlined_.emplace(call.name(), std::move(inlined));
}

// Is called before a node is made, because a few functions can expand to more
// nodes than fit in memory.
absl::Status Inliner::CheckSize() const {
  // If the graph is larger already, even the first call is too much.
  const int64_t most =
      std::max<int64_t>(options_.max_nodes, graph_.node_size());
  std::vector<std::string_view> wanted(options_.outputs.begin(),
                                       options_.outputs.end());
  wanted.insert(wanted.end(), options_.effects.begin(), options_.effects.end());
  const CalledFunction called = [this](const NodeDef& node) {
    return FunctionOf(node);
  };
  if (Counter(called, most + 1).SizeOf(graph_.node(), wanted) <= most) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("with its functions inlined the graph has more than ",
                   options_.max_nodes, " nodes, too many to build"));
}

absl::Status Inliner::Inline(int id, const FunctionDef& function) {
  const NodeDef& call = graph_.node(id);
  REQUANT_RETURN_IF_ERROR(CheckRecursion(call, frame_of_[id]));
  tensorflow::InstantiationResult body;
  const auto signature = [this](const std::string& op,
                                const tensorflow::OpDef** definition) {
    const auto found = functions_.find(op);
    if (found == functions_.end()) {
      return tensorflow::OpRegistry::Global()->LookUpOpDef(op, definition);
    }
    *definition = &found->second->signature();
    return absl::OkStatus();
  };
  const absl::Status status = tensorflow::InstantiateFunction(
      function,
      IsCallOp(call.op())
          ? tensorflow::AttrSlice(&call.attr().at("f").func().attr())
          : tensorflow::AttrSlice(call),
      signature, &body);
  if (!status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the function \"", function.signature().name(), "\" of the call \"",
        call.name(), "\" is not valid: ", status.message()));
  }
  size_t arguments = 0;
  for (const std::string& input : call.input()) arguments += input[0] != '^';
  if (arguments != body.arg_types.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the call \"", call.name(), "\" gives ", arguments,
                     " inputs to the function \"", function.signature().name(),
                     "\", which takes ", body.arg_types.size()));
  }
  AddBody(id, function, std::move(body));
  return absl::OkStatus();
}

// Appends what replaces `input` now that calls are inlined.
void Inliner::Resolve(std::string_view input,
                      std::vector<std::string>* resolved, int depth) const {
  const TensorName name = ParseTensorName(input);
  const auto found = inlined_.find(name.node);
  // A call's output can be that of a call in its body but never its own;
  // functions that return their argument can close a cycle.
  if (found == inlined_.end() || depth > 1000) {
    resolved->emplace_back(input);
    return;
  }
  const InlinedCall& call = found->second;
  if (!name.control()) {
    if (name.port < static_cast<int>(call.outputs.size())) {
      Resolve(call.outputs[name.port], resolved, depth + 1);
    } else {
      resolved->emplace_back(input);
    }
    return;
  }
  for (const std::string& effect : call.effects) {
    Resolve(absl::StrCat("^", effect), resolved, depth + 1);
  }
  if (!call.effects.empty()) return;
  for (const std::string& output : call.outputs) {
    Resolve(absl::StrCat("^", ParseTensorName(output).node), resolved,
            depth + 1);
  }
}

std::vector<std::string> Inliner::ResolveInputs(const NodeDef& node) const {
  std::vector<std::string> data, controls, resolved;
  for (const std::string& input : node.input()) {
    resolved.clear();
    Resolve(input, &resolved, 0);
    auto& inputs = !input.empty() && input[0] == '^' ? controls : data;
    inputs.insert(inputs.end(), resolved.begin(), resolved.end());
  }
  absl::flat_hash_set<std::string> seen;
  for (std::string& control : controls) {
    if (seen.insert(control).second) data.push_back(std::move(control));
  }
  return data;
}

absl::Status Inliner::Visit(int id) {
  // Calls that this node reads are inlined first; then it reads their bodies,
  // which may contain further calls.
  while (true) {
    bool complete = true;
    for (const std::string& input : ResolveInputs(graph_.node(id))) {
      const auto producer = ids_.find(ParseTensorName(input).node);
      if (producer == ids_.end() || seen_[producer->second]) continue;
      seen_[producer->second] = true;
      const NodeDef& node = graph_.node(producer->second);
      if (const FunctionDef* function = FunctionOf(node)) {
        REQUANT_RETURN_IF_ERROR(Inline(producer->second, *function));
        complete = false;
        break;
      }
      to_visit_.push_back(producer->second);
    }
    if (complete) return absl::OkStatus();
  }
}

// Gives a wanted call's name to a node that replaces it.
void Inliner::KeepName(int id, bool for_effects) {
  NodeDef* node = graph_.mutable_node(id);
  const InlinedCall& call = inlined_.at(node->name());
  NodeDef kept;
  kept.set_name(node->name());
  kept.set_device(node->device());
  if (call.types.empty()) {
    kept.set_op("NoOp");
  } else if (call.types.size() == 1) {
    kept.set_op("Identity");
    (*kept.mutable_attr())["T"].set_type(call.types[0]);
  } else {
    kept.set_op("IdentityN");
    auto* list = (*kept.mutable_attr())["T"].mutable_list();
    for (const auto type : call.types) list->add_type(type);
  }
  for (const std::string& output : call.outputs) kept.add_input(output);
  if (for_effects || call.outputs.empty()) {
    for (const std::string& effect : call.effects) {
      kept.add_input(absl::StrCat("^", effect));
    }
  }
  *node = std::move(kept);
  to_visit_.push_back(id);
}

absl::Status Inliner::Walk() {
  while (!to_visit_.empty()) {
    const int id = to_visit_.back();
    to_visit_.pop_back();
    REQUANT_RETURN_IF_ERROR(Visit(id));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Inliner::Run() {
  for (const FunctionDef& function : graph_.library().function()) {
    functions_.emplace(function.signature().name(), &function);
  }
  REQUANT_RETURN_IF_ERROR(CheckSize());
  for (int i = 0; i < graph_.node_size(); ++i) {
    ids_.emplace(graph_.node(i).name(), i);
    has_switches_ = has_switches_ || graph_.node(i).op() == "Switch";
  }
  frame_of_.assign(graph_.node_size(), -1);
  seen_.assign(graph_.node_size(), false);
  for (const bool for_effects : {false, true}) {
    for (const std::string& name :
         for_effects ? options_.effects : options_.outputs) {
      const auto found = ids_.find(name);
      if (found == ids_.end()) continue;
      const int id = found->second;
      const FunctionDef* function = FunctionOf(graph_.node(id));
      if (!seen_[id] && function != nullptr) {
        REQUANT_RETURN_IF_ERROR(Inline(id, *function));
      } else if (!seen_[id]) {
        to_visit_.push_back(id);
      }
      seen_[id] = true;
      if (function != nullptr) KeepName(id, for_effects);
      REQUANT_RETURN_IF_ERROR(Walk());
    }
  }
  const int calls = inlined_.size();
  for (NodeDef& node : *graph_.mutable_node()) {
    const std::vector<std::string> inputs = ResolveInputs(node);
    node.mutable_input()->Clear();
    node.mutable_input()->Add(inputs.begin(), inputs.end());
  }
  return calls;
}

}  // namespace

absl::StatusOr<int> InlineFunctions(const InlineOptions& options,
                                    GraphDef* graph) {
  REQUANT_RETURN_IF_ERROR(LoadTensorFlow());
  return Inliner(options, graph).Run();
}

}  // namespace requant
