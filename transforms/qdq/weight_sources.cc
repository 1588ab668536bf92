#include "transforms/qdq/weight_sources.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace requant {
namespace {

using tensorflow::AttrValue;
using tensorflow::FunctionDef;
using tensorflow::FunctionDefLibrary;
using tensorflow::NodeDef;

bool IsWeightOp(const std::string& op) {
  static const auto* ops = new absl::flat_hash_set<std::string>{
      "Const",          "HostConst", "ImmutableConst",
      "ReadVariableOp", "Variable",  "VariableV2"};
  return ops->contains(op);
}

// Ops whose output 0 is input 0, moved, shaped or cast.
bool PassesWeight(const std::string& op) {
  static const auto* ops =
      new absl::flat_hash_set<std::string>{"Cast",
                                           "Enter",
                                           "ExpandDims",
                                           "Identity",
                                           "PlaceholderWithDefault",
                                           "RefEnter",
                                           "RefIdentity",
                                           "Reshape",
                                           "Snapshot",
                                           "Squeeze",
                                           "StopGradient",
                                           "Transpose",
                                           "EnsureShape"};
  return ops->contains(op);
}

bool IsWhile(const std::string& op) {
  return op == "While" || op == "StatelessWhile";
}

// The first input that both kinds of branch are handed.
int FirstHanded(const std::string& op) {
  const bool has_condition = op == "If" || op == "StatelessIf" ||
                             op == "Case" || op == "StatelessCase";
  return has_condition ? 1 : 0;
}

bool HandsInputsOn(const std::string& op) {
  return op == "PartitionedCall" || op == "StatefulPartitionedCall" ||
         IsWhile(op) || FirstHanded(op) > 0;
}

int DataInputs(const NodeDef& node) {
  int count = 0;
  for (const std::string& input : node.input()) {
    if (!input.empty() && input[0] == '^') break;
    ++count;
  }
  return count;
}

}  // namespace

WeightSources::WeightSources(const std::vector<GraphBody>& bodies,
                             const FunctionDefLibrary& library)
    : bodies_(bodies),
      origins_(bodies.size()),
      first_argument_(bodies.size() + 1),
      is_opaque_(bodies.size()),
      reached_(bodies.size()) {
  for (size_t i = 0; i < bodies.size(); ++i) {
    origins_[i].resize(bodies[i].nodes().size());
    first_argument_[i + 1] = first_argument_[i] + ArgumentCount(i);
    if (i > 0) functions_.emplace(bodies[i].name(), i);
  }
  is_called_.resize(first_argument_.back());
  is_other_.resize(first_argument_.back());
  handed_to_.resize(first_argument_.back());
  Callees callees(bodies.size());
  FollowCalls(&callees);
  SpreadOthers();
  FindReached(callees, library);
}

int WeightSources::ArgumentCount(int body) const {
  const FunctionDef* function = bodies_[body].function();
  return function == nullptr ? 0 : function->signature().input_arg_size();
}

int WeightSources::BodyNamed(std::string_view function) const {
  const auto found = functions_.find(function);
  return found == functions_.end() ? -1 : found->second;
}

bool WeightSources::IsWeight(int body, std::string_view input) {
  const Origin origin = OriginOf(body, bodies_[body].Find(input));
  return origin.kind == Origin::kWeight ||
         (origin.kind == Origin::kArgument &&
          !is_other_[first_argument_[body] + origin.argument]);
}

// Remembers the answer for all nodes on the way, so that each is passed once.
WeightSources::Origin WeightSources::OriginOf(int body,
                                              const BodyTensor& start) {
  std::vector<Origin>& origins = origins_[body];
  std::vector<int32_t> path;
  Origin origin{Origin::kOther, -1};
  for (BodyTensor tensor = start;;) {
    if (tensor.kind == BodyTensor::kArgument) {
      origin = {Origin::kArgument, tensor.index};
      break;
    }
    if (tensor.kind == BodyTensor::kUnknown || tensor.output != 0) break;
    const Origin& known = origins[tensor.index];
    if (known.kind == Origin::kUnderWay) break;  // a cycle
    if (known.kind != Origin::kNotSought) {
      origin = known;
      break;
    }
    path.push_back(tensor.index);
    origins[tensor.index].kind = Origin::kUnderWay;
    const NodeDef& node = bodies_[body].nodes()[tensor.index];
    if (IsWeightOp(node.op())) {
      origin.kind = Origin::kWeight;
      break;
    }
    if (!PassesWeight(node.op()) || node.input_size() == 0) break;
    tensor = bodies_[body].Find(node.input(0));
  }
  for (const int32_t node : path) origins[node] = origin;
  return origin;
}

std::vector<WeightSources::Callee> WeightSources::CalleesOf(
    const NodeDef& node) const {
  std::vector<Callee> callees;
  if (const int body = BodyNamed(node.op()); body >= 0) {
    callees.push_back({body, 0});
  }
  const int offset = HandsInputsOn(node.op()) ? FirstHanded(node.op()) : -1;
  const auto add = [&](const tensorflow::NameAttrList& function) {
    const int body = BodyNamed(function.name());
    if (body >= 0) callees.push_back({body, offset});
  };
  for (const auto& [name, value] : node.attr()) {
    if (value.has_func()) add(value.func());
    if (!value.has_list()) continue;
    for (const auto& function : value.list().func()) add(function);
  }
  return callees;
}

void WeightSources::FollowCalls(Callees* callees) {
  for (size_t body = 0; body < bodies_.size(); ++body) {
    for (const NodeDef& node : bodies_[body].nodes()) {
      for (const Callee& callee : CalleesOf(node)) {
        (*callees)[body].push_back(callee.body);
        FollowCall(body, node, callee);
      }
      if (IsWhile(node.op())) FollowLoop(node);
    }
  }
}

void WeightSources::FollowCall(int body, const NodeDef& node,
                               const Callee& callee) {
  const int32_t first = first_argument_[callee.body];
  const int count = ArgumentCount(callee.body);
  // One input of a function's node can name several tensors; then it is not
  // known which argument is which.
  const bool known =
      callee.offset >= 0 && DataInputs(node) == callee.offset + count;
  if (known) {
    for (int i = 0; i < count; ++i) {
      is_called_[first + i] = true;
      AddSource(first + i, body, node.input(callee.offset + i));
    }
  } else if (!is_opaque_[callee.body]) {
    is_opaque_[callee.body] = true;
    for (int i = 0; i < count; ++i) is_other_[first + i] = true;
  }
}

// What the body of a loop returns is handed to it and to the condition again.
void WeightSources::FollowLoop(const NodeDef& node) {
  const auto called = [&](const char* attribute) {
    const auto found = node.attr().find(attribute);
    return found == node.attr().end() ? -1
                                      : BodyNamed(found->second.func().name());
  };
  const int body = called("body");
  if (body < 0 || DataInputs(node) != ArgumentCount(body)) return;
  const FunctionDef& function = *bodies_[body].function();
  const auto& outputs = function.signature().output_arg();
  for (const int next : {body, called("cond")}) {
    if (next < 0) continue;
    for (int i = 0; i < ArgumentCount(next) && i < outputs.size(); ++i) {
      const auto result = function.ret().find(outputs[i].name());
      AddSource(first_argument_[next] + i, body,
                result == function.ret().end() ? "" : result->second);
    }
  }
}

void WeightSources::AddSource(int32_t argument, int body,
                              std::string_view input) {
  const Origin origin = OriginOf(body, bodies_[body].Find(input));
  if (origin.kind == Origin::kArgument) {
    handed_to_[first_argument_[body] + origin.argument].push_back(argument);
  } else if (origin.kind != Origin::kWeight) {
    is_other_[argument] = true;
  }
}

void WeightSources::SpreadOthers() {
  std::vector<int32_t> open;
  for (size_t i = 0; i < is_other_.size(); ++i) {
    if (!is_called_[i]) is_other_[i] = true;
    if (is_other_[i]) open.push_back(i);
  }
  while (!open.empty()) {
    const int32_t argument = open.back();
    open.pop_back();
    for (const int32_t next : handed_to_[argument]) {
      if (is_other_[next]) continue;
      is_other_[next] = true;
      open.push_back(next);
    }
  }
}

void WeightSources::FindReached(const Callees& callees,
                                const FunctionDefLibrary& library) {
  absl::flat_hash_map<int, std::vector<int>> gradients;
  for (const auto& gradient : library.gradient()) {
    const int from = BodyNamed(gradient.function_name());
    const int to = BodyNamed(gradient.gradient_func());
    if (from >= 0 && to >= 0) gradients[from].push_back(to);
  }
  std::vector<int> open = {0};
  reached_[0] = true;
  const auto reach = [&](const std::vector<int>& bodies) {
    for (const int body : bodies) {
      if (reached_[body]) continue;
      reached_[body] = true;
      open.push_back(body);
    }
  };
  while (!open.empty()) {
    const int body = open.back();
    open.pop_back();
    reach(callees[body]);
    if (const auto found = gradients.find(body); found != gradients.end()) {
      reach(found->second);
    }
  }
}

}  // namespace requant
