#ifndef REQUANT_TESTS_KERNELS_LEGACY_MATMUL_H_
#define REQUANT_TESTS_KERNELS_LEGACY_MATMUL_H_

// The ops QuantizedMatMulWithBias…, run on a layer whose codes are given.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/types.pb.h"
#include "tests/kernels/int8_layer.h"

namespace requant {

inline constexpr char kWithBias[] = "QuantizedMatMulWithBias";
inline constexpr char kWithRelu[] = "QuantizedMatMulWithBiasAndRelu";
inline constexpr char kWithReluAndRequantize[] =
    "QuantizedMatMulWithBiasAndReluAndRequantize";
inline constexpr char kWithRequantize[] =
    "QuantizedMatMulWithBiasAndRequantize";
inline constexpr char kWithDequantize[] =
    "QuantizedMatMulWithBiasAndDequantize";

struct LegacyMatMul {
  std::string op = kWithDequantize;
  std::string mode = "MIN_FIRST";
  // Empty: the layer's float bias.
  std::vector<int> quantized_bias = {};
  // Given to the op as the input's range, instead of the layer's.
  bool own_range = false;
  float min_a = 0;
  float max_a = 0;
  // The frozen output range of ops that requantize.
  double output_min = 0;
  double output_max = 1;
  // What the ops are not made for.
  tensorflow::DataType input_type = tensorflow::DT_QUINT8;
  // DT_INVALID: what the op is made for.
  tensorflow::DataType output_type = tensorflow::DT_INVALID;
  bool transpose_b = false;
  bool range_per_column = false;
};

struct LayerOutputs {
  // Empty for float outputs.
  std::vector<int> codes;
  std::vector<double> values;
  // The distance between two neighbouring values.
  double step = 0;
};

absl::StatusOr<LayerOutputs> RunLayer(const Int8Layer& layer,
                                      const LegacyMatMul& matmul);

}  // namespace requant

#endif  // REQUANT_TESTS_KERNELS_LEGACY_MATMUL_H_
