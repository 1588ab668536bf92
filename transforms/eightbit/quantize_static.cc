#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/process/machine.h"
#include "base/status_macros.h"
#include "graph/graph_index.h"
#include "ranges/range_choice.h"
#include "ranges/range_table.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "transforms/eightbit/static_layers.h"
#include "transforms/layers/float_layer.h"
#include "transforms/layers/layer_report.h"
#include "transforms/layers/quantized_weights.h"
#include "transforms/transform.h"

namespace requant {
namespace {

using tensorflow::GraphDef;

absl::StatusOr<RangeTable> ReadTables(const TransformContext& context) {
  RangeTable table;
  for (const std::string& path : context.parameters.All("ranges_file")) {
    REQUANT_ASSIGN_OR_RETURN(const RangeTable part, ReadRangeTable(path));
    table.Merge(part);
  }
  return table;
}

absl::StatusOr<StaticLayerOptions> ReadOptions(
    const TransformContext& context) {
  const Parameters& parameters = context.parameters;
  StaticLayerOptions options;
  options.outputs = context.outputs;
  REQUANT_ASSIGN_OR_RETURN(options.rule,
                           WeightRuleOf(parameters.String("target")));
  REQUANT_ASSIGN_OR_RETURN(options.ranges.method,
                           ParseRangeMethod(parameters.String("method")));
  // Of a whole range: extremes of batches are not left out.
  options.ranges.percentiles = {0, 0};
  options.ranges.value_percentile = parameters.Float("value_percentile");
  REQUANT_RETURN_IF_ERROR(
      CheckValuePercentile(options.ranges.value_percentile));
  options.split_columns = parameters.Bool("split_columns");
  options.compensate = parameters.Bool("compensate");
  options.threads = ReadCoreLimits().usable();
  return options;
}

std::vector<std::string> Describe(
    const std::vector<StaticLayerReport>& layers) {
  std::vector<LayerRow> rows = {
      {"layer",
       {"size", "activation", "columns", "levels", "error", "output"}}};
  for (const StaticLayerReport& layer : layers) {
    rows.push_back(
        {layer.name,
         {absl::StrCat(layer.inputs, " x ", layer.outputs), layer.activation,
          absl::StrCat(layer.columns), absl::StrCat(layer.levels),
          layer.compensated ? absl::StrFormat("%.2f", layer.error_share)
                            : "nearest",
          layer.output_max > 0 ? absl::StrFormat("0..%.4g", layer.output_max)
                               : "float"}});
  }
  return LayerTable(rows);
}

absl::Status QuantizeStatic(TransformContext& context, GraphDef* graph) {
  REQUANT_ASSIGN_OR_RETURN(const StaticLayerOptions options,
                           ReadOptions(context));
  REQUANT_ASSIGN_OR_RETURN(const RangeTable table, ReadTables(context));
  REQUANT_ASSIGN_OR_RETURN(GraphIndex index, GraphIndex::Create(graph));
  const FloatLayerOptions find = {context.outputs,
                                  context.parameters.All("excluded_ops"),
                                  context.parameters.All("excluded_nodes")};
  REQUANT_RETURN_IF_ERROR(CheckExcluded(find, index, &context.warnings));
  const FloatLayers found = FindFloatLayers(index, find);
  if (found.layers.empty()) {
    context.warnings.push_back(absl::StrCat("there is nothing to quantize: ",
                                            WhyNoLayers(*graph, found)));
  } else {
    StaticLayers layers(&index, &table, options);
    REQUANT_RETURN_IF_ERROR(layers.Quantize(found.layers));
    index.Commit();
    context.notes.push_back(
        QuantizedCount(found, context.parameters.String("target")));
    for (std::string& line : Describe(layers.reports())) {
      context.notes.push_back(std::move(line));
    }
  }
  AppendSkipped(found, &context.notes);
  return absl::OkStatus();
}

REQUANT_REGISTER_TRANSFORM(
    QuantizeStatic,
    {"quantize_static",
     "Computes MatMul layers in eight bits, with constant ranges from a "
     "calibration.",
     "Does in one step, and better, what quantize_eightbit, the three freeze "
     "transforms and fuse_quantized_matmul_and_requantize do in five. Each "
     "block of a concatenated input has a range of its own; a few columns "
     "with wide ranges or large weights, such as numeric ones next to "
     "embeddings, have ranges of their own each and are given to the layer "
     "several times at different offsets, where that lowers the expected "
     "error. Weights are rounded so that the layer's sums over the calibration "
     "records are right, not each weight, and biases take up the mean error. "
     "Layers with Relu hand quint8 on to the next one, others give float. The "
     "table of layers says how many columns and weight levels each has, and "
     "the expected squared error due to its weights compared with rounding to "
     "the nearest.",
     {{"ranges_file", ParameterType::kString,
       "Range table of this float graph from \"requant calibrate\"; may be "
       "given several times.",
       "", true, true},
      {"target", ParameterType::kString,
       "The CPU that the model is for: any (safe everywhere), avx2, avx512, "
       "vnni, avx_vnni or amx; \"requant doctor\" says what this machine is.",
       "any"},
      {"method", ParameterType::kString,
       "How ranges are chosen: minmax, percentile (of the values), or mse "
       "(least squared error).",
       "mse"},
      {"value_percentile", ParameterType::kFloat,
       "Of method=percentile: the share of values, in percent, that a range "
       "covers at either end.",
       "99.99"},
      {"split_columns", ParameterType::kBool,
       "Whether columns may have ranges of their own and be repeated.", "true"},
      {"compensate", ParameterType::kBool,
       "Whether weights are rounded by what the calibration knows of the "
       "inputs; else to the nearest.",
       "true"},
      {"excluded_ops", ParameterType::kString,
       "Leave nodes of this type in float; may be given several times.", "",
       false, true},
      {"excluded_nodes", ParameterType::kString,
       "Leave this node in float; may be given several times.", "", false,
       true}},
     "weights frozen into constants; \"requant calibrate\" on the same graph"});

}  // namespace
}  // namespace requant
