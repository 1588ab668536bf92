#include "transforms/layers/quantized_bias.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "transforms/layers/quantized_weights.h"

namespace requant {
namespace {

using tensorflow::Tensor;

// NaN gives 0.
int32_t ClampToInt32(double value) {
  if (std::isnan(value)) return 0;
  return static_cast<int32_t>(
      std::clamp<double>(value, std::numeric_limits<int32_t>::min(),
                         std::numeric_limits<int32_t>::max()));
}

}  // namespace

void MakeWeightRangeSymmetric(QuantizedLayer* layer) {
  if (layer->bias.dtype() == tensorflow::DT_QINT32) return;
  const float ratio = -layer->weight_min / layer->weight_max;
  if (layer->weight_max > 0 && std::fabs(ratio - 128.0f / 127.0f) < 1e-5f) {
    layer->weight_min = -layer->weight_max;
  }
}

absl::StatusOr<Tensor> QuantizedBias(const QuantizedLayer& layer) {
  const double weight_range =
      std::max(std::fabs(layer.weight_min), std::fabs(layer.weight_max));
  const double input_range =
      layer.scaled
          ? std::max(std::fabs(layer.input.min), std::fabs(layer.input.max))
          : static_cast<double>(layer.input.max) - layer.input.min;
  const double scale = 255.0 * 127.0 / (input_range * weight_range);
  const double zero_point =
      layer.scaled ? 0 : 255.0 * layer.input.min / input_range;
  const std::vector<int64_t> sums = ColumnSums(layer.weights);
  Tensor result(tensorflow::DT_QINT32, layer.bias.shape());
  const auto bias = layer.bias.flat<float>();
  auto quantized = result.flat<tensorflow::qint32>();
  for (int64_t j = 0; j < bias.size(); ++j) {
    const double value = std::rint(bias(j) * scale + sums[j] * zero_point);
    if (!(std::fabs(value) <= std::numeric_limits<int32_t>::max())) {
      return absl::OutOfRangeError(absl::StrFormat(
          "bias %d of \"%s\" is %g, which is not an int32 at the layer's scale "
          "(input [%g, %g], weights [%g, %g]); leave this layer in float",
          j, layer.matmul->name(), bias(j), layer.input.min, layer.input.max,
          layer.weight_min, layer.weight_max));
    }
    quantized(j) = static_cast<int32_t>(value);
  }
  return result;
}

Tensor CompatBias(const QuantizedLayer& layer) {
  const float weight_range =
      std::max(std::fabs(layer.weight_min), std::fabs(layer.weight_max));
  const float input_range =
      std::max(std::fabs(layer.input.min), std::fabs(layer.input.max));
  const float scale = 255.0f * 127.0f / (input_range * weight_range);
  const float zero_point =
      layer.source == LayerSource::kQuantize
          ? 255.0f * layer.input.min / (layer.input.max - layer.input.min)
          : 0.0f;
  const std::vector<int64_t> sums = ColumnSums(layer.weights);
  Tensor result(tensorflow::DT_QINT32, layer.bias.shape());
  const auto bias = layer.bias.flat<float>();
  auto quantized = result.flat<tensorflow::qint32>();
  for (int64_t j = 0; j < bias.size(); ++j) {
    quantized(j) = ClampToInt32(
        std::trunc(bias(j) * scale + zero_point * static_cast<float>(sums[j])));
  }
  return result;
}

}  // namespace requant
