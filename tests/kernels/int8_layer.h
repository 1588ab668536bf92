#ifndef REQUANT_TESTS_KERNELS_INT8_LAYER_H_
#define REQUANT_TESTS_KERNELS_INT8_LAYER_H_

// A dense layer as int8 kernels see it, and what exact arithmetic makes of it.

#include <vector>

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
  // What weight 127 stands for.
  float weight_max = 1;
  std::vector<float> bias;

  double InputScale() const { return (input_max - input_min) / 255.0; }
  double WeightScale() const { return weight_max / 127.0; }
  // What one unit of the integer sums stands for.
  double SumScale() const { return InputScale() * WeightScale(); }
};

// With random codes. Weights stay within 63 so that sums are exact on every
// CPU; weights of 127 saturate on those without VNNI.
Int8Layer RandomLayer(float input_min, float input_max,
                      int largest_weight = 63);

// input · weights + bias, before any activation.
std::vector<double> ExactOutputs(const Int8Layer& layer);

// The sums of weight codes over the depth, one per column.
std::vector<int> ColumnSums(const Int8Layer& layer);

// The bias in units of the integer sums. The second one also has what the
// codes' zero point adds to every output of a column, so that sums of codes
// become sums of values.
std::vector<int> QuantizedBias(const Int8Layer& layer);
std::vector<int> QuantizedBiasWithZeroPoint(const Int8Layer& layer);

double Largest(const std::vector<double>& values);
// The largest difference between elements.
double LargestDifference(const std::vector<double>& a,
                         const std::vector<double>& b);

}  // namespace requant

#endif  // REQUANT_TESTS_KERNELS_INT8_LAYER_H_
