#ifndef REQUANT_TESTS_KERNELS_INT8_LAYER_H_
#define REQUANT_TESTS_KERNELS_INT8_LAYER_H_

// A dense layer as int8 kernels see it, what exact arithmetic makes of it, and
// what TensorFlow's ops make of it.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/kernels/kernel_graph.h"

namespace requant {

struct Int8Layer {
  int rows = 64;
  int depth = 128;
  int columns = 48;
  // Rows by depth, 0 to 255.
  std::vector<int> codes;
  // What codes 0 and 255 stand for.
  float input_min = 0;
  float input_max = 1;
  // Depth by columns, -127 to 127.
  std::vector<int> weights;
  // What weight 127 stands for, times a factor for each column if there are
  // any.
  float weight_max = 1;
  std::vector<float> column_factors;
  std::vector<float> bias;

  double InputScale() const { return (input_max - input_min) / 255.0; }
  double WeightScale() const { return weight_max / 127.0; }
  // Returns what one unit of the integer sums stands for.
  double SumScale() const { return InputScale() * WeightScale(); }
  float ColumnMax(int column) const;
};

// Returns a layer with random codes. Weights stay within 63 so that sums are
// exact on every CPU; weights of 127 saturate on those without VNNI.
Int8Layer RandomLayer(float input_min, float input_max,
                      int largest_weight = 63);

// Returns input · weights + bias, before any activation. `offset` and `step`
// say what codes stand for if it is not what the layer's input range says.
std::vector<double> ExactOutputs(const Int8Layer& layer);
std::vector<double> ExactOutputs(const Int8Layer& layer, double offset,
                                 double step);
std::vector<double> WithoutNegatives(std::vector<double> values);

// Returns the sums of weight codes over the depth, one per column.
std::vector<int> ColumnSums(const Int8Layer& layer);

double Smallest(const std::vector<double>& values);
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
inline constexpr char kNewMatMul[] = "_QuantizedMatMul";

// In units of the integer sums; the last one also has what the codes' zero
// point adds to every output of a column, so that sums of codes become sums of
// values.
enum class BiasKind { kFloat, kQuantized, kQuantizedWithZeroPoint };
std::vector<int> QuantizedBias(const Int8Layer& layer, BiasKind kind);

// An op to run on a layer.
struct Int8MatMul {
  std::string op = kWithDequantize;
  std::string mode = "MIN_FIRST";
  BiasKind bias = BiasKind::kFloat;
  // Given to the op as the input's range, instead of the layer's.
  std::optional<std::pair<float, float>> input_range = std::nullopt;
  // The frozen output range of ops that requantize.
  double output_min = 0;
  double output_max = 1;
  tensorflow::DataType input_type = tensorflow::DT_QUINT8;
  // DT_INVALID stands for the type that the op is made for.
  tensorflow::DataType output_type = tensorflow::DT_INVALID;
  bool transpose_b = false;
  // Whether the weights that are given are those of the layer, transposed.
  bool transposed_weights = false;
  bool range_per_column = false;
  // The attributes of kNewMatMul, as graph_text.h writes them.
  std::string fused_ops = "";
  std::string output_mode = "SCALED";
};

struct LayerOutputs {
  // Empty for float outputs.
  std::vector<int> codes;
  std::vector<double> values;
  // The distance between two neighbouring values.
  double step = 0;
};

// Adds the op as "y". It reads "a", which is fed, and "min_a" and "max_a",
// which are fed to kNewMatMul and constants of the others.
void AddMatMul(const Int8Layer& layer, const Int8MatMul& matmul,
               KernelGraph* graph);
absl::StatusOr<LayerOutputs> RunMatMul(const Int8Layer& layer,
                                       const Int8MatMul& matmul,
                                       KernelGraph* graph);
// Does both of these, in a graph of its own.
absl::StatusOr<LayerOutputs> RunLayer(const Int8Layer& layer,
                                      const Int8MatMul& matmul);

}  // namespace requant

#endif  // REQUANT_TESTS_KERNELS_INT8_LAYER_H_
