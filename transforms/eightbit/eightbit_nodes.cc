#include "transforms/eightbit/eightbit_nodes.h"

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "tensorflow/core/framework/attr_value.pb.h"

namespace requant {
namespace {

using tensorflow::NodeDef;

// A bias may take up this much of a qint32; the rest is for the products.
constexpr double kLargestBiasCode = 1 << 29;

void BecomeDequantize(const std::string& codes, GraphIndex* index,
                      NodeDef* node) {
  index->SetInputs(
      node, {codes, FormatTensorName(codes, 1), FormatTensorName(codes, 2)});
  BecomeOp("Dequantize",
           {{"T", tensorflow::DT_QUINT8}, {"dtype", tensorflow::DT_FLOAT}},
           node);
  (*node->mutable_attr())["mode"].set_s("MIN_FIRST");
}

}  // namespace

ParameterSpec TargetParameter() {
  return {"target", ParameterType::kString,
          "The CPU that the model is for: any (safe everywhere), avx2, avx512, "
          "vnni, avx_vnni or amx; \"requant doctor\" says what this machine "
          "is.",
          "any"};
}

ParameterSpec ExcludedParameter(const std::string& name,
                                std::string_view what) {
  return {
      name,
      ParameterType::kString,
      absl::StrCat("Leave ", what, " in float; may be given several times."),
      "",
      /*required=*/false,
      /*repeated=*/true};
}

std::string EightbitPrefix(const FloatLayer& layer) {
  return absl::StrCat(layer.matmul->name(), "_eightbit");
}

std::string TensorAsPartOfName(const std::string& tensor) {
  const TensorName name = ParseTensorName(tensor);
  return absl::StrReplaceAll(FormatTensorName(name.node, name.port),
                             {{":", "__port__"}});
}

absl::StatusOr<FloatLayers> FindLayersToQuantize(const GraphIndex& index,
                                                 TransformContext* context) {
  const FloatLayerOptions options = {context->outputs,
                                     context->parameters.All("excluded_ops"),
                                     context->parameters.All("excluded_nodes")};
  REQUANT_RETURN_IF_ERROR(CheckExcluded(options, index, &context->warnings));
  FloatLayers found = FindFloatLayers(index, options);
  if (found.layers.empty()) {
    context->warnings.push_back(absl::StrCat(
        "there is nothing to quantize: ", WhyNoLayers(index.graph(), found)));
  }
  return found;
}

void NoteLayers(const FloatLayers& found,
                const std::vector<LayerTableRow>& rows,
                TransformContext* context) {
  std::vector<std::string>& notes = context->notes;
  if (!found.layers.empty()) {
    notes.push_back(absl::StrCat("quantizes ", found.layers.size(), " of ",
                                 found.layers.size() + found.skipped.size(),
                                 " MatMuls for the target \"",
                                 context->parameters.String("target"), "\""));
    const std::vector<std::string> table = LayerTable(rows);
    notes.insert(notes.end(), table.begin(), table.end());
  }
  for (const SkippedMatMul& skipped : found.skipped) {
    notes.push_back(absl::StrCat("  leaves \"", skipped.name,
                                 "\" in float: ", skipped.reason));
  }
}

void AppendControlInputs(const std::vector<const NodeDef*>& nodes,
                         std::vector<std::string>* inputs) {
  for (const NodeDef* node : nodes) {
    if (node == nullptr) continue;
    for (const std::string& input : node->input()) {
      if (absl::StartsWith(input, "^") &&
          !absl::c_linear_search(*inputs, input)) {
        inputs->push_back(input);
      }
    }
  }
}

void AppendUnusedRange(const FloatLayer& layer, GraphBuilder* builder,
                       std::vector<std::string>* inputs) {
  const std::string prefix = EightbitPrefix(layer);
  inputs->push_back(builder->AddScalar(prefix + "_output_min", 0));
  inputs->push_back(builder->AddScalar(prefix + "_output_max", 1));
  AppendControlInputs({layer.matmul, layer.bias_add}, inputs);
}

void BecomeFused(const std::string& op, tensorflow::DataType bias,
                 tensorflow::DataType output, const std::string& input_mode,
                 const std::string& device, NodeDef* node) {
  node->set_op(op);
  node->set_device(device);
  node->clear_attr();
  SetTypes({{"T1", tensorflow::DT_QUINT8},
            {"T2", tensorflow::DT_QINT8},
            {"Tbias", bias},
            {"Toutput", output}},
           node);
  if (input_mode.empty()) return;
  (*node->mutable_attr())["input_quant_mode"].set_s(input_mode);
}

double LeastInputRange(double largest_bias, double weight_range) {
  return largest_bias * 255 * 127 / (kLargestBiasCode * weight_range);
}

void KeepUnreadOutputs(const std::vector<FloatLayer>& layers,
                       GraphBuilder* builder) {
  for (const FloatLayer& layer : layers) {
    const std::string& last = layer.last()->name();
    if (!builder->index().HasUses(last)) builder->AddOutput(last);
  }
}

void RemoveFloatLayers(
    const std::vector<FloatLayer>& layers,
    const std::function<std::string(const FloatLayer&)>& codes_of,
    GraphBuilder* builder) {
  GraphIndex& index = builder->index();
  for (const FloatLayer& layer : layers) {
    if (layer.activation != nullptr) index.SetInputs(layer.activation, {});
    // Goes from last to first, so that each node's reader is already gone.
    for (const NodeDef* node : {layer.bias_add, layer.matmul}) {
      if (node == nullptr || node == layer.last()) continue;
      builder->RemoveUnread(std::string(node->name()));
    }
  }
  // Now the layers' last nodes have only float readers left.
  for (const FloatLayer& layer : layers) {
    if (layer.activation == nullptr) continue;
    const std::string name = layer.activation->name();
    if (index.HasUses(name) || builder->IsOutput(name)) {
      BecomeDequantize(codes_of(layer), &index, layer.activation);
    } else {
      index.Remove(name).IgnoreError();
    }
  }
}

}  // namespace requant
