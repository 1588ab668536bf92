#include "transforms/eightbit/static_layers.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "graph/graph_index.h"
#include "ranges/range_choice.h"
#include "ranges/range_table.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "transforms/eightbit/eightbit_nodes.h"
#include "transforms/layers/compensated_rounding.h"
#include "transforms/layers/quantized_layer.h"

namespace requant {
namespace {

using tensorflow::DT_FLOAT;
using tensorflow::DT_QINT32;
using tensorflow::DT_QINT8;
using tensorflow::DT_QUINT8;
using tensorflow::NodeDef;
using tensorflow::Tensor;

// A Relu that is hardly ever positive in calibration still needs a range.
constexpr float kLeastOutputMax = 1e-6f;

// The float weights for each column of codes, in units of one code.
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

// The covariance of the codes, with what rounding adds.
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

// The bias for weights that are `codes` · step, as qint32 of that step.
absl::StatusOr<Tensor> CodedBias(const FloatLayer& layer,
                                 const InputCodes& input,
                                 const ChannelMoments* moments,
                                 const Tensor& codes, double step) {
  const int64_t outputs = layer.weights.dim_size(1);
  std::vector<double> sums(layer.bias.flat<float>().data(),
                           layer.bias.flat<float>().data() + outputs);
  // With the means, what the columns give at their means is made right.
  // Without, what they give at the origins.
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

void BecomeFused(const std::string& op, tensorflow::DataType output,
                 const FloatLayer& layer, NodeDef* node) {
  node->set_op(op);
  node->set_device(layer.matmul->device());
  node->clear_attr();
  SetTypes({{"T1", DT_QUINT8},
            {"T2", DT_QINT8},
            {"Tbias", DT_QINT32},
            {"Toutput", output}},
           node);
  (*node->mutable_attr())["input_quant_mode"].set_s("SCALED");
}

StaticInputOptions InputOptions(const StaticLayerOptions& options) {
  StaticInputOptions result;
  result.ranges = options.ranges;
  result.split_columns = options.split_columns;
  // Between those that are always safe and those that mostly are.
  if (options.rule == WeightRule::kPairsFitInt16) result.weight_levels = 96;
  return result;
}

}  // namespace

StaticLayers::StaticLayers(GraphIndex* index, const RangeTable* ranges,
                           const StaticLayerOptions& options)
    : options_(options),
      builder_(index, options.outputs),
      inputs_(&builder_, ranges, InputOptions(options)) {}

absl::Status StaticLayers::AddOutput(
    const FloatLayer& layer, const std::vector<const FloatLayer*>& readers) {
  REQUANT_ASSIGN_OR_RETURN(const RangeEntry* entry,
                           inputs_.EntryOf(layer.output));
  REQUANT_ASSIGN_OR_RETURN(const RangeChoice choice,
                           ChooseRangeBy(options_.ranges, *entry));
  float max = std::max(kLeastOutputMax, choice.max.value_or(0));
  if (layer.activation->op() == "Relu6") max = std::min(max, 6.0f);
  for (const FloatLayer* reader : readers) {
    const double least = LeastInputRange(LargestMagnitude(reader->bias),
                                         LargestMagnitude(reader->weights));
    max = std::max(max, static_cast<float>(least));
  }
  InputCodes codes;
  REQUANT_ASSIGN_OR_RETURN(
      codes.tensor, builder_.Add(MakeNode(EightbitPrefix(layer) + "_requantize",
                                          kFusedRelu, {}, {})));
  codes_[layer.output] = codes.tensor;
  REQUANT_ASSIGN_OR_RETURN(
      const std::string low,
      builder_.AddScalar(EightbitPrefix(layer) + "_requant_range/frozen_min",
                         0));
  REQUANT_ASSIGN_OR_RETURN(
      const std::string high,
      builder_.AddScalar(EightbitPrefix(layer) + "_requant_range/frozen_max",
                         max));
  // Its other inputs come when the layer is quantized.
  builder_.index().SetInputs(builder_.index().Find(codes.tensor), {low, high});
  const int64_t outputs = layer.weights.dim_size(1);
  for (int64_t j = 0; j < outputs; ++j) {
    codes.columns.push_back({static_cast<int>(j), 0, max / 255.0, 1});
  }
  codes.width = outputs;
  inputs_.Know(layer.output, std::move(codes));
  return absl::OkStatus();
}

absl::StatusOr<StaticLayers::Weights> StaticLayers::Round(
    const FloatLayer& layer, const InputCodes& input,
    StaticLayerReport* report) const {
  const int64_t columns = input.columns.size();
  const int64_t outputs = layer.weights.dim_size(1);
  const std::vector<float> weights = ColumnWeights(layer, input);
  const auto entry = inputs_.EntryOf(layer.input);
  const ChannelMoments* moments = nullptr;
  if (options_.compensate && entry.ok() && (*entry)->moments.has_value() &&
      (*entry)->moments->channels() == layer.weights.dim_size(0)) {
    moments = &*(*entry)->moments;
  }
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
    report->levels = rounded.levels;
    report->compensated = true;
    if (rounded.nearest_loss > 0) {
      report->error_share = rounded.loss / rounded.nearest_loss;
    }
  } else {
    Tensor matrix(DT_FLOAT, {columns, outputs});
    absl::c_copy(weights, matrix.flat<float>().data());
    const QuantizedWeights nearest = QuantizeWeights(matrix, options_.rule);
    result.codes = nearest.codes;
    result.step = nearest.range / 127.0;
    report->levels = nearest.levels;
  }
  REQUANT_ASSIGN_OR_RETURN(
      result.bias, CodedBias(layer, input, moments, result.codes, result.step));
  return result;
}

absl::StatusOr<std::vector<std::string>> StaticLayers::MatMulInputs(
    const FloatLayer& layer, const InputCodes& input, const Weights& weights) {
  const std::string prefix = EightbitPrefix(layer);
  const std::string& name = layer.weights_node->name();
  // The op multiplies the two steps; only their product matters.
  const double input_step =
      absl::c_max_element(input.columns, [](const CodeColumn& a,
                                            const CodeColumn& b) {
        return a.step < b.step;
      })->step;
  const float range = static_cast<float>(127 * weights.step / input_step);
  std::vector<std::string> inputs(kInputs);
  inputs[kA] = input.tensor;
  REQUANT_ASSIGN_OR_RETURN(
      inputs[kWeights],
      builder_.AddConst(name + "_qint8_const", weights.codes));
  REQUANT_ASSIGN_OR_RETURN(
      inputs[kBias], builder_.AddConst(prefix + "_bias_qint32", weights.bias));
  REQUANT_ASSIGN_OR_RETURN(inputs[kMinA],
                           builder_.AddScalar(prefix + "_input_min", 0));
  REQUANT_ASSIGN_OR_RETURN(
      inputs[kMaxA], builder_.AddScalar(prefix + "_input_max",
                                        static_cast<float>(255 * input_step)));
  REQUANT_ASSIGN_OR_RETURN(inputs[kMinW],
                           builder_.AddScalar(name + "_min", -range));
  REQUANT_ASSIGN_OR_RETURN(inputs[kMaxW],
                           builder_.AddScalar(name + "_max", range));
  return inputs;
}

absl::Status StaticLayers::QuantizeLayer(const FloatLayer& layer,
                                         const InputCodes& input) {
  GraphIndex& index = builder_.index();
  StaticLayerReport report;
  report.name = layer.matmul->name();
  report.inputs = layer.weights.dim_size(0);
  report.columns = input.columns.size();
  report.outputs = layer.weights.dim_size(1);
  report.activation = layer.activation ? layer.activation->op() : "none";
  REQUANT_ASSIGN_OR_RETURN(const Weights weights, Round(layer, input, &report));
  REQUANT_ASSIGN_OR_RETURN(std::vector<std::string> inputs,
                           MatMulInputs(layer, input, weights));
  NodeDef* node;
  if (layer.activation != nullptr) {
    node = index.Find(codes_.at(layer.output));
    // The range that AddOutput gave it.
    report.output_max = ConstantInput(index, *node, 1).value_or(0);
    inputs.insert(inputs.end(), node->input().begin(), node->input().end());
    BecomeFused(kFusedRelu, DT_QUINT8, layer, node);
  } else {
    node = layer.last();
    // The op has inputs for a range of its output, which it does not use.
    for (const auto& [word, value] :
         {std::pair{"_output_min", 0.0f}, std::pair{"_output_max", 1.0f}}) {
      REQUANT_ASSIGN_OR_RETURN(
          inputs.emplace_back(),
          builder_.AddScalar(EightbitPrefix(layer) + word, value));
    }
  }
  for (std::string& control : LayerControlInputs(layer)) {
    inputs.push_back(std::move(control));
  }
  if (layer.activation == nullptr) {
    BecomeFused(kFusedFloat, DT_FLOAT, layer, node);
  }
  REQUANT_RETURN_IF_ERROR(builder_.ReplaceInputs(node, std::move(inputs)));
  reports_.push_back(std::move(report));
  return absl::OkStatus();
}

absl::Status StaticLayers::Quantize(const std::vector<FloatLayer>& layers) {
  GraphIndex& index = builder_.index();
  std::map<std::string, std::vector<const FloatLayer*>> readers;
  KeepUnreadOutputs(layers, &builder_);
  for (const FloatLayer& layer : layers) {
    readers[layer.input].push_back(&layer);
  }
  for (const FloatLayer& layer : layers) {
    if (layer.activation == nullptr) continue;
    const auto found = readers.find(layer.output);
    REQUANT_RETURN_IF_ERROR(AddOutput(
        layer, found == readers.end() ? std::vector<const FloatLayer*>()
                                      : found->second));
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
  REQUANT_RETURN_IF_ERROR(RemoveFloatLayers(
      layers,
      [this](const FloatLayer& layer) { return codes_.at(layer.output); },
      &builder_));
  // Concats of floats that only the layers read.
  for (const auto& [tensor, unused] : readers) {
    const NodeDef* node = index.Find(ParseTensorName(tensor).node);
    if (node != nullptr && node->op() == "ConcatV2") {
      REQUANT_RETURN_IF_ERROR(builder_.RemoveUnread(std::string(node->name())));
    }
  }
  return absl::OkStatus();
}

}  // namespace requant
