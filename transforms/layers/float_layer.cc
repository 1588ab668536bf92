#include "transforms/layers/float_layer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/terminal/terminal_text.h"
#include "base/text/nearest_name.h"
#include "base/text/printable.h"
#include "graph/const_node.h"
#include "graph/summary/output_ranking.h"
#include "tensorflow/core/framework/types.pb.h"
#include "transforms/layers/quantized_weights.h"
#include "transforms/layers/tensor_pattern.h"

namespace requant {
namespace {

using tensorflow::NodeDef;
using tensorflow::Tensor;

bool IsFloat(const NodeDef& node) {
  return TypeAttribute(node, "T", tensorflow::DT_FLOAT) == tensorflow::DT_FLOAT;
}

// Returns the tensor's name, always with its port.
std::string WithPort(const std::string& input) {
  const TensorName name = ParseTensorName(input);
  return absl::StrCat(name.node, ":", name.port);
}

Tensor Transposed(const Tensor& matrix) {
  Tensor result(matrix.dtype(), {matrix.dim_size(1), matrix.dim_size(0)});
  const auto from = matrix.matrix<float>();
  auto to = result.matrix<float>();
  for (int64_t row = 0; row < matrix.dim_size(0); ++row) {
    for (int64_t column = 0; column < matrix.dim_size(1); ++column) {
      to(column, row) = from(row, column);
    }
  }
  return result;
}

bool AllFinite(const Tensor& tensor) {
  const auto values = tensor.flat<float>();
  return std::all_of(values.data(), values.data() + values.size(),
                     [](float value) { return std::isfinite(value); });
}

bool AllZero(const Tensor& tensor) { return LargestMagnitude(tensor) == 0; }

class LayerFinder {
 public:
  LayerFinder(const GraphIndex* index, const FloatLayerOptions& options)
      : index_(*index),
        excluded_ops_(options.excluded_ops.begin(), options.excluded_ops.end()),
        excluded_nodes_(options.excluded_nodes.begin(),
                        options.excluded_nodes.end()) {
    for (const std::string& output : options.outputs) {
      outputs_.insert(std::string(ParseTensorName(output).node));
    }
  }

  FloatLayers Find() {
    FloatLayers found;
    for (const NodeDef& node : index_.graph().node()) {
      if (node.op() != "MatMul") continue;
      FloatLayer layer;
      layer.matmul = index_.Find(node.name());
      if (auto reason = ReadMatMul(&layer)) {
        found.skipped.push_back({node.name(), *std::move(reason)});
        continue;
      }
      AddBias(&layer);
      AddActivation(&layer);
      layer.output = absl::StrCat(layer.last()->name(), ":0");
      found.layers.push_back(std::move(layer));
    }
    return found;
  }

 private:
  bool IsExcluded(const NodeDef& node) const {
    return excluded_ops_.contains(node.op()) ||
           excluded_nodes_.contains(node.name());
  }

  // Sets the input and the weights, or returns why this is no layer.
  std::optional<std::string> ReadMatMul(FloatLayer* layer) const {
    const NodeDef& matmul = *layer->matmul;
    if (IsExcluded(matmul)) return "it is excluded";
    if (DataInputs(matmul) != 2) return "it does not have two inputs";
    if (!IsFloat(matmul)) return "it is not float32";
    if (BoolAttribute(matmul, "transpose_a")) {
      return "it transposes its first input";
    }
    const NodeOutput weights = TensorSource(index_, matmul, 1);
    if (weights.node == nullptr || weights.node->op() != "Const") {
      const NodeOutput left = TensorSource(index_, matmul, 0);
      const bool constant = left.node != nullptr && left.node->op() == "Const";
      return constant ? "its constant is the first factor"
                      : "it multiplies two activations";
    }
    const NodeOutput input = TensorSource(index_, matmul, 0);
    if (input.node != nullptr && input.node->op() == "Const") {
      return "it multiplies two constants";
    }
    layer->input = input.node == nullptr
                       ? WithPort(matmul.input(0))
                       : absl::StrCat(input.node->name(), ":", input.port);
    layer->transposed = BoolAttribute(matmul, "transpose_b");
    Tensor value;
    if (auto reason = ReadWeights(*weights.node, &value)) return reason;
    if (value.dims() != 2) {
      return absl::StrCat("its weights have the shape ",
                          value.shape().DebugString());
    }
    layer->weights_node = weights.node;
    layer->weights = layer->transposed ? Transposed(value) : value;
    layer->bias = Tensor(tensorflow::DT_FLOAT, {layer->weights.dim_size(1)});
    layer->bias.flat<float>().setZero();
    return std::nullopt;
  }

  // Returns the only reader of `node`, with its input that reads it, if the
  // layer may continue with that reader.
  std::optional<Use> OnlyReader(const NodeDef& node) const {
    if (outputs_.contains(node.name())) return std::nullopt;
    const std::vector<Use> uses = index_.Uses(node.name());
    if (uses.size() != 1 || uses[0].port != 0 || IsExcluded(*uses[0].node) ||
        !IsFloat(*uses[0].node)) {
      return std::nullopt;
    }
    return uses[0];
  }

  void AddBias(FloatLayer* layer) const {
    const auto use = OnlyReader(*layer->matmul);
    if (!use || DataInputs(*use->node) != 2) return;
    const bool is_add = use->node->op() == "Add" || use->node->op() == "AddV2";
    if (!is_add && (use->node->op() != "BiasAdd" || use->input != 0)) return;
    const NodeOutput bias = TensorSource(index_, *use->node, 1 - use->input);
    if (bias.node == nullptr || bias.node->op() != "Const") return;
    const absl::StatusOr<Tensor> value = ConstValue(*bias.node);
    if (!value.ok() || value->dtype() != tensorflow::DT_FLOAT ||
        value->shape() != layer->bias.shape() || !AllFinite(*value)) {
      return;
    }
    layer->bias_add = use->node;
    layer->bias_node = bias.node;
    layer->bias = *value;
  }

  void AddActivation(FloatLayer* layer) const {
    const auto use = OnlyReader(*layer->last());
    if (!use || DataInputs(*use->node) != 1) return;
    if (use->node->op() == "Relu" || use->node->op() == "Relu6") {
      layer->activation = use->node;
    }
  }

  const GraphIndex& index_;
  const absl::flat_hash_set<std::string> excluded_ops_;
  const absl::flat_hash_set<std::string> excluded_nodes_;
  absl::flat_hash_set<std::string> outputs_;
};

constexpr std::string_view kImportPrefix = "import/";
constexpr std::string_view kRequantizeSuffix = "_eightbit_requantize";
constexpr std::string_view kQuantizeInfix = "_eightbit_quantize_";

const NodeDef* FindEitherName(const GraphIndex& index, std::string_view name) {
  for (const std::string& candidate :
       {std::string(name), absl::StrCat(kImportPrefix, name),
        std::string(absl::StripPrefix(name, kImportPrefix))}) {
    if (const NodeDef* node = index.Find(candidate)) return node;
  }
  return nullptr;
}

// Returns the coding of the node's outputs 0 to 2, codes and their range, or
// nullopt if they are none.
std::optional<LayerCoding> CodingOf(const NodeDef& node) {
  if (node.op() == "Requantize") return LayerCoding::kMinFirst;
  if (node.op() == "_QuantizedMatMul") {
    return StringAttribute(node, "output_quant_mode") == "MIN_FIRST"
               ? LayerCoding::kMinFirst
               : LayerCoding::kScaled;
  }
  if (absl::StartsWith(node.op(), "QuantizedMatMul") &&
      absl::EndsWith(node.op(), "AndRequantize")) {
    return LayerCoding::kScaled;
  }
  return std::nullopt;
}

// Returns whether output 0 has a float type according to the attributes.
bool GivesFloat(const NodeDef& node) {
  if (node.op() == "Dequantize") {
    return TypeAttribute(node, "dtype", tensorflow::DT_FLOAT) ==
           tensorflow::DT_FLOAT;
  }
  for (const std::string name : {"Toutput", "Tout", "dtype", "T"}) {
    const tensorflow::DataType type = TypeAttribute(node, name);
    if (type != tensorflow::DT_INVALID) return type == tensorflow::DT_FLOAT;
  }
  return false;
}

std::string OutputName(const NodeDef& node, int port) {
  return absl::StrCat(node.name(), ":", port);
}

void SetCodes(const NodeDef& node, LayerCoding coding, LayerPair* pair) {
  pair->coding = coding;
  pair->tensor = OutputName(node, 0);
  pair->min_tensor = OutputName(node, 1);
  pair->max_tensor = OutputName(node, 2);
}

// Returns the layer's input and its QuantizeV2, or nullopt if there is none
// whose codes are of the input's own values: columns with ranges of their own
// are scaled and repeated before they are quantized.
std::optional<LayerPair> FindQuantizedInput(const FloatLayer& layer,
                                            const GraphIndex& other) {
  const TensorName input = ParseTensorName(layer.input);
  const NodeDef* quantize = FindEitherName(
      other, absl::StrCat(layer.matmul->name(), kQuantizeInfix, input.node));
  if (quantize == nullptr || quantize->op() != "QuantizeV2" ||
      TypeAttribute(*quantize, "T") != tensorflow::DT_QUINT8 ||
      StringAttribute(*quantize, "mode") != "MIN_FIRST" ||
      quantize->input().empty() ||
      absl::StripPrefix(NodeOf(quantize->input(0)), kImportPrefix) !=
          absl::StripPrefix(input.node, kImportPrefix)) {
    return std::nullopt;
  }
  LayerPair pair;
  pair.name = std::string(input.node);
  pair.float_tensor = layer.input;
  SetCodes(*quantize, LayerCoding::kMinFirst, &pair);
  return pair;
}

// Fills in the other graph's side. Returns false if there is none.
bool FindCounterpart(const FloatLayer& layer, const GraphIndex& other,
                     LayerPair* pair) {
  const NodeDef* codes = FindEitherName(
      other, absl::StrCat(layer.matmul->name(), kRequantizeSuffix));
  const std::optional<LayerCoding> coding =
      codes == nullptr ? std::nullopt : CodingOf(*codes);
  if (coding.has_value()) {
    SetCodes(*codes, *coding, pair);
    return true;
  }
  const NodeDef* last = FindEitherName(other, layer.last()->name());
  if (last == nullptr || !GivesFloat(*last)) return false;
  pair->coding = LayerCoding::kFloat;
  pair->tensor = OutputName(*last, 0);
  return true;
}

}  // namespace

std::optional<std::string> ReadWeights(const NodeDef& node, Tensor* weights) {
  // Constants in a loop's body have them; a new constant would be outside it.
  if (node.input_size() > 0) return "its weights have control inputs";
  absl::StatusOr<Tensor> value = ConstValue(node);
  if (!value.ok()) return "its weights cannot be read";
  if (value->dtype() != tensorflow::DT_FLOAT) {
    return "its weights are not float32";
  }
  if (value->NumElements() == 0) {
    return absl::StrCat("its weights have the shape ",
                        value->shape().DebugString());
  }
  if (!AllFinite(*value)) return "its weights hold a nan or an infinity";
  if (AllZero(*value)) return "its weights are all zero";
  *weights = *std::move(value);
  return std::nullopt;
}

FloatLayers FindFloatLayers(const GraphIndex& index,
                            const FloatLayerOptions& options) {
  return LayerFinder(&index, options).Find();
}

LayerPairs FindLayerPairs(const GraphIndex& float_graph,
                          const GraphIndex& other,
                          const std::vector<std::string>& outputs) {
  FloatLayerOptions options;
  options.outputs = outputs;
  LayerPairs found;
  for (const FloatLayer& layer : FindFloatLayers(float_graph, options).layers) {
    if (const auto input = FindQuantizedInput(layer, other)) {
      found.pairs.push_back(*input);
    }
    LayerPair pair;
    pair.name = layer.matmul->name();
    pair.float_tensor = layer.output;
    if (FindCounterpart(layer, other, &pair)) {
      found.pairs.push_back(pair);
    } else {
      found.unmatched.push_back(pair.name);
    }
  }
  return found;
}

std::vector<std::string> LayerTable(const std::vector<LayerTableRow>& rows) {
  Table table;
  table.AddColumn("", Table::kAlways, /*left=*/true);
  for (size_t i = 0; i < rows.front().cells.size(); ++i) {
    table.AddColumn("", Table::kAlways, /*left=*/true);
  }
  for (const LayerTableRow& row : rows) {
    std::vector<StyledText> cells = {{"  " + Printable(row.name)}};
    for (const std::string& cell : row.cells) cells.push_back({cell});
    table.AddRow(std::move(cells));
  }
  // The line of titles is empty, so it is removed.
  return absl::StrSplit(absl::StripSuffix(table.Text(0, false).substr(1), "\n"),
                        '\n');
}

std::string WhyNoLayers(const tensorflow::GraphDef& graph,
                        const FloatLayers& found) {
  std::map<std::string, int> others;
  bool has_variables = false;
  for (const NodeDef& node : graph.node()) {
    has_variables |= IsVariableOp(node.op());
    if (absl::StrContains(node.op(), "Conv") ||
        absl::StartsWith(node.op(), "BatchMatMul") || node.op() == "Einsum") {
      ++others[node.op()];
    }
  }
  std::string why = "no MatMul has constant float weights";
  if (has_variables) {
    absl::StrAppend(
        &why,
        "; weights that are in variables become constants by requant freeze");
  } else if (!found.skipped.empty()) {
    const SkippedMatMul& first = found.skipped.front();
    absl::StrAppend(&why, "; \"", first.name, "\" stays float: ", first.reason);
    if (found.skipped.size() > 1) {
      absl::StrAppend(&why, " (and ", found.skipped.size() - 1, " more)");
    }
  }
  if (!others.empty()) {
    absl::StrAppend(
        &why, "; other layers stay float: ",
        absl::StrJoin(others, ", ", [](std::string* out, const auto& entry) {
          absl::StrAppend(out, entry.second, " ", entry.first);
        }));
  }
  return why;
}

absl::Status CheckExcluded(const FloatLayerOptions& options,
                           const GraphIndex& index,
                           std::vector<std::string>* warnings) {
  for (const std::string& name : options.excluded_nodes) {
    if (index.Find(name) != nullptr) continue;
    std::vector<std::string> known;
    for (const NodeDef& node : index.graph().node()) {
      known.push_back(node.name());
    }
    return absl::NotFoundError(absl::StrCat("the graph has no node \"", name,
                                            "\" to exclude",
                                            DidYouMean(name, known)));
  }
  absl::flat_hash_set<std::string> ops;
  for (const NodeDef& node : index.graph().node()) ops.insert(node.op());
  for (const std::string& op : options.excluded_ops) {
    if (ops.contains(op)) continue;
    warnings->push_back(absl::StrCat("no node of the graph is a ", op,
                                     ", which is excluded",
                                     DidYouMean(op, {ops.begin(), ops.end()})));
  }
  return absl::OkStatus();
}

}  // namespace requant
