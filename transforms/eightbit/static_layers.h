#ifndef REQUANT_TRANSFORMS_EIGHTBIT_STATIC_LAYERS_H_
#define REQUANT_TRANSFORMS_EIGHTBIT_STATIC_LAYERS_H_

// Float layers rewritten into fused eight-bit ones whose ranges are constants:
//
//   with Relu     QuantizedMatMulWithBiasAndReluAndRequantize -> quint8
//   without       QuantizedMatMulWithBiasAndDequantize        -> float
//
// All take SCALED inputs: x = origin + step·code, where what the origins and
// the different steps of the columns amount to is part of the bias and of the
// weights. With u the step of the weights, each multiplied by its column's
// step, a layer's sum is u·Σ code·weight_code + bias. Weights are rounded so
// that the sum's error over the calibration records is small
// (compensated_rounding.h), and the bias takes up the error's mean:
//
//   bias' = bias + Σ_k mean_k·w_k − u·Σ_c mean_code_c·weight_code_c.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/graph_index.h"
#include "ranges/range_choice.h"
#include "ranges/range_table.h"
#include "tensorflow/core/framework/tensor.h"
#include "transforms/eightbit/static_inputs.h"
#include "transforms/layers/float_layer.h"
#include "transforms/layers/graph_builder.h"
#include "transforms/layers/quantized_weights.h"

namespace requant {

struct StaticLayerOptions {
  std::vector<std::string> outputs;
  WeightRule rule = WeightRule::kPairsFitInt16;
  RangeChoiceOptions ranges;
  bool split_columns = true;
  // Round weights by the moments of the table, where it has them.
  bool compensate = true;
  int threads = 1;
};

// What became of a layer.
struct StaticLayerReport {
  std::string name;
  std::string activation;
  int64_t inputs = 0;
  // Columns of codes; more than inputs where some are repeated.
  int64_t columns = 0;
  int64_t outputs = 0;
  int levels = 0;
  bool compensated = false;
  // The expected squared error due to the weights, as a share of what rounding
  // each weight to the nearest would give.
  double error_share = 1;
  // The upper end of the quint8 output; 0 for float.
  float output_max = 0;
};

class StaticLayers {
 public:
  StaticLayers(GraphIndex* index, const RangeTable* ranges,
               const StaticLayerOptions& options);

  // Rewrites all of `layers`, which must be those of the index's graph.
  absl::Status Quantize(const std::vector<FloatLayer>& layers);

  // In the order of the layers.
  const std::vector<StaticLayerReport>& reports() const { return reports_; }

 private:
  // Weight codes and bias for the columns of an input.
  struct Weights {
    tensorflow::Tensor codes;
    // Of one product of an input's and a weight's code.
    double step = 0;
    tensorflow::Tensor bias;  // qint32
  };

  // Adds the node that will give the layer's quint8, with its range;
  // `readers` are the layers that read it.
  absl::Status AddOutput(const FloatLayer& layer,
                         const std::vector<const FloatLayer*>& readers);
  absl::Status QuantizeLayer(const FloatLayer& layer, const InputCodes& input);
  absl::StatusOr<Weights> Round(const FloatLayer& layer,
                                const InputCodes& input,
                                StaticLayerReport* report) const;
  absl::StatusOr<std::vector<std::string>> MatMulInputs(const FloatLayer& layer,
                                                        const InputCodes& input,
                                                        const Weights& weights);

  const StaticLayerOptions options_;
  GraphBuilder builder_;
  StaticInputs inputs_;
  // The nodes that give the quint8 outputs, by the float tensors they replace.
  std::map<std::string, std::string> codes_;
  std::vector<StaticLayerReport> reports_;
};

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_EIGHTBIT_STATIC_LAYERS_H_
