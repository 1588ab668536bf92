#ifndef REQUANT_TESTS_KERNELS_INT8_LAYER_H_
#define REQUANT_TESTS_KERNELS_INT8_LAYER_H_

// A dense layer as int8 kernels see it, and its outputs by exact arithmetic and
// by TensorFlow's ops.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/testing/testing.h"

namespace requant {

// Return a tensor of quint8, qint8 or qint32 with these codes, row by row, and
// the codes of such a tensor.
Tensor CodeTensor(tensorflow::DataType type,
                  const tensorflow::TensorShape& shape,
                  const std::vector<int>& codes);
std::vector<int> Codes(const Tensor& tensor);

struct Int8Layer {
  int rows = 64;
  int depth = 128;
  int columns = 48;
  // Rows by depth, 0 to 255.
  std::vector<int> codes;
  // The values that codes 0 and 255 stand for.
  float input_min = 0;
  float input_max = 1;
  // Depth by columns, -127 to 127.
  std::vector<int> weights;
  // The value that weight 127 stands for.
  float weight_max = 0.75f;
  std::vector<float> bias;

  double InputScale() const { return (input_max - input_min) / 255.0; }
  // Returns the value that one unit of the integer sums stands for.
  double SumScale() const { return InputScale() * weight_max / 127.0; }
};

// Returns a layer with random codes. Weights stay within 63 so that sums are
// exact on every CPU; weights of 127 saturate on those without VNNI.
Int8Layer RandomLayer(float input_min, float input_max,
                      int largest_weight = 63);

// Returns input · weights + bias, before any activation.
std::vector<double> ExactOutputs(const Int8Layer& layer);
std::vector<double> WithoutNegatives(std::vector<double> values);

double Largest(const std::vector<double>& values);
// Returns the largest difference between elements.
double LargestDifference(const std::vector<double>& a,
                         const std::vector<double>& b);

inline constexpr char kWithBias[] = "QuantizedMatMulWithBias";
inline constexpr char kWithRelu[] = "QuantizedMatMulWithBiasAndRelu";
inline constexpr char kWithReluAndRequantize[] =
    "QuantizedMatMulWithBiasAndReluAndRequantize";
inline constexpr char kWithRequantize[] =
    "QuantizedMatMulWithBiasAndRequantize";
inline constexpr char kWithDequantize[] =
    "QuantizedMatMulWithBiasAndDequantize";
inline constexpr const char* kMatMuls[] = {kWithBias, kWithRelu,
                                           kWithReluAndRequantize,
                                           kWithRequantize, kWithDequantize};

// How the bias is given; quantized ones are in units of the integer sums. The
// last one includes what the codes' zero point adds to every output of a
// column, which turns sums of codes into sums of values.
enum class BiasKind { kFloat, kQuantized, kQuantizedWithZeroPoint };
std::vector<int> QuantizedBias(const Int8Layer& layer, BiasKind kind);

// An op to run on a layer.
struct Int8MatMul {
  std::string op = kWithDequantize;
  std::string mode = "MIN_FIRST";
  BiasKind bias = BiasKind::kFloat;
  // The upper end of the frozen output range of ops that requantize.
  double output_max = 1;
  // The range to give to the op instead of that of the layer's input.
  std::optional<std::pair<float, float>> input_range = std::nullopt;
  bool transpose_b = false;
};

struct LayerOutputs {
  // The codes; empty for float outputs.
  std::vector<int> codes;
  std::vector<double> values;
  // The distance between two neighbouring values.
  double step = 0;
};

// Runs the op. The input is fed, because TensorFlow has other kernels for
// constants.
absl::StatusOr<LayerOutputs> RunLayer(const Int8Layer& layer,
                                      const Int8MatMul& matmul);

}  // namespace requant

#endif  // REQUANT_TESTS_KERNELS_INT8_LAYER_H_
