#ifndef REQUANT_RUNTIME_EVALUATION_LAYER_COMPARISON_H_
#define REQUANT_RUNTIME_EVALUATION_LAYER_COMPARISON_H_

// Compares a layer of a float graph with its counterpart in another graph on
// the same records. Which layer loses accuracy is the first thing people ask
// about an eight-bit graph.

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "runtime/evaluation.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "transforms/layers/float_layer.h"

namespace requant {

class LayerComparison {
 public:
  explicit LayerComparison(const LayerPair& pair) : pair_(pair) {}

  // Adds the results of a batch of `records` records: the baseline's tensor,
  // the other graph's tensor and, for codes, the two tensors of their range.
  // Errors name the tensors that do not fit.
  absl::Status Add(int64_t records, const tensorflow::Tensor& baseline,
                   const tensorflow::Tensor& tensor,
                   const tensorflow::Tensor* min,
                   const tensorflow::Tensor* max);

  // Returns the figures for the records added. NaN differences count as
  // infinite.
  ComparedLayer Result() const;

 private:
  absl::Status CheckShapes(const tensorflow::Tensor& baseline,
                           const tensorflow::Tensor& tensor);
  // Turns codes into `decoded_`.
  absl::Status Decode(int64_t records, const tensorflow::Tensor& codes,
                      const tensorflow::Tensor& min,
                      const tensorflow::Tensor& max);
  void AddDifferences(const float* baseline, const float* values);
  void AddObserved(const float* baseline, int64_t count);
  // Counts the baseline's values that the last batch's codes cannot hold.
  void AddClipped(int64_t records, const float* baseline, int64_t count);

  const LayerPair pair_;
  int64_t records_ = 0;
  int64_t values_ = 0;
  // The last batch's values.
  int64_t rows_ = 0;
  std::vector<float> decoded_;
  // The limits of clipping: the codes' range and half a step.
  double least_ = 0;
  double greatest_ = 0;

  // Sums by the last dimension.
  std::vector<double> error_;
  std::vector<double> squared_error_;
  std::vector<double> squared_signal_;
  std::vector<double> error_times_signal_;
  double max_error_ = 0;
  std::optional<Interval> observed_;
  int64_t clipped_ = 0;
  int64_t clipped_records_ = 0;
  // The sum over the records.
  double step_sum_ = 0;
  std::optional<Interval> range_;
};

}  // namespace requant

#endif  // REQUANT_RUNTIME_EVALUATION_LAYER_COMPARISON_H_
