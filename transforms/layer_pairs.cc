#include "transforms/layer_pairs.h"

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
#include "transforms/float_layer.h"

namespace requant {
namespace {

using tensorflow::DataType;
using tensorflow::NodeDef;

constexpr std::string_view kImportPrefix = "import/";
constexpr std::string_view kRequantizeSuffix = "_eightbit_requantize";

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

// Fills in the other graph's side; false when there is none.
bool FindCounterpart(const FloatLayer& layer, const GraphIndex& other,
                     LayerPair* pair) {
  const NodeDef* codes = FindEitherName(
      other, absl::StrCat(layer.matmul->name(), kRequantizeSuffix));
  const std::optional<LayerCoding> coding =
      codes == nullptr ? std::nullopt : CodingOf(*codes);
  if (coding.has_value()) {
    pair->coding = *coding;
    pair->tensor = Tensor(*codes, 0);
    pair->min_tensor = Tensor(*codes, 1);
    pair->max_tensor = Tensor(*codes, 2);
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
