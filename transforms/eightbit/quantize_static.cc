#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/process/machine.h"
#include "base/status_macros.h"
#include "graph/graph_index.h"
#include "ranges/range_choice.h"
#include "ranges/range_table.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "transforms/eightbit/eightbit_nodes.h"
#include "transforms/eightbit/portable_matmuls.h"
#include "transforms/eightbit/shared_inputs.h"
#include "transforms/eightbit/static_inputs.h"
#include "transforms/layers/compensated_rounding.h"
#include "transforms/layers/float_layer.h"
#include "transforms/layers/graph_builder.h"
#include "transforms/layers/quantized_layer.h"
#include "transforms/layers/quantized_weights.h"
#include "transforms/transform.h"

namespace requant {
namespace {

using tensorflow::DT_FLOAT;
using tensorflow::DT_QINT32;
using tensorflow::DT_QINT8;
using tensorflow::DT_QUINT8;
using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::Tensor;

struct StaticLayerOptions {
  std::vector<std::string> outputs;
  WeightRule rule = WeightRule::kPairsFitInt16;
  StaticInputOptions inputs;
  // Whether weights are rounded by the table's moments, where it has them.
  bool compensate = true;
  int threads = 1;
};

// A Relu that is hardly ever positive during calibration still needs a range.
constexpr float kLeastOutputMax = 1e-6f;

// Returns the float weights for each column of codes, in units of one code.
std::vector<float> ColumnWeights(const FloatLayer& layer,
                                 const InputCodes& input) {
  const auto weights = layer.weights.matrix<float>();
  const int64_t outputs = weights.dimension(1);
  std::vector<float> result;
  result.reserve(input.columns.size() * outputs);
  for (const CodeColumn& column : input.columns) {
    const double factor = column.step / column.copies;
    for (int64_t j = 0; j < outputs; ++j) {
      result.push_back(static_cast<float>(weights(column.source, j) * factor));
    }
  }
  return result;
}

// Returns the covariance of the codes, including the variance of rounding.
std::vector<double> CodeMoments(const ChannelMoments& moments,
                                const InputCodes& input) {
  const size_t size = input.columns.size();
  std::vector<double> result(size * size);
  for (size_t i = 0; i < size; ++i) {
    const CodeColumn& a = input.columns[i];
    for (size_t j = 0; j <= i; ++j) {
      const CodeColumn& b = input.columns[j];
      result[i * size + j] =
          moments.Covariance(a.source, b.source) / (a.step * b.step);
    }
    result[i * size + i] += 1.0 / 12;
  }
  return result;
}

// Returns the bias for the weights `codes` · step, as qint32 of that step.
absl::StatusOr<Tensor> CodedBias(const FloatLayer& layer,
                                 const InputCodes& input,
                                 const ChannelMoments* moments,
                                 const Tensor& codes, double step) {
  const int64_t outputs = layer.weights.dim_size(1);
  std::vector<double> sums(layer.bias.flat<float>().data(),
                           layer.bias.flat<float>().data() + outputs);
  // With moments, the bias makes the result exact when every column is at its
  // mean; without them, when every column is at its origin.
  if (moments != nullptr) {
    const auto weights = layer.weights.matrix<float>();
    for (int64_t k = 0; k < weights.dimension(0); ++k) {
      for (int64_t j = 0; j < outputs; ++j) {
        sums[j] += moments->mean()[k] * weights(k, j);
      }
    }
  }
  const auto matrix = codes.matrix<tensorflow::qint8>();
  for (size_t c = 0; c < input.columns.size(); ++c) {
    const CodeColumn& column = input.columns[c];
    const double mean = moments == nullptr ? 0 : moments->mean()[column.source];
    const double factor = step * (mean - column.origin) / column.step;
    for (int64_t j = 0; j < outputs; ++j)
      sums[j] -= factor * matrix(c, j).value;
  }
  Tensor bias(DT_QINT32, {outputs});
  for (int64_t j = 0; j < outputs; ++j) {
    const double value = std::rint(sums[j] / step);
    if (!(std::fabs(value) <= std::numeric_limits<int32_t>::max())) {
      return absl::OutOfRangeError(absl::StrFormat(
          "bias %d of \"%s\" is %g, which is not an int32 at the layer's step "
          "of %g; leave this layer in float by excluded_nodes",
          j, layer.matmul->name(), sums[j], step));
    }
    bias.flat<tensorflow::qint32>()(j) = static_cast<int32_t>(value);
  }
  return bias;
}

// Rewrites float layers into fused eight-bit ones whose ranges are constants:
//
//   with Relu     QuantizedMatMulWithBiasAndReluAndRequantize -> quint8
//   without       QuantizedMatMulWithBiasAndDequantize        -> float
//
// All take SCALED inputs, x = origin + step·code. The bias absorbs the columns'
// origins, and the weights absorb the columns' different steps. With u the step
// of the weights after each is multiplied by its column's step, a layer's sum
// is u·Σ code·weight_code + bias. Weights are rounded so that the sum's error
// over the calibration records is small (compensated_rounding.h), and the bias
// corrects the error's mean:
//
//   bias' = bias + Σ_k mean_k·w_k − u·Σ_c mean_code_c·weight_code_c.
//
// If more than a few layers share weights, as the steps of an unrolled loop do,
// they share their codes: their inputs are quantized alike, over what all of
// them hold (shared_inputs.h).
class StaticLayers {
 public:
  StaticLayers(GraphIndex* index, const RangeTable* ranges,
               const StaticLayerOptions& options)
      : options_(options),
        builder_(index, options.outputs),
        inputs_(&builder_, ranges, options.inputs) {}

  // Rewrites all of `layers`, which must belong to the index's graph.
  absl::Status Quantize(const std::vector<FloatLayer>& layers) {
    GraphIndex& index = builder_.index();
    std::map<std::string, std::vector<const FloatLayer*>> readers;
    KeepUnreadOutputs(layers, &builder_);
    for (const FloatLayer& layer : layers) {
      readers[layer.input].push_back(&layer);
    }
    const SharedInputs shared = FindSharedInputs(layers);
    for (const InputGroup& group : shared.groups) {
      REQUANT_RETURN_IF_ERROR(inputs_.Unite(group.tensors, group.layers));
    }
    for (const FloatLayer& layer : layers) {
      if (layer.activation == nullptr) continue;
      const InputGroup* group = shared.Find(layer.output);
      const auto found = readers.find(layer.output);
      std::vector<const FloatLayer*> read_by;
      if (found != readers.end()) read_by = found->second;
      REQUANT_RETURN_IF_ERROR(
          group != nullptr
              ? AddOutput(layer, group->readers, group->all_relu6)
              : AddOutput(layer, read_by, layer.activation->op() == "Relu6"));
    }
    for (const auto& [tensor, group] : readers) {
      REQUANT_RETURN_IF_ERROR(inputs_.CodesOf(tensor, group).status());
    }
    for (const FloatLayer& layer : layers) {
      REQUANT_ASSIGN_OR_RETURN(
          const InputCodes input,
          inputs_.CodesOf(layer.input, readers.at(layer.input)));
      REQUANT_RETURN_IF_ERROR(QuantizeLayer(layer, input));
    }
    RemoveFloatLayers(
        layers,
        [this](const FloatLayer& layer) { return codes_.at(layer.output); },
        &builder_);
    // Removes float concats that only the layers read.
    for (const auto& [tensor, unused] : readers) {
      const NodeDef* node = index.Find(ParseTensorName(tensor).node);
      if (node != nullptr && node->op() == "ConcatV2") {
        builder_.RemoveUnread(std::string(node->name()));
      }
    }
    return absl::OkStatus();
  }

  // Returns a heading and then a row on what became of each layer, in order.
  const std::vector<LayerTableRow>& rows() const { return rows_; }

 private:
  // Weight codes for the columns of an input.
  struct Weights {
    tensorflow::Tensor codes;
    // The value that a product of 1 between two codes stands for.
    double step = 0;
    int levels = 0;
    // The expected squared error due to the weights as a share of the error of
    // nearest rounding, or "nearest" if that was used.
    std::string error = "nearest";
    // What the input's moments were, or null.
    const ChannelMoments* moments = nullptr;
    std::vector<CodeColumn> columns;
    // The names of the constants that hold them, once they are in the graph,
    // and of the biases for them, by the name of the float bias.
    std::string codes_name, min_name, max_name, input_min_name, input_max_name;
    std::vector<std::string> unused_range;
    std::map<std::string, std::string> biases;
  };

  // Adds the node that will give the layer's quint8 output with its range,
  // which `ends_at_six` at most; `readers` are the layers that read it or an
  // output that is quantized alike.
  absl::Status AddOutput(const FloatLayer& layer,
                         const std::vector<const FloatLayer*>& readers,
                         bool ends_at_six) {
    REQUANT_ASSIGN_OR_RETURN(const RangeEntry* entry,
                             inputs_.EntryOf(layer.output));
    REQUANT_ASSIGN_OR_RETURN(const RangeChoice choice,
                             ChooseRangeBy(options_.inputs.ranges, *entry));
    float max = std::max(kLeastOutputMax, choice.max.value_or(0));
    if (ends_at_six) max = std::min(max, 6.0f);
    for (const FloatLayer* reader : readers) {
      const double least = LeastInputRange(LargestMagnitude(reader->bias),
                                           LargestMagnitude(reader->weights));
      max = std::max(max, static_cast<float>(least));
    }
    InputCodes codes;
    codes.tensor = builder_.AddNode(EightbitPrefix(layer) + "_requantize",
                                    kFusedRelu, {}, {});
    codes_[layer.output] = codes.tensor;
    const std::string low = builder_.AddScalar(
        EightbitPrefix(layer) + "_requant_range/frozen_min", 0);
    const std::string high = builder_.AddScalar(
        EightbitPrefix(layer) + "_requant_range/frozen_max", max);
    // The other inputs are added when the layer is quantized.
    builder_.index().SetInputs(builder_.index().Find(codes.tensor),
                               {low, high});
    const int64_t outputs = layer.weights.dim_size(1);
    for (int64_t j = 0; j < outputs; ++j) {
      codes.columns.push_back({static_cast<int>(j), 0, max / 255.0, 1});
    }
    codes.width = outputs;
    inputs_.AddKnownCodes(layer.output, std::move(codes));
    return absl::OkStatus();
  }

  absl::Status QuantizeLayer(const FloatLayer& layer, const InputCodes& input) {
    GraphIndex& index = builder_.index();
    REQUANT_ASSIGN_OR_RETURN(Weights * shared, WeightsFor(layer, input));
    Weights& weights = *shared;
    REQUANT_ASSIGN_OR_RETURN(std::vector<std::string> inputs,
                             MatMulInputs(layer, input, &weights));
    const std::string activation =
        layer.activation ? layer.activation->op() : "none";
    const std::string device = layer.matmul->device();
    NodeDef* node = layer.last();
    std::string output = "float";
    if (layer.activation != nullptr) {
      node = index.Find(codes_.at(layer.output));
      // This is the range that AddOutput gave it.
      output = absl::StrFormat("0..%.4g",
                               ConstantInput(index, *node, 1).value_or(0));
      inputs.insert(inputs.end(), node->input().begin(), node->input().end());
      AppendControlInputs({layer.matmul, layer.bias_add, layer.activation},
                          &inputs);
    } else if (weights.unused_range.empty()) {
      AppendUnusedRange(layer, &builder_, &inputs);
      weights.unused_range = {inputs[kInputs], inputs[kInputs + 1]};
    } else {
      inputs.insert(inputs.end(), weights.unused_range.begin(),
                    weights.unused_range.end());
      AppendControlInputs({layer.matmul, layer.bias_add}, &inputs);
    }
    rows_.push_back({layer.matmul->name(),
                     {absl::StrCat(layer.weights.dim_size(0), " x ",
                                   layer.weights.dim_size(1)),
                      activation, absl::StrCat(input.columns.size()),
                      absl::StrCat(weights.levels), weights.error, output}});
    builder_.ReplaceInputs(node, std::move(inputs));
    BecomeFused(layer.activation ? kFusedRelu : kFusedFloat, DT_QINT32,
                layer.activation ? DT_QUINT8 : DT_FLOAT, "SCALED", device,
                node);
    return absl::OkStatus();
  }

  // Returns the codes of the layer's weights, those of an earlier layer if they
  // are the same.
  absl::StatusOr<Weights*> WeightsFor(const FloatLayer& layer,
                                      const InputCodes& input) {
    std::vector<std::unique_ptr<Weights>>& known =
        weights_[{layer.weights_node->name(), layer.transposed}];
    const ChannelMoments* moments = MomentsFor(layer);
    for (const auto& weights : known) {
      if (weights->moments == moments && weights->columns == input.columns) {
        return weights.get();
      }
    }
    REQUANT_ASSIGN_OR_RETURN(Weights weights, Round(layer, input, moments));
    weights.moments = moments;
    weights.columns = input.columns;
    known.push_back(std::make_unique<Weights>(std::move(weights)));
    return known.back().get();
  }

  // Returns the moments of the layer's input by which to round, or null.
  const ChannelMoments* MomentsFor(const FloatLayer& layer) const {
    const auto entry = inputs_.EntryOf(layer.input);
    if (!options_.compensate || !entry.ok() || !(*entry)->moments.has_value() ||
        (*entry)->moments->channels() != layer.weights.dim_size(0)) {
      return nullptr;
    }
    return &*(*entry)->moments;
  }

  absl::StatusOr<Weights> Round(const FloatLayer& layer,
                                const InputCodes& input,
                                const ChannelMoments* moments) const {
    const int64_t columns = input.columns.size();
    const int64_t outputs = layer.weights.dim_size(1);
    const std::vector<float> weights = ColumnWeights(layer, input);
    Weights result;
    if (moments != nullptr) {
      RoundingOptions rounding;
      rounding.pair_limit = options_.rule == WeightRule::kAnyCode
                                ? PairLimit::kNone
                                : PairLimit::kNeighbours;
      rounding.threads = options_.threads;
      absl::StatusOr<CompensatedRounding> rounding_result = RoundCompensated(
          weights, columns, outputs, CodeMoments(*moments, input), rounding);
      if (!rounding_result.ok()) {
        return absl::Status(rounding_result.status().code(),
                            absl::StrCat("\"", layer.matmul->name(), "\": ",
                                         rounding_result.status().message()));
      }
      const CompensatedRounding& rounded = *rounding_result;
      result.step = rounded.scale;
      result.codes = Tensor(DT_QINT8, {columns, outputs});
      auto* codes = result.codes.flat<tensorflow::qint8>().data();
      for (size_t i = 0; i < rounded.codes.size(); ++i) {
        codes[i] = tensorflow::qint8(rounded.codes[i]);
      }
      result.levels = rounded.levels;
      result.error = absl::StrFormat(
          "%.2f",
          rounded.nearest_loss > 0 ? rounded.loss / rounded.nearest_loss : 1.0);
    } else {
      Tensor matrix(DT_FLOAT, {columns, outputs});
      absl::c_copy(weights, matrix.flat<float>().data());
      const QuantizedWeights nearest = QuantizeWeights(matrix, options_.rule);
      result.codes = nearest.codes;
      result.step = nearest.range / 127.0;
      result.levels = nearest.levels;
    }
    return result;
  }

  // Returns the name of the layer's bias in the graph, which is added there
  // unless another layer has the same.
  absl::StatusOr<std::string> BiasFor(const FloatLayer& layer,
                                      const InputCodes& input,
                                      Weights* weights) {
    std::string& name =
        weights->biases[layer.bias_node ? layer.bias_node->name() : ""];
    if (!name.empty()) return name;
    REQUANT_ASSIGN_OR_RETURN(const Tensor bias,
                             CodedBias(layer, input, weights->moments,
                                       weights->codes, weights->step));
    name = builder_.AddConst(EightbitPrefix(layer) + "_bias_qint32", bias);
    return name;
  }

  absl::StatusOr<std::vector<std::string>> MatMulInputs(const FloatLayer& layer,
                                                        const InputCodes& input,
                                                        Weights* weights) {
    const std::string prefix = EightbitPrefix(layer);
    const std::string& name = layer.weights_node->name();
    // The op multiplies the two steps; only their product matters.
    const double input_step =
        absl::c_max_element(input.columns, [](const CodeColumn& a,
                                              const CodeColumn& b) {
          return a.step < b.step;
        })->step;
    const float range = static_cast<float>(127 * weights->step / input_step);
    const bool is_new = weights->codes_name.empty();
    if (is_new) {
      weights->codes_name =
          builder_.AddConst(name + "_qint8_const", weights->codes);
    }
    std::vector<std::string> inputs(kInputs);
    inputs[kA] = input.tensor;
    inputs[kWeights] = weights->codes_name;
    REQUANT_ASSIGN_OR_RETURN(inputs[kBias], BiasFor(layer, input, weights));
    if (is_new) {
      weights->input_min_name = builder_.AddScalar(prefix + "_input_min", 0);
      weights->input_max_name = builder_.AddScalar(
          prefix + "_input_max", static_cast<float>(255 * input_step));
      weights->min_name = builder_.AddScalar(name + "_min", -range);
      weights->max_name = builder_.AddScalar(name + "_max", range);
    }
    inputs[kMinA] = weights->input_min_name;
    inputs[kMaxA] = weights->input_max_name;
    inputs[kMinW] = weights->min_name;
    inputs[kMaxW] = weights->max_name;
    return inputs;
  }

  const StaticLayerOptions options_;
  GraphBuilder builder_;
  StaticInputs inputs_;
  // The nodes that give the quint8 outputs, by the float tensors they replace.
  std::map<std::string, std::string> codes_;
  // The codes of weights, by the node and whether they are transposed.
  std::map<std::pair<std::string, bool>, std::vector<std::unique_ptr<Weights>>>
      weights_;
  std::vector<LayerTableRow> rows_ = {
      {"layer",
       {"size", "activation", "columns", "levels", "error", "output"}}};
};

absl::StatusOr<bool> IsPortable(const Parameters& parameters) {
  const std::string ops = parameters.String("ops");
  if (ops == "portable" || ops == "legacy") return ops == "portable";
  return absl::InvalidArgumentError(
      absl::StrCat("ops is portable or legacy, not \"", ops, "\""));
}

absl::StatusOr<StaticLayerOptions> ReadOptions(
    const TransformContext& context) {
  const Parameters& parameters = context.parameters;
  StaticLayerOptions options;
  options.outputs = context.outputs;
  REQUANT_ASSIGN_OR_RETURN(options.rule,
                           WeightRuleOf(parameters.String("target")));
  REQUANT_ASSIGN_OR_RETURN(
      options.inputs.ranges,
      ReadRangeChoice(parameters.String("method"),
                      parameters.Float("value_percentile")));
  options.inputs.split_columns = parameters.Bool("split_columns");
  REQUANT_ASSIGN_OR_RETURN(options.inputs.zero_is_code, IsPortable(parameters));
  // 96 is between the levels that are always safe and those that usually are.
  if (options.rule == WeightRule::kPairsFitInt16) {
    options.inputs.weight_levels = 96;
  }
  options.compensate = parameters.Bool("compensate");
  options.threads = ReadCoreLimits().usable();
  return options;
}

absl::Status QuantizeStatic(TransformContext& context, GraphDef* graph) {
  REQUANT_ASSIGN_OR_RETURN(const StaticLayerOptions options,
                           ReadOptions(context));
  REQUANT_ASSIGN_OR_RETURN(
      const RangeTable table,
      ReadRangeTables(context.parameters.All("ranges_file")));
  REQUANT_ASSIGN_OR_RETURN(GraphIndex index, GraphIndex::Create(graph));
  REQUANT_ASSIGN_OR_RETURN(const FloatLayers found,
                           FindLayersToQuantize(index, &context));
  StaticLayers layers(&index, &table, options);
  REQUANT_RETURN_IF_ERROR(layers.Quantize(found.layers));
  if (options.inputs.zero_is_code) {
    REQUANT_RETURN_IF_ERROR(MakeMatMulsPortable(&index).status());
  }
  index.Commit();
  NoteLayers(found, layers.rows(), &context);
  return absl::OkStatus();
}

REQUANT_REGISTER_TRANSFORM(
    QuantizeStatic,
    {"quantize_static",
     "Computes MatMul layers in eight bits, with constant ranges from a "
     "calibration.",
     "Does in one step, and better, what quantize_eightbit, the three freeze "
     "transforms and fuse_quantized_matmul_and_requantize do in five. Each "
     "block of a concatenated input has a range of its own; a few columns with "
     "wide ranges or large weights, such as numeric ones next to embeddings, "
     "have ranges of their own each and are given to the layer several times "
     "at different offsets, where that lowers the expected error. Weights are "
     "rounded so that the layer's sums over the calibration records are right, "
     "not each weight, and biases take up the mean error. Layers with Relu "
     "hand quint8 on to the next one, others give float. The table of layers "
     "says how many columns and weight levels each has, and the expected "
     "squared error due to its weights compared with rounding to the nearest.",
     {{"ranges_file", ParameterType::kString,
       "Range table of this float graph from \"requant calibrate\"; may be "
       "given several times.",
       "", true, true},
      TargetParameter(),
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
      {"ops", ParameterType::kString,
       "legacy: the ops of TensorFlow's own quantization, whose kernels exist "
       "only while oneDNN is turned on; portable: _QuantizedMatMul, which "
       "every process of TensorFlow 2.17 or later has, and ranges for which "
       "its two kernels of QuantizeV2 give the same codes.",
       "legacy"},
      ExcludedParameter("excluded_ops", "nodes of this type"),
      ExcludedParameter("excluded_nodes", "this node")},
     "weights frozen into constants; \"requant calibrate\" on the same graph"});

}  // namespace
}  // namespace requant
