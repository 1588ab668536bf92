#include "graph/summary/output_ranking.h"

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/framework/types.h"

namespace requant {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;

bool IsOneOf(std::string_view text,
             std::initializer_list<std::string_view> names) {
  return absl::c_linear_search(names, text);
}

bool HasPrefixOf(std::string_view text,
                 std::initializer_list<std::string_view> prefixes) {
  return std::any_of(
      prefixes.begin(), prefixes.end(),
      [&](std::string_view prefix) { return absl::StartsWith(text, prefix); });
}

bool IsCrossEntropy(std::string_view op) {
  return absl::StrContains(op, "CrossEntropyWithLogits");
}

bool IsGradientOp(std::string_view op) {
  // A Conv…BackpropInput is also a forward layer, the transposed convolution.
  return absl::EndsWith(op, "Grad") || absl::EndsWith(op, "GradV2") ||
         absl::EndsWith(op, "GradV3") ||
         absl::StrContains(op, "BackpropFilter");
}

bool IsAuxiliaryOp(std::string_view op) {
  return IsOneOf(op, {"LookupTableExportV2", "LookupTableImportV2",
                      "LookupTableInsertV2", "LookupTableSizeV2",
                      "QueueCloseV2", "QueueEnqueueManyV2", "QueueEnqueueV2",
                      "QueueSizeV2", "ScatterAdd", "ScatterDiv", "ScatterMul",
                      "ScatterSub", "ScatterUpdate"}) ||
         IsOneOf(op, {"Assert", "InTopK", "InTopKV2", "IsVariableInitialized",
                      "L2Loss", "MakeIterator", "MergeV2Checkpoints", "NoOp",
                      "ShardedFilename", "VarIsInitializedOp"}) ||
         IsCrossEntropy(op) || IsGradientOp(op) ||
         absl::StrContains(op, "Summary") || absl::EndsWith(op, "Loss") ||
         HasPrefixOf(op, {"Assign", "Save", "Restore", "Apply", "ResourceApply",
                          "SparseApply", "ResourceSparseApply",
                          "ResourceScatter", "InitializeTable"});
}

// Returns a part of a scoped name without its number: "Adam_12" → "adam".
std::string NameWord(std::string_view part) {
  size_t end = part.size();
  while (end > 0 && absl::ascii_isdigit(part[end - 1])) --end;
  if (end > 1 && end < part.size() && part[end - 1] == '_') {
    part = part.substr(0, end - 1);
  }
  return absl::AsciiStrToLower(part);
}

bool IsAuxiliaryWord(std::string_view word) {
  return IsOneOf(
             word,
             {"accuracy", "checkpoint_initializer", "clip_by_global_norm",
              "cost", "global_norm", "gradient_tape", "gradients", "loss",
              "losses", "mean_absolute_error", "mean_squared_error", "metrics",
              "report_uninitialized_variables", "save", "saver_filename",
              "summaries", "summary", "train_op", "zero_fraction"}) ||
         absl::EndsWith(word, "_accuracy") || absl::EndsWith(word, "_grad") ||
         absl::EndsWith(word, "_loss") || absl::EndsWith(word, "_summary");
}

bool IsAuxiliaryName(std::string_view name) {
  for (std::string_view part : absl::StrSplit(name, '/')) {
    if (IsAuxiliaryWord(NameWord(part))) return true;
  }
  return false;
}

// Returns whether it is a weight and not a small integer shape or the like.
bool IsWeight(const NodeDef& node) {
  if (IsVariableOp(node.op())) return true;
  if (node.op() != "Const") return false;
  const auto value = node.attr().find("value");
  if (value == node.attr().end()) return false;
  const tensorflow::TensorProto& tensor = value->second.tensor();
  if (tensor.tensor_shape().dim_size() < 2) return false;
  switch (tensor.dtype()) {
    case tensorflow::DT_FLOAT:
    case tensorflow::DT_DOUBLE:
    case tensorflow::DT_HALF:
    case tensorflow::DT_BFLOAT16:
    case tensorflow::DT_QINT8:
    case tensorflow::DT_QUINT8:
    case tensorflow::DT_INT8:
      return true;
    default:
      return false;
  }
}

// Returns whether the result depends on the input's shape, not its values.
bool IgnoresValues(std::string_view op) {
  return op == "Shape" || op == "ShapeN" || op == "Size" || op == "Rank" ||
         op == "ZerosLike" || op == "OnesLike";
}

// Marks everything computed from `seeds` (including these) along data edges,
// without entering the nodes of `barrier`.
std::vector<bool> Downstream(const GraphWiring& wiring, std::vector<int> seeds,
                             const std::vector<bool>& barrier) {
  std::vector<bool> reached(wiring.size());
  for (int seed : seeds) reached[seed] = true;
  while (!seeds.empty()) {
    const int node = seeds.back();
    seeds.pop_back();
    for (const Edge& edge : wiring.Consumers(node)) {
      if (edge.port == kControlPort || reached[edge.node] ||
          barrier[edge.node]) {
        continue;
      }
      reached[edge.node] = true;
      seeds.push_back(edge.node);
    }
  }
  return reached;
}

// Returns the input tensors (node, port) that feed input number `operand` of
// the graph's cross-entropy ops.
absl::flat_hash_set<std::pair<int, int>> SourcesOfCrossEntropy(
    const GraphDef& graph, const GraphWiring& wiring, size_t operand) {
  absl::flat_hash_set<std::pair<int, int>> sources;
  std::vector<bool> visited(wiring.size());
  std::vector<Edge> edges;
  for (int i = 0; i < wiring.size(); ++i) {
    const auto inputs = wiring.Producers(i);
    if (IsCrossEntropy(graph.node(i).op()) && inputs.size() > operand) {
      edges.push_back(inputs[operand]);
    }
  }
  while (!edges.empty()) {
    const Edge edge = edges.back();
    edges.pop_back();
    if (edge.node == kNoNode || edge.port == kControlPort) {
      continue;
    }
    if (IsInputOp(graph.node(edge.node).op())) {
      sources.insert({edge.node, edge.port});
    } else if (!visited[edge.node]) {
      visited[edge.node] = true;
      const auto inputs = wiring.Producers(edge.node);
      edges.insert(edges.end(), inputs.begin(), inputs.end());
    }
  }
  return sources;
}

// Returns the nodes that read the labels; see the header.
std::vector<int> ReadersOfLabels(const GraphDef& graph,
                                 const GraphWiring& wiring) {
  const auto features = SourcesOfCrossEntropy(graph, wiring, 0);
  std::vector<int> readers;
  for (const auto& label : SourcesOfCrossEntropy(graph, wiring, 1)) {
    if (features.contains(label)) continue;
    for (const Edge& edge : wiring.Consumers(label.first)) {
      if (edge.port == label.second) readers.push_back(edge.node);
    }
  }
  return readers;
}

// Returns whether the node's only use is to update variables, like a metric's
// sum or a moving average.
bool OnlyUpdatesVariables(const GraphDef& graph, const GraphWiring& wiring,
                          int node) {
  bool read = false;
  for (const Edge& edge : wiring.Consumers(node)) {
    if (edge.port == kControlPort) continue;
    if (!absl::StartsWith(graph.node(edge.node).op(), "Assign")) return false;
    read = true;
  }
  return read;
}

std::vector<bool> FindAuxiliary(const GraphDef& graph,
                                const GraphWiring& wiring) {
  std::vector<bool> marked(wiring.size());
  std::vector<int> seeds = ReadersOfLabels(graph, wiring);
  for (int i = 0; i < wiring.size(); ++i) {
    const NodeDef& node = graph.node(i);
    if (!IsAuxiliaryOp(node.op()) && !IsAuxiliaryName(node.name()) &&
        !OnlyUpdatesVariables(graph, wiring, i)) {
      continue;
    }
    marked[i] = true;
    // A variable or Const with such a name (a slot, a decay) affects no others.
    const bool constant = node.op() == "Const" || IsVariableOp(node.op());
    if (!constant) seeds.push_back(i);
  }
  std::vector<bool> reached =
      Downstream(wiring, std::move(seeds), std::vector<bool>(wiring.size()));
  for (int i = 0; i < wiring.size(); ++i) reached[i] = reached[i] || marked[i];
  return reached;
}

struct WordPoints {
  std::string_view word;
  int points;
};

int Find(absl::Span<const WordPoints> list, std::string_view word) {
  const auto found = absl::c_find_if(
      list, [&](const WordPoints& entry) { return entry.word == word; });
  return found == list.end() ? 0 : found->points;
}

int PointsOfWord(std::string_view word) {
  static constexpr WordPoints kPoints[] = {
      {"class_ids", 15},     {"classes", 12},     {"detections", 35},
      {"logistic", 20},      {"logits", 30},      {"out", 25},
      {"output", 35},        {"outputs", 35},     {"pred", 32},
      {"predict", 32},       {"prediction", 35},  {"predictions", 35},
      {"prob", 38},          {"probability", 40}, {"probabilities", 40},
      {"probs", 38},         {"scores", 30},      {"softmax", 30},
      {"softmax_tensor", 35}};
  return Find(kPoints, word);
}

int PointsOfOp(std::string_view op) {
  static constexpr WordPoints kPoints[] = {
      {"ArgMax", 15}, {"LogSoftmax", 20}, {"Sigmoid", 20}, {"Softmax", 25},
      {"TopK", 10},   {"TopKV2", 10},     {"_Retval", 25}};
  return absl::StrContains(op, "NonMaxSuppression") ? 15 : Find(kPoints, op);
}

bool PassesItsInputOn(std::string_view op) {
  return IsOneOf(op, {"Cast", "ExpandDims", "Identity", "IdentityN", "Reshape",
                      "Squeeze", "StopGradient"});
}

int PointsOfComputation(const GraphDef& graph, const GraphWiring& wiring,
                        int node) {
  constexpr int kMaxHops = 8;
  for (int hop = 0; hop < kMaxHops; ++hop) {
    const std::string& op = graph.node(node).op();
    const auto inputs = wiring.Producers(node);
    if (!PassesItsInputOn(op) || inputs.empty() || inputs[0].node == kNoNode) {
      break;
    }
    node = inputs[0].node;
  }
  return PointsOfOp(graph.node(node).op());
}

int PointsOfResult(const NodeDef& node) {
  int points = node.op() == "AsString" ? -5 : 0;
  const auto shapes = node.attr().find("_output_shapes");
  if (shapes == node.attr().end() || shapes->second.list().shape_size() == 0) {
    return points;
  }
  const tensorflow::TensorShapeProto& shape = shapes->second.list().shape(0);
  if (shape.unknown_rank()) return points;
  if (shape.dim_size() == 0) return points - 20;
  return points + (shape.dim(0).size() < 0 ? 5 : 0);
}

// Returns whether TensorFlow's summarize_graph lists the node.
bool IsTerminal(const NodeDef& node, absl::Span<const Edge> consumers) {
  return consumers.empty() &&
         !IsOneOf(node.op(), {"Assign", "Const", "NoOp", "Placeholder"});
}

bool EndsForwardPart(const NodeParts& parts, absl::Span<const Edge> consumers) {
  bool read = false;
  for (const Edge& edge : consumers) {
    if (edge.port == kControlPort) continue;
    if (parts.forward[edge.node]) return false;
    read = true;
  }
  return read;
}

// Returns the points of a node's or an output's name.
int PointsOfName(std::string_view name) {
  constexpr int kScopePoints = 10;
  const std::vector<std::string_view> parts = absl::StrSplit(name, '/');
  int points = PointsOfWord(NameWord(parts.back()));
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    if (PointsOfWord(NameWord(parts[i])) > 0) return points + kScopePoints;
  }
  return points;
}

}  // namespace

std::string LikelyPrediction(const tensorflow::SignatureDef& signature) {
  if (signature.outputs_size() == 1) return signature.outputs().begin()->first;
  std::string best;
  int most = std::numeric_limits<int>::min();
  for (const auto& [name, info] : signature.outputs()) {
    const bool is_scalar = !info.tensor_shape().unknown_rank() &&
                           info.tensor_shape().dim_size() == 0;
    const bool may_be = info.dtype() == tensorflow::DT_INVALID ||
                        tensorflow::DataTypeIsFloating(info.dtype());
    // Sparse and ragged outputs have no name.
    if (info.name().empty() || is_scalar || !may_be) continue;
    const int points = PointsOfName(name);
    if (points > most) best = name;
    if (points == most) best.clear();
    most = std::max(most, points);
  }
  return best;
}

bool IsInputOp(std::string_view op) {
  return IsOneOf(
      op, {"IteratorGetNext", "IteratorGetNextSync", "Placeholder",
           "PlaceholderV2", "PlaceholderWithDefault", "QueueDequeueManyV2",
           "QueueDequeueUpToV2", "QueueDequeueV2", "_Arg"});
}

bool IsVariableOp(std::string_view op) {
  return op == "Variable" || op == "VariableV2" || op == "VarHandleOp";
}

NodeParts FindNodeParts(const GraphDef& graph, const GraphWiring& wiring) {
  NodeParts parts;
  parts.auxiliary = FindAuxiliary(graph, wiring);
  std::vector<bool> barrier = parts.auxiliary;
  std::vector<int> inputs, weights;
  for (int i = 0; i < wiring.size(); ++i) {
    if (IgnoresValues(graph.node(i).op())) barrier[i] = true;
    if (parts.auxiliary[i]) {
      parts.any_auxiliary = true;
      continue;
    }
    if (IsInputOp(graph.node(i).op())) inputs.push_back(i);
    if (IsWeight(graph.node(i))) weights.push_back(i);
  }
  parts.any_parametric = !weights.empty();
  parts.forward = Downstream(wiring, std::move(inputs), barrier);
  parts.parametric = Downstream(wiring, std::move(weights), barrier);
  return parts;
}

std::vector<RankedOutput> RankOutputs(
    const GraphDef& graph, const GraphWiring& wiring, const NodeParts& parts,
    const absl::flat_hash_map<int, int>& signature_nodes) {
  // This exceeds all other points together.
  constexpr int kSignaturePoints = 200;
  std::vector<RankedOutput> ranked;
  for (int i = 0; i < wiring.size(); ++i) {
    const NodeDef& node = graph.node(i);
    const auto consumers = wiring.Consumers(i);
    const auto signature = signature_nodes.find(i);
    const bool in_signature = signature != signature_nodes.end();
    const bool terminal = IsTerminal(node, consumers);
    const bool end_of_forward = parts.forward[i] && !IsInputOp(node.op()) &&
                                EndsForwardPart(parts, consumers);
    if (!terminal && !end_of_forward && !in_signature) continue;
    const int evidence =
        PointsOfName(node.name()) + PointsOfComputation(graph, wiring, i);
    const int points =
        evidence + PointsOfResult(node) + (parts.parametric[i] ? 10 : 0);
    RankedOutput output{i, OutputTier::kForward, points, terminal};
    if (in_signature) {
      output.tier = OutputTier::kSignature;
      output.points -= kSignaturePoints * signature->second;
    } else if (parts.auxiliary[i]) {
      output.tier = OutputTier::kAuxiliary;
    } else if (!parts.forward[i]) {
      output.tier = OutputTier::kUnconnected;
    } else if (evidence > 0 && (parts.parametric[i] || !parts.any_parametric)) {
      output.tier = OutputTier::kPrediction;
    }
    ranked.push_back(output);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const RankedOutput& a, const RankedOutput& b) {
                     return std::tie(a.tier, a.points) >
                            std::tie(b.tier, b.points);
                   });
  return ranked;
}

}  // namespace requant
