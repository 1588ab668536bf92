#ifndef REQUANT_RUNTIME_STATISTICS_PREDICTION_TENSOR_H_
#define REQUANT_RUNTIME_STATISTICS_PREDICTION_TENSOR_H_

// Converts a graph's tensors to the numbers that metrics take.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/statistics/metrics.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant {

// Returns how to read a prediction tensor of `records` records, according to
// the dataset's declaration and the tensor's shape, or its values if the
// dataset leaves that open (PredictionSpec::KIND_AUTO). Errors name
// `tensor_name`.
absl::StatusOr<PredictionFormat> FormatOf(const PredictionSpec& spec,
                                          const std::string& tensor_name,
                                          const tensorflow::Tensor& prediction,
                                          int64_t records);

// Returns the values of a tensor of any floating-point type. `buffer` holds
// them if they had to be converted.
absl::StatusOr<absl::Span<const float>> FloatValues(
    const tensorflow::Tensor& tensor, std::vector<float>* buffer);

// Returns the values of a tensor of any numeric type.
absl::StatusOr<std::vector<double>> LabelValues(
    const tensorflow::Tensor& labels);

}  // namespace requant

#endif  // REQUANT_RUNTIME_STATISTICS_PREDICTION_TENSOR_H_
