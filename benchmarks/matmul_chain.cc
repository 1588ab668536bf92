#include "benchmarks/matmul_chain.h"

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "graph/const_node.h"
#include "graph/freeze/needed_nodes.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "transforms/layers/graph_builder.h"

namespace requant {
namespace {

using tensorflow::DataType;
using tensorflow::GraphDef;
using tensorflow::NodeDef;

constexpr char kInput[] = "chain_input";
constexpr int kWeightsInput = 1;
constexpr int kBiasInput = 2;

bool IsConstant(const NodeDef* node) {
  return node != nullptr &&
         (node->op() == "Const" || node->op() == "HostConst");
}

// Returns whether the node may lie between layers: it is cheap or fused.
bool IsBetweenLayers(const NodeDef& node) {
  static const auto* ops = new absl::flat_hash_set<std::string>{
      "BiasAdd", "Relu", "Relu6", "Identity", "Requantize"};
  return ops->contains(node.op());
}

// Returns the producer of an input of `node`, looking through Identity nodes.
NodeDef* Source(const GraphIndex& index, const NodeDef& node, int input) {
  NodeDef* source = index.Producer(node, input);
  while (source != nullptr && source->op() == "Identity") {
    source = index.Producer(*source, 0);
  }
  return source;
}

bool IsLayer(const GraphIndex& index, const NodeDef& node) {
  const bool is_matmul = node.op() == "MatMul" ||
                         node.op() == "_QuantizedMatMul" ||
                         absl::StartsWith(node.op(), "QuantizedMatMul");
  return is_matmul && node.input_size() > kWeightsInput &&
         IsConstant(Source(index, node, kWeightsInput));
}

// Returns the layer that computes the input of `layer`, or nullptr.
NodeDef* LayerBefore(const GraphIndex& index, const NodeDef& layer) {
  NodeDef* node = index.Producer(layer, 0);
  while (node != nullptr && IsBetweenLayers(*node)) {
    node = index.Producer(*node, 0);
  }
  return node != nullptr && IsLayer(index, *node) ? node : nullptr;
}

// Returns the layers of the longest chain, last one first; if there are
// several, of the one that ends first in the graph.
std::vector<NodeDef*> LongestChain(const GraphIndex& index) {
  std::vector<NodeDef*> longest;
  for (const NodeDef& node : index.graph().node()) {
    if (!IsLayer(index, node)) continue;
    std::vector<NodeDef*> chain;
    absl::flat_hash_set<const NodeDef*> seen;
    for (NodeDef* layer = index.Find(node.name());
         layer != nullptr && seen.insert(layer).second;
         layer = LayerBefore(index, *layer)) {
      chain.push_back(layer);
    }
    if (chain.size() > longest.size()) longest = std::move(chain);
  }
  return longest;
}

// Returns `last` or the last node of the bias and activation after it.
const NodeDef* EndOfLayer(const GraphIndex& index, const NodeDef* last) {
  while (true) {
    const std::vector<Use> uses = index.Uses(last->name());
    if (uses.size() != 1 || uses[0].input != 0 ||
        !IsBetweenLayers(*uses[0].node)) {
      return last;
    }
    last = uses[0].node;
  }
}

// Returns whether `node` depends on a fed input.
bool DependsOnInputs(const GraphIndex& index, const std::string& node) {
  for (const NodeDef* needed : NeededNodes(index, {node})) {
    if (absl::StartsWith(needed->op(), "Placeholder")) return true;
  }
  return false;
}

// Returns the type whose codes have the same bits as `type`.
absl::StatusOr<DataType> FedType(const NodeDef& layer, DataType type) {
  if (type == tensorflow::DT_FLOAT) return type;
  if (type == tensorflow::DT_QUINT8) return tensorflow::DT_UINT8;
  if (type == tensorflow::DT_QINT8) return tensorflow::DT_INT8;
  return absl::UnimplementedError(absl::StrCat(
      layer.name(), " reads values of type ", tensorflow::DataType_Name(type),
      ": only float, quint8 and qint8 layers can be measured alone"));
}

// Returns how many values per record a layer reads.
int64_t InputWidth(const GraphIndex& index, const NodeDef& layer) {
  const NodeDef& weights = *Source(index, layer, kWeightsInput);
  const auto& shape = weights.attr().at("value").tensor().tensor_shape();
  const auto transposed = layer.attr().find("transpose_b");
  const bool is_transposed =
      transposed != layer.attr().end() && transposed->second.b();
  return shape.dim_size() == 2 ? shape.dim(is_transposed ? 1 : 0).size() : 0;
}

NodeDef InputPlaceholder(DataType type, int64_t width) {
  NodeDef node = MakeNode(kInput, "Placeholder", {}, {{"dtype", type}});
  auto* shape = (*node.mutable_attr())["shape"].mutable_shape();
  shape->add_dim()->set_size(-1);
  shape->add_dim()->set_size(width);
  return node;
}

// Makes ranges that `first` takes from earlier nodes constant: 0 to 1.
absl::Status FixRanges(GraphIndex* index, NodeDef* first) {
  std::vector<int> ranges;
  for (int i = kWeightsInput + 1; i < first->input_size(); ++i) {
    const std::string node(ParseTensorName(first->input(i)).node);
    if (DependsOnInputs(*index, node)) ranges.push_back(i);
  }
  if (ranges.empty()) return absl::OkStatus();
  // A minimum precedes its maximum.
  if (ranges.size() != 2 || ranges[0] == kBiasInput) {
    return absl::UnimplementedError(
        absl::StrCat(first->name(),
                     " is not fed by values and their range alone: freeze the "
                     "ranges first"));
  }
  for (int i = 0; i < 2; ++i) {
    const std::string name = absl::StrCat(kInput, i == 0 ? "/min" : "/max");
    REQUANT_RETURN_IF_ERROR(
        index->Add(MakeScalarConst(name, static_cast<float>(i))).status());
    index->SetInput(first, ranges[i], name);
  }
  return absl::OkStatus();
}

// Makes `first` read a placeholder of its own and constant ranges.
absl::Status Detach(GraphIndex* index, NodeDef* first, MatMulChain* chain) {
  const auto& attributes = first->attr();
  const auto type_attribute =
      attributes.find(attributes.contains("T1") ? "T1" : "T");
  if (type_attribute == attributes.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat(first->name(), " has no attribute T1 or T"));
  }
  const DataType type = type_attribute->second.type();
  REQUANT_ASSIGN_OR_RETURN(chain->input_type, FedType(*first, type));
  chain->width = InputWidth(*index, *first);
  chain->input = kInput;
  REQUANT_RETURN_IF_ERROR(FixRanges(index, first));
  REQUANT_RETURN_IF_ERROR(
      index->Add(InputPlaceholder(chain->input_type, chain->width)).status());
  if (type == chain->input_type) {
    index->SetInput(first, 0, kInput);
    return absl::OkStatus();
  }
  REQUANT_ASSIGN_OR_RETURN(
      const NodeDef* codes,
      index->Add(MakeNode(absl::StrCat(kInput, "/codes"), "Bitcast", {kInput},
                          {{"T", chain->input_type}, {"type", type}})));
  index->SetInput(first, 0, codes->name());
  return absl::OkStatus();
}

// Returns NumPy's name for the type, and the bytes per value.
std::pair<const char*, int> NumpyType(DataType type) {
  if (type == tensorflow::DT_UINT8) return {"|u1", 1};
  if (type == tensorflow::DT_INT8) return {"|i1", 1};
  return {"<f4", 4};
}

// Returns the header of a .npy file of version 1.0.
std::string NumpyHeader(const char* type, int64_t rows, int64_t columns) {
  constexpr size_t kPrefix = 10;
  constexpr size_t kAlignment = 64;
  std::string text =
      absl::StrCat("{'descr': '", type, "', 'fortran_order': False, 'shape': (",
                   rows, ", ", columns, "), }");
  text.append(kAlignment - (kPrefix + text.size() + 1) % kAlignment, ' ');
  text.push_back('\n');
  std::string header("\x93NUMPY\x01\x00", 8);
  header.push_back(static_cast<char>(text.size() & 0xff));
  header.push_back(static_cast<char>(text.size() >> 8));
  return header + text;
}

// Returns codes from 0 to 127, or floats from 0 to 1.
std::string RandomValues(int64_t count, int bytes_each) {
  std::mt19937 random(1);
  std::string values(count * bytes_each, '\0');
  for (int64_t i = 0; i < count; ++i) {
    if (bytes_each == 1) {
      values[i] = static_cast<char>(random() & 0x7f);
    } else {
      const float value = static_cast<float>(random() & 0xffff) / 0x10000;
      std::memcpy(&values[i * bytes_each], &value, bytes_each);
    }
  }
  return values;
}

}  // namespace

absl::StatusOr<MatMulChain> CutMatMulChain(const GraphDef& graph) {
  MatMulChain chain;
  chain.graph = graph;
  REQUANT_ASSIGN_OR_RETURN(GraphIndex index, GraphIndex::Create(&chain.graph));
  const std::vector<NodeDef*> layers = LongestChain(index);
  if (layers.empty()) {
    return absl::InvalidArgumentError(
        "the graph has no layer to measure alone: a MatMul, or its quantized "
        "form, with constant weights");
  }
  chain.layers = static_cast<int>(layers.size());
  REQUANT_RETURN_IF_ERROR(Detach(&index, layers.back(), &chain));
  chain.output = EndOfLayer(index, layers.front())->name();
  const NodeSet needed = NeededNodes(index, {chain.output});
  GraphDef cut;
  *cut.mutable_versions() = chain.graph.versions();
  for (const NodeDef& node : chain.graph.node()) {
    if (needed.contains(&node)) *cut.add_node() = node;
  }
  chain.graph = std::move(cut);
  return chain;
}

absl::StatusOr<DatasetSpec> WriteChainRecords(const MatMulChain& chain,
                                              int64_t records,
                                              const std::string& path) {
  const auto [type, bytes_each] = NumpyType(chain.input_type);
  REQUANT_RETURN_IF_ERROR(WriteFileAtomically(
      path, NumpyHeader(type, records, chain.width) +
                RandomValues(records * chain.width, bytes_each)));
  DatasetSpec dataset;
  (*dataset.mutable_numpy()->mutable_arrays())["codes"] = path;
  InputSpec& input = *dataset.add_input();
  input.add_feature("codes");
  input.set_placeholder(chain.input);
  input.set_dtype(chain.input_type == tensorflow::DT_UINT8  ? "uint8"
                  : chain.input_type == tensorflow::DT_INT8 ? "int8"
                                                            : "float");
  input.add_shape(chain.width);
  dataset.mutable_prediction()->set_tensor(chain.output);
  dataset.mutable_prediction()->set_kind(PredictionSpec::VALUE);
  return dataset;
}

}  // namespace requant
