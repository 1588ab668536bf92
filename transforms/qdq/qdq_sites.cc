#include "transforms/qdq/qdq_sites.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/text/nearest_name.h"
#include "graph/graph_index.h"
#include "graph/op_catalog.h"
#include "graph/tensorflow_library.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/types.pb.h"
#include "transforms/layers/tensor_pattern.h"

namespace requant {
namespace {

using tensorflow::AttrValue;
using tensorflow::FunctionDef;
using tensorflow::FunctionDefLibrary;
using tensorflow::GraphDef;
using tensorflow::NodeDef;

bool IsWeightOp(const std::string& op) {
  static const auto* ops = new absl::flat_hash_set<std::string>{
      "Const",          "HostConst", "ImmutableConst",
      "ReadVariableOp", "Variable",  "VariableV2"};
  return ops->contains(op);
}

// Returns whether the op's output 0 is input 0, only moved, reshaped or cast.
bool PassesWeight(const std::string& op) {
  static const auto* ops = new absl::flat_hash_set<std::string>(
      {"Cast", "EnsureShape", "Enter", "ExpandDims", "Identity",
       "PlaceholderWithDefault", "RefEnter", "RefIdentity", "Reshape",
       "Snapshot", "Squeeze", "StopGradient", "Transpose"});
  return ops->contains(op);
}

bool IsWhile(const std::string& op) {
  return op == "While" || op == "StatelessWhile";
}

// Returns the first input that is passed to the branches; 0 for other ops.
int FirstHanded(const std::string& op) {
  const bool has_condition = op == "If" || op == "StatelessIf" ||
                             op == "Case" || op == "StatelessCase";
  return has_condition ? 1 : 0;
}

bool HandsInputsOn(const std::string& op) {
  return op == "PartitionedCall" || op == "StatefulPartitionedCall" ||
         IsWhile(op) || FirstHanded(op) > 0;
}

// Determines which tensors of a graph and its functions are weights: constants
// and values of variables, however they reach the place where they are used.
class WeightSources {
 public:
  // `bodies` are the graph, then the functions of `library` in their order.
  // Both must outlive this object. Takes time proportional to nodes and inputs.
  WeightSources(const std::vector<GraphBody>& bodies,
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

  // Returns whether what `input` names in a body is a weight: a Const or a
  // variable's value, through nodes that only move, reshape or cast it
  // (Identity, Reshape, Cast, Enter …), or an argument that is a weight in all
  // calls. An argument of a loop's body must also be passed on unchanged.
  bool IsWeight(int body, std::string_view input) {
    const Origin origin = OriginOf(body, bodies_[body].Find(input));
    return origin.kind == Origin::kWeight ||
           (origin.kind == Origin::kArgument &&
            !is_other_[first_argument_[body] + origin.argument]);
  }

  // Returns whether the graph's nodes call the function, directly or not.
  // Others may still be called by name, as in a SavedModel.
  bool IsReached(int body) const { return reached_[body]; }

 private:
  struct Origin {
    enum Kind : int8_t { kNotSought, kUnderWay, kWeight, kOther, kArgument };
    Kind kind = kNotSought;
    int32_t argument = -1;
  };
  // A function to which a node passes its inputs from `offset` on, or -1 if it
  // is unknown what is passed.
  struct Callee {
    int body;
    int offset;
  };
  using Callees = std::vector<std::vector<int>>;

  // Remembers the answer for all nodes on the way, to visit each only once.
  Origin OriginOf(int body, const BodyTensor& start) {
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

  std::vector<Callee> CalleesOf(const NodeDef& node) const {
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

  int BodyNamed(std::string_view function) const {
    const auto found = functions_.find(function);
    return found == functions_.end() ? -1 : found->second;
  }

  void FollowCalls(Callees* callees) {
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

  void FollowCall(int body, const NodeDef& node, const Callee& callee) {
    const int32_t first = first_argument_[callee.body];
    const int count = ArgumentCount(callee.body);
    // One input of a function's node can name several tensors, so that it is
    // not known which argument is which.
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

  // What a loop's body returns is passed to the body and the condition again.
  void FollowLoop(const NodeDef& node) {
    const auto called = [&](const char* attribute) {
      const auto found = node.attr().find(attribute);
      if (found == node.attr().end()) return -1;
      return BodyNamed(found->second.func().name());
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

  // Adds a value that an argument, numbered over all functions, may have.
  void AddSource(int32_t argument, int body, std::string_view input) {
    const Origin origin = OriginOf(body, bodies_[body].Find(input));
    if (origin.kind == Origin::kArgument) {
      handed_to_[first_argument_[body] + origin.argument].push_back(argument);
    } else if (origin.kind != Origin::kWeight) {
      is_other_[argument] = true;
    }
  }

  void SpreadOthers() {
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

  void FindReached(const Callees& callees, const FunctionDefLibrary& library) {
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

  int ArgumentCount(int body) const {
    const FunctionDef* function = bodies_[body].function();
    return function == nullptr ? 0 : function->signature().input_arg_size();
  }

  const std::vector<GraphBody>& bodies_;
  absl::flat_hash_map<std::string_view, int> functions_;
  std::vector<std::vector<Origin>> origins_;  // by body and node
  std::vector<int32_t> first_argument_;       // by body
  std::vector<bool> is_opaque_;  // by body: all arguments are marked as others
  // By argument, over all functions.
  std::vector<bool> is_called_;
  std::vector<bool> is_other_;
  std::vector<std::vector<int32_t>> handed_to_;
  std::vector<bool> reached_;
};

// An op that multiplies two or more of its inputs.
struct MultiplyingOp {
  std::string_view name;
  // The first of them and their number; -1 means all from the first on.
  int first;
  int count;
};

constexpr MultiplyingOp kMultiplyingOps[] = {
    {"MatMul", 0, 2},
    {"BatchMatMul", 0, 2},
    {"BatchMatMulV2", 0, 2},
    {"BatchMatMulV3", 0, 2},
    {"Einsum", 0, -1},
    {"XlaEinsum", 0, 2},
    {"Conv", 0, 2},
    {"Conv2D", 0, 2},
    {"Conv3D", 0, 2},
    {"DepthwiseConv2dNative", 0, 2},
    // The first input of a transposed convolution is a shape.
    {"Conv2DBackpropInput", 1, 2},
    {"Conv3DBackpropInputV2", 1, 2},
    {"_FusedMatMul", 0, 2},
    {"_FusedConv2D", 0, 2},
};

using ChosenOps = absl::flat_hash_map<std::string, MultiplyingOp>;

absl::StatusOr<ChosenOps> ChooseOps(const std::vector<std::string>& names) {
  ChosenOps chosen;
  for (const std::string& name : names.empty() ? DefaultQdqOps() : names) {
    const auto known = absl::c_find_if(
        kMultiplyingOps,
        [&](const MultiplyingOp& op) { return op.name == name; });
    if (known == std::end(kMultiplyingOps)) {
      std::vector<std::string> all;
      for (const MultiplyingOp& op : kMultiplyingOps) all.emplace_back(op.name);
      return absl::InvalidArgumentError(
          absl::StrCat("inputs of the op \"", name, "\" cannot be quantized",
                       DidYouMean(name, all), "; those of ",
                       absl::StrJoin(all, ", "), " can"));
    }
    chosen.emplace(name, *known);
  }
  return chosen;
}

// Returns whether new names can be derived from `name`.
bool IsPlainName(std::string_view name) {
  return !name.empty() && name.find_first_of(":^") == std::string_view::npos;
}

// Returns the types of all tensors that a node takes, or nullopt if they are
// unknown or outnumber its inputs, each of which must be a single tensor.
std::optional<std::vector<tensorflow::DataType>> InputTypes(const NodeDef& node,
                                                            const OpEntry& op) {
  const int inputs = absl::c_count_if(node.input(), [](const auto& input) {
    return !ParseTensorName(input).control();
  });
  std::vector<tensorflow::DataType> types;
  for (const auto& argument : op.definition->input_arg()) {
    const auto those = TypesOfArgument(argument, node, *op.definition);
    if (!those.has_value() ||
        those->count > inputs - static_cast<int64_t>(types.size())) {
      return std::nullopt;
    }
    for (int64_t i = 0; i < those->count; ++i) types.push_back(those->At(i));
  }
  if (static_cast<int>(types.size()) != inputs) return std::nullopt;
  return types;
}

class SiteFinder {
 public:
  SiteFinder(const GraphDef& graph, ChosenOps ops, QdqInputs inputs)
      : ops_(std::move(ops)),
        inputs_(inputs),
        catalog_(graph.library()),
        bodies_(MakeBodies(graph, &catalog_)),
        weights_(bodies_, graph.library()) {}

  QdqSites Find() {
    for (body_ = 0; body_ < static_cast<int>(bodies_.size()); ++body_) {
      const GraphBody::Nodes& nodes = bodies_[body_].nodes();
      for (int32_t i = 0; i < nodes.size(); ++i) {
        const auto op = ops_.find(nodes[i].op());
        if (op != ops_.end()) FindInNode(op->second, i);
      }
    }
    return std::move(found_);
  }

 private:
  static std::vector<GraphBody> MakeBodies(const GraphDef& graph,
                                           OpCatalog* catalog) {
    std::vector<GraphBody> bodies;
    bodies.reserve(1 + graph.library().function_size());
    bodies.emplace_back(graph, catalog);
    for (const auto& function : graph.library().function()) {
      bodies.emplace_back(function, catalog);
    }
    return bodies;
  }

  void FindInNode(const MultiplyingOp& multiplied, int32_t number) {
    const NodeDef& node = bodies_[body_].nodes()[number];
    const OpEntry* op = catalog_.Find(node.op());
    if (op == nullptr || op->registration == nullptr) {
      return Skip(node, "its op is not TensorFlow's");
    }
    if (!IsPlainName(node.name())) return Skip(node, "its name is damaged");
    const auto types = InputTypes(node, *op);
    if (!types.has_value()) {
      return Skip(node, "its inputs and attributes do not say what it takes");
    }
    const int size = types->size();
    // An Einsum of one tensor multiplies nothing.
    if (multiplied.count < 0 && size < 2) return;
    const int end = multiplied.count < 0
                        ? size
                        : std::min(size, multiplied.first + multiplied.count);
    for (int i = multiplied.first; i < end; ++i) {
      if ((*types)[i] == tensorflow::DT_FLOAT) FindAtInput(number, i);
    }
  }

  void FindAtInput(int32_t number, int input) {
    const GraphBody& body = bodies_[body_];
    const NodeDef& node = body.nodes()[number];
    const std::string& tensor = node.input(input);
    const BodyTensor source = body.Find(tensor);
    if (source.kind == BodyTensor::kUnknown ||
        !IsPlainName(body.NameOf(source))) {
      return Skip(node, absl::StrCat("its input \"", tensor,
                                     "\" is no known output of a node"));
    }
    const bool is_weight = weights_.IsWeight(body_, tensor);
    if (inputs_ != QdqInputs::kBoth &&
        is_weight != (inputs_ == QdqInputs::kWeights)) {
      return;
    }
    QdqSite site;
    if (source.kind == BodyTensor::kNode) {
      site.producer_op = body.nodes()[source.index].op();
    }
    if (site.producer_op == "Dequantize") {
      ++found_.already_quantized;
      return;
    }
    site.function = std::string(body.name());
    site.function_number = body_ - 1;
    site.reached = weights_.IsReached(body_);
    site.node = node.name();
    site.node_number = number;
    site.input = input;
    site.tensor = tensor;
    site.producer = body.NameOf(source);
    site.is_weight = is_weight;
    site.range = {absl::StrCat(site.function, site.function.empty() ? "" : "::",
                               site.producer),
                  source.output};
    found_.sites.push_back(std::move(site));
  }

  void Skip(const NodeDef& node, std::string_view why) {
    found_.skipped.push_back(absl::StrCat("node \"", node.name(), "\"",
                                          OfFunction(bodies_[body_].name()),
                                          ", ", why));
  }

  const ChosenOps ops_;
  const QdqInputs inputs_;
  OpCatalog catalog_;
  const std::vector<GraphBody> bodies_;
  WeightSources weights_;
  int body_ = 0;
  QdqSites found_;
};

}  // namespace

absl::StatusOr<QdqInputs> ParseQdqInputs(std::string_view name) {
  if (name == "activations") return QdqInputs::kActivations;
  if (name == "weights") return QdqInputs::kWeights;
  if (name == "both") return QdqInputs::kBoth;
  return absl::InvalidArgumentError(absl::StrCat(
      "the inputs are activations, weights or both, not \"", name, "\""));
}

const std::vector<std::string>& DefaultQdqOps() {
  static const auto* ops = new std::vector<std::string>{
      "MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"};
  return *ops;
}

std::string OfFunction(std::string_view function) {
  return function.empty() ? ""
                          : absl::StrCat(" of function \"", function, "\"");
}

absl::StatusOr<QdqSites> FindQdqSites(const GraphDef& graph,
                                      const QdqSiteOptions& options) {
  REQUANT_RETURN_IF_ERROR(LoadTensorFlow());
  REQUANT_ASSIGN_OR_RETURN(ChosenOps ops, ChooseOps(options.ops));
  return SiteFinder(graph, std::move(ops), options.inputs).Find();
}

google::protobuf::RepeatedPtrField<NodeDef>* MutableNodes(int function,
                                                          GraphDef* graph) {
  return function < 0 ? graph->mutable_node()
                      : graph->mutable_library()
                            ->mutable_function(function)
                            ->mutable_node_def();
}

FreeNames::FreeNames(const GraphDef& graph, int function) {
  if (function < 0) {
    for (const NodeDef& node : graph.node()) taken_.insert(node.name());
    return;
  }
  const FunctionDef& body = graph.library().function(function);
  for (const auto& argument : body.signature().input_arg()) {
    taken_.insert(argument.name());
  }
  for (const NodeDef& node : body.node_def()) taken_.insert(node.name());
}

std::string FreeNames::Take(const std::string& base) {
  std::string name = base;
  for (int* suffix = nullptr; !taken_.insert(name).second;) {
    if (suffix == nullptr) suffix = &suffixes_[base];
    name = absl::StrCat(base, "_", ++*suffix);
  }
  return name;
}

}  // namespace requant
