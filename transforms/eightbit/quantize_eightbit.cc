#include "transforms/eightbit/quantize_eightbit.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "transforms/eightbit/eightbit_layers.h"
#include "transforms/layers/float_layer.h"
#include "transforms/layers/layer_report.h"
#include "transforms/layers/quantized_layer.h"
#include "transforms/layers/quantized_weights.h"
#include "transforms/transform.h"

namespace requant {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;

// What becomes of the layer's output.
std::string OutputOf(const FloatLayer& layer, const GraphIndex& index) {
  const std::string kind = layer.activation == nullptr ? "float" : "quint8";
  const NodeDef* last = index.Find(ParseTensorName(layer.output).node);
  const bool dequantized = last != nullptr && last->op() == "Dequantize";
  return dequantized ? kind + ", also as float" : kind;
}

absl::Status Run(TransformContext& context, GraphDef* graph) {
  QuantizeEightbitOptions options;
  options.outputs = context.outputs;
  options.target = context.parameters.String("target");
  options.excluded_ops = context.parameters.All("excluded_ops");
  options.excluded_nodes = context.parameters.All("excluded_nodes");
  options.per_channel = context.parameters.Bool("per_channel");
  REQUANT_ASSIGN_OR_RETURN(QuantizeEightbitReport report,
                           QuantizeEightbit(options, graph));
  context.notes = std::move(report.notes);
  context.warnings = std::move(report.warnings);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<QuantizeEightbitReport> QuantizeEightbit(
    const QuantizeEightbitOptions& options, GraphDef* graph) {
  QuantizeEightbitReport report;
  REQUANT_ASSIGN_OR_RETURN(const WeightRule rule, WeightRuleOf(options.target));
  if (options.per_channel) {
    return absl::UnimplementedError(
        absl::StrCat("per_channel is not possible: the kernels of ",
                     kQuantizedMatMulRelu, " and ", kFusedFloat,
                     " take one range for all columns of the weights"));
  }
  REQUANT_ASSIGN_OR_RETURN(GraphIndex index, GraphIndex::Create(graph));
  const FloatLayerOptions find = {options.outputs, options.excluded_ops,
                                  options.excluded_nodes};
  REQUANT_RETURN_IF_ERROR(CheckExcluded(find, index, &report.warnings));
  const FloatLayers found = FindFloatLayers(index, find);
  if (found.layers.empty()) {
    report.warnings.push_back(absl::StrCat("there is nothing to quantize: ",
                                           WhyNoLayers(*graph, found)));
    AppendSkipped(found, &report.notes);
    return report;
  }
  std::vector<LayerRow> rows = {
      {"layer", {"size", "activation", "levels", "weight error", "output"}}};
  for (const FloatLayer& layer : found.layers) {
    rows.push_back({layer.matmul->name(),
                    {absl::StrCat(layer.weights.dim_size(0), " x ",
                                  layer.weights.dim_size(1)),
                     layer.activation ? layer.activation->op() : "none"}});
  }
  EightbitLayers eightbit(&index, rule, options.outputs);
  REQUANT_RETURN_IF_ERROR(eightbit.Quantize(found.layers));
  report.warnings.insert(report.warnings.end(), eightbit.warnings().begin(),
                         eightbit.warnings().end());
  for (size_t i = 0; i < found.layers.size(); ++i) {
    const QuantizedWeights& weights = eightbit.WeightsOf(found.layers[i]);
    rows[i + 1].cells.insert(
        rows[i + 1].cells.end(),
        {absl::StrCat(weights.levels),
         absl::StrFormat("%.2f %%", 100 * weights.relative_error),
         OutputOf(found.layers[i], index)});
  }
  index.Commit();
  report.notes.push_back(QuantizedCount(found, options.target));
  for (std::string& line : LayerTable(rows)) {
    report.notes.push_back(std::move(line));
  }
  AppendSkipped(found, &report.notes);
  report.quantized = found.layers.size();
  return report;
}

REQUANT_REGISTER_TRANSFORM(
    Run,
    {"quantize_eightbit",
     "Computes MatMul layers in eight bits, with ranges found in every run.",
     "Finds MatMul with constant float weights, with or without a bias and a "
     "Relu or Relu6, and gives it quint8 inputs and symmetric qint8 weights; "
     "everything else stays float. Ranges of inputs and outputs are computed "
     "by "
     "Min, Max and RequantizationRange nodes, which the freeze transforms make "
     "constant; each names the float tensor whose range it is in the attribute "
     "_requant_range_of. Layers with Relu hand quint8 on to the next one; "
     "others give float. The graph is right for inputs with negative values on "
     "every TensorFlow from 2.14 on. The range of a layer that is nearly dead "
     "in a batch is wide enough for the biases of the next ones. How many "
     "levels the weights have follows "
     "from the target: CPUs without VNNI saturate silently where two "
     "neighbouring weights are large. Prints a table of the layers, and why "
     "the others were left.",
     {{"target", ParameterType::kString,
       "The CPU that the model is for: any (safe everywhere), avx2, avx512, "
       "vnni, avx_vnni or amx; \"requant doctor\" says what this machine is.",
       "any"},
      {"excluded_ops", ParameterType::kString,
       "Leave nodes of this type in float; may be given several times.", "",
       false, true},
      {"excluded_nodes", ParameterType::kString,
       "Leave this node in float; may be given several times.", "", false,
       true},
      {"per_channel", ParameterType::kBool,
       "One range for each column of the weights. The kernels do not have it: "
       "true is an error.",
       "false"}},
     "weights frozen into constants"});

}  // namespace requant
