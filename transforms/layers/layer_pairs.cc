#include "transforms/layers/layer_pairs.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/types.pb.h"
#include "transforms/layers/float_layer.h"

namespace requant {
namespace {

using tensorflow::DataType;
using tensorflow::NodeDef;

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

std::optional<DataType> TypeAttribute(const NodeDef& node,
                                      const std::string& name) {
  const auto attribute = node.attr().find(name);
  if (attribute == node.attr().end()) return std::nullopt;
  return attribute->second.type();
}

// How the node's outputs 0 to 2 give codes and their range; unset when they do
// not.
std::optional<LayerCoding> CodingOf(const NodeDef& node) {
  if (node.op() == "Requantize") return LayerCoding::kMinFirst;
  if (node.op() == "_QuantizedMatMul") {
    const auto mode = node.attr().find("output_quant_mode");
    const bool is_min_first =
        mode != node.attr().end() && mode->second.s() == "MIN_FIRST";
    return is_min_first ? LayerCoding::kMinFirst : LayerCoding::kScaled;
  }
  if (absl::StartsWith(node.op(), "QuantizedMatMul") &&
      absl::EndsWith(node.op(), "AndRequantize")) {
    return LayerCoding::kScaled;
  }
  return std::nullopt;
}

// Whether output 0 is of a float type, as far as the attributes say.
bool GivesFloat(const NodeDef& node) {
  if (node.op() == "Dequantize") {
    return TypeAttribute(node, "dtype").value_or(tensorflow::DT_FLOAT) ==
           tensorflow::DT_FLOAT;
  }
  for (const std::string name : {"Toutput", "Tout", "dtype", "T"}) {
    const std::optional<DataType> type = TypeAttribute(node, name);
    if (type.has_value()) return *type == tensorflow::DT_FLOAT;
  }
  return false;
}

std::string Tensor(const NodeDef& node, int port) {
  return absl::StrCat(node.name(), ":", port);
}

void SetCodes(const NodeDef& node, LayerCoding coding, LayerPair* pair) {
  pair->coding = coding;
  pair->tensor = Tensor(node, 0);
  pair->min_tensor = Tensor(node, 1);
  pair->max_tensor = Tensor(node, 2);
}

// The layer's input and the QuantizeV2 of it; nothing when there is none, or
// none whose codes are of the input's own values.
std::optional<LayerPair> FindQuantizedInput(const FloatLayer& layer,
                                            const GraphIndex& other) {
  const TensorName input = ParseTensorName(layer.input);
  const NodeDef* quantize = FindEitherName(
      other, absl::StrCat(layer.matmul->name(), kQuantizeInfix, input.node));
  if (quantize == nullptr || quantize->op() != "QuantizeV2" ||
      TypeAttribute(*quantize, "T") != tensorflow::DT_QUINT8) {
    return std::nullopt;
  }
  const auto mode = quantize->attr().find("mode");
  if (mode == quantize->attr().end() || mode->second.s() != "MIN_FIRST") {
    return std::nullopt;
  }
  LayerPair pair;
  pair.name = std::string(input.node);
  pair.float_tensor = layer.input;
  SetCodes(*quantize, LayerCoding::kMinFirst, &pair);
  return pair;
}

// Fills in the other graph's side; false when there is none.
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
  pair->tensor = Tensor(*last, 0);
  return true;
}

}  // namespace

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

}  // namespace requant
