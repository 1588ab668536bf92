#include "tests/kernels/int8_layer.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace requant {

Int8Layer RandomLayer(float input_min, float input_max, int largest_weight) {
  Int8Layer layer;
  layer.input_min = input_min;
  layer.input_max = input_max;
  layer.weight_max = 0.75f;
  std::mt19937 random(1);
  for (int i = 0; i < layer.rows * layer.depth; ++i) {
    layer.codes.push_back(random() % 256);
  }
  for (int i = 0; i < layer.depth * layer.columns; ++i) {
    layer.weights.push_back(
        static_cast<int>(random() % (2 * largest_weight + 1)) - largest_weight);
  }
  for (int i = 0; i < layer.columns; ++i) {
    layer.bias.push_back(static_cast<int>(random() % 2001) * 1e-3f - 1);
  }
  return layer;
}

std::vector<double> ExactOutputs(const Int8Layer& layer) {
  std::vector<double> outputs;
  for (int i = 0; i < layer.rows; ++i) {
    for (int j = 0; j < layer.columns; ++j) {
      double sum = layer.bias[j];
      for (int k = 0; k < layer.depth; ++k) {
        const double x = layer.input_min +
                         layer.codes[i * layer.depth + k] * layer.InputScale();
        sum += x * layer.weights[k * layer.columns + j] * layer.WeightScale();
      }
      outputs.push_back(sum);
    }
  }
  return outputs;
}

std::vector<int> ColumnSums(const Int8Layer& layer) {
  std::vector<int> sums(layer.columns, 0);
  for (int i = 0; i < layer.depth * layer.columns; ++i) {
    sums[i % layer.columns] += layer.weights[i];
  }
  return sums;
}

std::vector<int> QuantizedBias(const Int8Layer& layer) {
  std::vector<int> bias;
  for (float value : layer.bias) {
    bias.push_back(std::nearbyint(value / layer.SumScale()));
  }
  return bias;
}

std::vector<int> QuantizedBiasWithZeroPoint(const Int8Layer& layer) {
  const std::vector<int> sums = ColumnSums(layer);
  std::vector<int> bias;
  for (int j = 0; j < layer.columns; ++j) {
    bias.push_back(
        std::nearbyint(layer.bias[j] / layer.SumScale() +
                       sums[j] * layer.input_min / layer.InputScale()));
  }
  return bias;
}

double Largest(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end());
}

double LargestDifference(const std::vector<double>& a,
                         const std::vector<double>& b) {
  double largest = 0;
  for (int i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(a[i] - b[i]));
  }
  return largest;
}

}  // namespace requant
