#include "graph/summary/summarize.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/graph_index.h"
#include "graph/graph_wiring.h"
#include "graph/signature_names.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"

namespace requant {
namespace {

using tensorflow::AttrValue;
using tensorflow::GraphDef;
using tensorflow::MetaGraphDef;
using tensorflow::NodeDef;
using tensorflow::TensorProto;
using tensorflow::TensorShapeProto;

constexpr size_t kLikelyOutputs = 5;
constexpr int64_t kMaxProblems = 20;
constexpr char kDefaultSignature[] = "serving_default";

const AttrValue* FindAttr(const NodeDef& node, const std::string& name) {
  return tensorflow::AttrSlice(node).Find(name);
}

// Returns the number of elements, or nullopt if the shape is not fully known or
// the product overflows.
std::optional<int64_t> ElementCount(const TensorShapeProto& shape) {
  tensorflow::TensorShape known;
  if (shape.unknown_rank() ||
      !tensorflow::TensorShape::BuildTensorShape(shape, &known).ok()) {
    return std::nullopt;
  }
  return known.num_elements();
}

int64_t AddUpToLimit(int64_t a, int64_t b) {
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum)
             ? std::numeric_limits<int64_t>::max()
             : sum;
}

// Counts the elements of a Const that TensorFlow could read, unpacking nothing.
std::optional<int64_t> ConstElements(const NodeDef& node) {
  const AttrValue* value = FindAttr(node, "value");
  if (value == nullptr || !value->has_tensor()) return std::nullopt;
  const TensorProto& tensor = value->tensor();
  const std::optional<int64_t> count = ElementCount(tensor.tensor_shape());
  if (!count || tensor.dtype() == tensorflow::DT_INVALID) return std::nullopt;
  const int64_t content = static_cast<int64_t>(tensor.tensor_content().size());
  const int64_t element_bytes = tensorflow::DataTypeSize(tensor.dtype());
  if (content > 0 && element_bytes > 0 &&
      (content % element_bytes != 0 || content / element_bytes != *count)) {
    return std::nullopt;
  }
  return count;
}

TensorSummary SummarizeNode(const NodeDef& node) {
  TensorSummary tensor;
  tensor.name = node.name();
  tensor.op = node.op();
  if (const AttrValue* type = FindAttr(node, "dtype")) {
    tensor.type = type->type();
  }
  if (const AttrValue* shape = FindAttr(node, "shape")) {
    tensor.has_shape = true;
    tensor.shape = shape->shape();
  }
  return tensor;
}

// A tensor that can be fed, and its location.
struct Feed {
  int node;
  int port;
  TensorSummary tensor;
};

// Returns the outputs of an iterator or a queue as listed in its attributes.
std::vector<Feed> FeedsOfPipeline(const NodeDef& node, int id) {
  std::vector<Feed> feeds;
  const bool queue = absl::StartsWith(node.op(), "Queue");
  const AttrValue* types =
      FindAttr(node, queue ? "component_types" : "output_types");
  const AttrValue* shapes = FindAttr(node, "output_shapes");
  const int count = types == nullptr ? 1 : types->list().type_size();
  for (int port = 0; port < count; ++port) {
    Feed feed{id, port, {}};
    feed.tensor.name = FormatTensorName(node.name(), port);
    feed.tensor.op = node.op();
    if (types != nullptr) feed.tensor.type = types->list().type(port);
    if (shapes != nullptr && port < shapes->list().shape_size()) {
      feed.tensor.has_shape = true;
      feed.tensor.shape = shapes->list().shape(port);
    }
    feeds.push_back(std::move(feed));
  }
  return feeds;
}

void AddSignatureTensor(const std::string& key, const std::string& name,
                        const tensorflow::TensorInfo& info,
                        std::vector<TensorSummary>* tensors) {
  TensorSummary tensor;
  tensor.key = key;
  tensor.name = name;
  tensor.type = info.dtype();
  tensor.has_shape = info.has_tensor_shape();
  tensor.shape = info.tensor_shape();
  tensors->push_back(std::move(tensor));
}

template <typename TensorInfoMap>
std::vector<TensorSummary> SummarizeTensors(const TensorInfoMap& infos) {
  std::map<std::string, const tensorflow::TensorInfo*> by_key;
  for (const auto& [key, info] : infos) by_key[key] = &info;
  std::vector<TensorSummary> tensors;
  for (const auto& [key, info] : by_key) {
    if (info->has_coo_sparse()) {
      const auto& sparse = info->coo_sparse();
      AddSignatureTensor(key + "/values", sparse.values_tensor_name(), *info,
                         &tensors);
      tensorflow::TensorInfo integers;
      integers.set_dtype(tensorflow::DT_INT64);
      AddSignatureTensor(key + "/indices", sparse.indices_tensor_name(),
                         integers, &tensors);
      AddSignatureTensor(key + "/dense_shape", sparse.dense_shape_tensor_name(),
                         integers, &tensors);
    } else if (info->has_composite_tensor()) {
      int number = 0;
      for (const auto& part : info->composite_tensor().components()) {
        AddSignatureTensor(absl::StrCat(key, "/", number++), part.name(), part,
                           &tensors);
      }
    } else {
      AddSignatureTensor(key, info->name(), *info, &tensors);
    }
  }
  return tensors;
}

// Returns whether the signature only runs an op, like __saved_model_init_op.
bool IsInternalSignature(std::string_view name) {
  return absl::StartsWith(name, "__");
}

// Returns a text that is the same for tensors of the same keys, types and
// shapes.
std::string Interface(const std::vector<TensorSummary>& tensors) {
  std::string text;
  for (const TensorSummary& tensor : tensors) {
    absl::StrAppend(&text, tensor.key.size(), " ", tensor.key, " ", tensor.type,
                    " ", tensor.has_shape, tensor.shape.ShortDebugString(),
                    "\n");
  }
  return text;
}

SignatureSummary SummarizeSignature(const std::string& name,
                                    const tensorflow::SignatureDef& signature) {
  return {name,
          signature.method_name(),
          SummarizeTensors(signature.inputs()),
          SummarizeTensors(signature.outputs()),
          "",
          LikelyPrediction(signature)};
}

class Summarizer {
 public:
  explicit Summarizer(const GraphDef& graph)
      : graph_(graph), wiring_(graph), parts_(FindNodeParts(graph, wiring_)) {}

  GraphSummary Run(const MetaGraphDef* meta) {
    summary_.nodes = graph_.node_size();
    summary_.functions = graph_.library().function_size();
    if (meta != nullptr) CollectSignatures(*meta);
    summary_.kept_signature = SummarizeSignature("", KeptSignature(graph_));
    CollectOutputs();
    needed_ = NeededByChosenOutputs();
    CollectInputs();
    CountParameters();
    CountOps();
    CollectDefects();
    return std::move(summary_);
  }

 private:
  int NodeOf(const std::string& tensor_name) const {
    return wiring_.Find(ParseTensorName(tensor_name).node);
  }

  void CollectSignatures(const MetaGraphDef& meta);
  void CollectOutputs();
  void ChooseOutputs(const std::vector<RankedOutput>& ranked);
  void ChooseSignatureOutputs(const std::vector<RankedOutput>& ranked);
  void CollectInputs();
  std::vector<Feed> FindFeeds();
  std::vector<Feed> FindRecords() const;
  std::vector<bool> NeededByChosenOutputs() const;
  void CountParameters();
  void CountOps();
  void CollectDefects();
  void AddProblem(std::string problem);

  const GraphDef& graph_;
  const GraphWiring wiring_;
  const NodeParts parts_;
  std::vector<bool> needed_;  // by the chosen outputs
  int64_t problem_count_ = 0;
  GraphSummary summary_;
};

void Summarizer::CollectSignatures(const MetaGraphDef& meta) {
  std::map<std::string, const tensorflow::SignatureDef*> by_name;
  for (const auto& [name, signature] : meta.signature_def()) {
    by_name[name] = &signature;
  }
  for (const auto& [name, signature] : by_name) {
    SignatureSummary summary = SummarizeSignature(name, *signature);
    for (auto* tensors : {&summary.inputs, &summary.outputs}) {
      for (TensorSummary& tensor : *tensors) {
        const int node = NodeOf(tensor.name);
        if (node != kNoNode) {
          tensor.op = graph_.node(node).op();
        } else {
          AddProblem(absl::StrCat("signature \"", name, "\" names \"",
                                  tensor.name,
                                  "\", which the graph does not have"));
        }
      }
    }
    summary_.signatures.push_back(std::move(summary));
  }
  const auto order = [](const SignatureSummary& signature) {
    if (signature.name == kDefaultSignature) return 0;
    return signature.outputs.empty() || IsInternalSignature(signature.name) ? 2
                                                                            : 1;
  };
  std::stable_sort(summary_.signatures.begin(), summary_.signatures.end(),
                   [&](const SignatureSummary& a, const SignatureSummary& b) {
                     return order(a) < order(b);
                   });
  std::map<std::pair<std::string, std::string>, std::string> earlier;
  for (SignatureSummary& signature : summary_.signatures) {
    if (signature.inputs.empty()) continue;
    const auto [found, is_new] = earlier.emplace(
        std::pair(Interface(signature.inputs), Interface(signature.outputs)),
        signature.name);
    if (!is_new) signature.same_as = found->second;
  }
}

void Summarizer::CollectOutputs() {
  absl::flat_hash_map<int, int> signature_nodes;
  for (size_t i = 0; i < summary_.signatures.size(); ++i) {
    const SignatureSummary& signature = summary_.signatures[i];
    if (IsInternalSignature(signature.name)) continue;
    for (const TensorSummary& output : signature.outputs) {
      const int node = NodeOf(output.name);
      if (node != kNoNode) signature_nodes.emplace(node, i);
    }
  }
  const std::vector<RankedOutput> ranked =
      RankOutputs(graph_, wiring_, parts_, signature_nodes);
  for (const RankedOutput& output : ranked) {
    const NodeDef& node = graph_.node(output.node);
    const OutputSummary summary{node.name(), node.op(), output.tier,
                                output.points};
    if (output.terminal) summary_.outputs.push_back(summary);
    const auto signature = signature_nodes.find(output.node);
    const bool is_repeated =
        signature != signature_nodes.end() &&
        !summary_.signatures[signature->second].same_as.empty();
    if (output.tier >= OutputTier::kForward && !is_repeated &&
        summary_.likely_outputs.size() < kLikelyOutputs) {
      summary_.likely_outputs.push_back(summary);
    }
  }
  ChooseOutputs(ranked);
}

void Summarizer::ChooseOutputs(const std::vector<RankedOutput>& ranked) {
  std::vector<std::string>& chosen = summary_.chosen_outputs;
  if (!summary_.signatures.empty()) {
    ChooseSignatureOutputs(ranked);
    return;
  }
  if (parts_.any_auxiliary) {
    if (!summary_.likely_outputs.empty()) {
      chosen.push_back(summary_.likely_outputs[0].name);
    }
    return;
  }
  // In an inference graph every end that an input reaches counts, or every end
  // if there is no input.
  const OutputTier least = summary_.likely_outputs.empty()
                               ? OutputTier::kUnconnected
                               : OutputTier::kForward;
  for (const RankedOutput& output : ranked) {
    if (output.tier < least) break;
    chosen.push_back(graph_.node(output.node).name());
  }
}

void Summarizer::ChooseSignatureOutputs(
    const std::vector<RankedOutput>& ranked) {
  absl::flat_hash_map<int, size_t> place;
  for (size_t i = 0; i < ranked.size(); ++i) place[ranked[i].node] = i;
  // The map sorts by rank; outputs that the graph lacks come last.
  std::multimap<size_t, std::string> by_rank;
  for (const TensorSummary& output : summary_.signatures[0].outputs) {
    const TensorName name = ParseTensorName(output.name);
    const auto found = place.find(wiring_.Find(name.node));
    by_rank.emplace(found == place.end() ? ranked.size() : found->second,
                    FormatTensorName(name.node, name.port));
  }
  for (auto& [rank, name] : by_rank) {
    summary_.chosen_outputs.push_back(std::move(name));
  }
}

std::vector<bool> Summarizer::NeededByChosenOutputs() const {
  std::vector<bool> needed(wiring_.size());
  std::vector<int> open;
  const auto visit = [&](int node) {
    if (node == kNoNode || needed[node]) return;
    needed[node] = true;
    open.push_back(node);
  };
  for (const std::string& output : summary_.chosen_outputs) {
    visit(NodeOf(output));
  }
  while (!open.empty()) {
    const int node = open.back();
    open.pop_back();
    for (const Edge& edge : wiring_.Producers(node)) {
      if (edge.port != kControlPort) visit(edge.node);
    }
  }
  return needed;
}

// Returns the serialized records that the graph parses.
std::vector<Feed> Summarizer::FindRecords() const {
  std::vector<Feed> feeds;
  absl::flat_hash_set<std::pair<int, int>> seen;
  for (int i = 0; i < wiring_.size(); ++i) {
    const auto inputs = wiring_.Producers(i);
    if (!absl::StartsWith(graph_.node(i).op(), "ParseExample") ||
        inputs.empty() || inputs[0].node == kNoNode ||
        inputs[0].port == kControlPort ||
        !seen.insert({inputs[0].node, inputs[0].port}).second) {
      continue;
    }
    const NodeDef& source = graph_.node(inputs[0].node);
    Feed feed{inputs[0].node, inputs[0].port, {}};
    feed.tensor.name = FormatTensorName(source.name(), feed.port);
    feed.tensor.op = source.op();
    feed.tensor.type = tensorflow::DT_STRING;
    feeds.push_back(std::move(feed));
  }
  return feeds;
}

std::vector<Feed> Summarizer::FindFeeds() {
  std::vector<Feed> placeholders, others;
  for (int i = 0; i < wiring_.size(); ++i) {
    const NodeDef& node = graph_.node(i);
    if (node.op() == "Placeholder") {
      placeholders.push_back({i, 0, SummarizeNode(node)});
    } else if (parts_.auxiliary[i] || !IsInputOp(node.op())) {
      continue;
    } else if (absl::StartsWith(node.op(), "Iterator") ||
               absl::StartsWith(node.op(), "Queue")) {
      for (Feed& feed : FeedsOfPipeline(node, i)) {
        others.push_back(std::move(feed));
      }
    } else {
      others.push_back({i, 0, SummarizeNode(node)});
    }
  }
  if (!placeholders.empty()) return placeholders;
  if (others.empty()) others = FindRecords();
  summary_.placeholders = others.empty();
  return others;
}

void Summarizer::CollectInputs() {
  absl::flat_hash_set<std::string> signature_tensors;
  for (const SignatureSummary& signature : summary_.signatures) {
    for (const TensorSummary& input : signature.inputs) {
      const TensorName name = ParseTensorName(input.name);
      signature_tensors.insert(FormatTensorName(name.node, name.port));
    }
  }
  std::vector<Feed> feeds = FindFeeds();
  std::vector<TensorSummary> groups[3];
  for (Feed& feed : feeds) {
    const auto consumers = wiring_.Consumers(feed.node);
    const bool read =
        std::any_of(consumers.begin(), consumers.end(), [&](const Edge& edge) {
          return edge.port == feed.port && needed_[edge.node];
        });
    if (read && summary_.signatures.empty()) {
      summary_.chosen_inputs.push_back(feed.tensor);
    }
    const bool in_signature = signature_tensors.contains(feed.tensor.name);
    groups[in_signature ? 0 : read ? 1 : 2].push_back(std::move(feed.tensor));
  }
  for (std::vector<TensorSummary>& group : groups) {
    for (TensorSummary& tensor : group) {
      summary_.inputs.push_back(std::move(tensor));
    }
  }
  if (summary_.signatures.empty()) return;
  for (const TensorSummary& input : summary_.signatures[0].inputs) {
    TensorSummary tensor = input;
    const TensorName name = ParseTensorName(input.name);
    tensor.name = FormatTensorName(name.node, name.port);
    summary_.chosen_inputs.push_back(std::move(tensor));
  }
}

void Summarizer::CountParameters() {
  for (int i = 0; i < wiring_.size(); ++i) {
    const NodeDef& node = graph_.node(i);
    if (!node.device().empty()) ++summary_.devices[node.device()];
    if (node.op() == "Const") {
      const std::optional<int64_t> count = ConstElements(node);
      if (count) {
        summary_.const_parameters =
            AddUpToLimit(summary_.const_parameters, *count);
      } else {
        AddProblem(absl::StrCat("the Const \"", node.name(),
                                "\" has no readable value"));
      }
    } else if (IsVariableOp(node.op())) {
      TensorSummary variable = SummarizeNode(node);
      if (variable.has_shape) {
        summary_.variable_parameters =
            AddUpToLimit(summary_.variable_parameters,
                         ElementCount(variable.shape).value_or(0));
      }
      if (needed_[i] && node.op() != "VarHandleOp") {
        summary_.chosen_variables.push_back(variable);
      }
      summary_.variables.push_back(std::move(variable));
    }
  }
}

void Summarizer::CountOps() {
  absl::flat_hash_map<std::string_view, int64_t> counts;
  for (const NodeDef& node : graph_.node()) ++counts[node.op()];
  for (const auto& function : graph_.library().function()) {
    for (const NodeDef& node : function.node_def()) ++counts[node.op()];
  }
  summary_.ops.assign(counts.begin(), counts.end());
  std::sort(summary_.ops.begin(), summary_.ops.end(),
            [](const auto& a, const auto& b) {
              return a.second != b.second ? a.second > b.second
                                          : a.first < b.first;
            });
}

void Summarizer::CollectDefects() {
  for (int i = 0; i < wiring_.size(); ++i) {
    const NodeDef& node = graph_.node(i);
    const auto producers = wiring_.Producers(i);
    for (int input = 0; input < node.input_size(); ++input) {
      if (producers[input].port == kControlPort) ++summary_.control_edges;
      if (producers[input].node != kNoNode) continue;
      summary_.invalid_inputs.emplace_back(
          node.name(), ParseTensorName(node.input(input)).node);
    }
    if (wiring_.Find(node.name()) != i) {
      AddProblem(
          absl::StrCat("more than one node is named \"", node.name(), "\""));
    }
  }
  if (problem_count_ > kMaxProblems) {
    summary_.problems.push_back(absl::StrCat("… and ",
                                             problem_count_ - kMaxProblems,
                                             " more defects of these kinds"));
  }
}

void Summarizer::AddProblem(std::string problem) {
  if (++problem_count_ <= kMaxProblems) {
    summary_.problems.push_back(std::move(problem));
  }
}

}  // namespace

GraphSummary SummarizeGraph(const GraphDef& graph) {
  return Summarizer(graph).Run(nullptr);
}

GraphSummary SummarizeMetaGraph(const MetaGraphDef& meta) {
  return Summarizer(meta.graph_def()).Run(&meta);
}

}  // namespace requant
