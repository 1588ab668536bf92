#ifndef REQUANT_TRANSFORMS_EIGHTBIT_EIGHTBIT_LAYERS_H_
#define REQUANT_TRANSFORMS_EIGHTBIT_EIGHTBIT_LAYERS_H_

// Float layers rewritten into eight-bit ones. For the MatMul M with the input X
// and, where it is not quantized already, its run-time range:
//
//   M_eightbit_quantize_X = QuantizeV2(X, M_eightbit_min_X, M_eightbit_max_X)
//
// A layer with Relu or Relu6:
//
//   M_eightbit_quantized_mat_mul = QuantizedMatMulWithBiasAndRelu
//   M_eightbit_requant_range     = RequantizationRange
//   M_eightbit_requantize        = Requantize to quint8
//
// whose quint8 the following layers read; for float readers the layer's last
// node becomes a Dequantize. Another layer's last node becomes a
// QuantizedMatMulWithBiasAndDequantize: no legacy kernel that requantizes keeps
// negative values.
//
// A float bias is wrong for a MIN_FIRST input that can be negative (TensorFlow
// >= 2.14 computes garbage). So the codes of QuantizeV2 are given to the matmul
// as those of x − min in [0, max − min], SCALED, and what this leaves out,
// min · Σ_k w[k][j], is added to the bias in the graph.
//
// The kernels hold the bias as qint32 at the scale of the input and the
// weights. Where a batch leaves a Relu layer nearly dead, the range it gives is
// so narrow that the next layer's bias would not fit and saturate silently. So
// a layer asks for a range at least as wide as the biases of its readers need:
//
//   M_eightbit_requant_floored_max = Maximum(RequantizationRange:1, a constant)
//
// and likewise a QuantizeV2 where the range that it ensures itself is too
// narrow.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "transforms/layers/float_layer.h"
#include "transforms/layers/graph_builder.h"
#include "transforms/layers/quantized_weights.h"

namespace requant {

class EightbitLayers {
 public:
  // `outputs` are the names of the graph's outputs.
  EightbitLayers(GraphIndex* index, WeightRule rule,
                 const std::vector<std::string>& outputs);

  // Rewrites all of `layers`, which must be those of the index's graph.
  absl::Status Quantize(const std::vector<FloatLayer>& layers);

  // Of the weights of a layer that has been rewritten.
  const QuantizedWeights& WeightsOf(const FloatLayer& layer) const;

  // Of layers that have been rewritten and may be bad in eight bits.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  // A quint8 tensor with its range.
  struct Codes {
    std::string codes, min, max;
    // Of a QuantizeV2: its `min` may be negative, and these describe x − min.
    bool shifted = false;
    std::string zero, width;
  };
  struct SharedWeights {
    QuantizedWeights weights;
    std::string codes, min, max;
    // Σ_k w[k][j] as the codes have it; empty until a layer needs it.
    std::string column_sums;
  };
  using WeightsKey = std::pair<std::string, bool>;

  static WeightsKey KeyOf(const FloatLayer& layer);

  absl::Status AddWeights(const FloatLayer& layer);
  // Notes what the layer's bias demands of its input's range.
  absl::Status NoteFloor(const FloatLayer& layer);
  // The maximum `max` of the range of `tensor`, limited from below.
  absl::StatusOr<std::string> AddFlooredMax(const std::string& tensor,
                                            const std::string& max,
                                            const std::string& floor_name,
                                            const std::string& max_name);
  absl::StatusOr<std::string> AddColumnSums(const FloatLayer& layer);
  absl::StatusOr<Codes> InputCodes(const FloatLayer& layer);
  absl::StatusOr<Codes> AddQuantize(const FloatLayer& layer,
                                    const std::string& tensor);
  absl::StatusOr<std::string> AddBias(const FloatLayer& layer,
                                      const Codes& input);
  absl::StatusOr<std::vector<std::string>> MatMulInputs(const FloatLayer& layer,
                                                        const Codes& input);
  // Without inputs yet, so that layers can be rewritten in any order.
  absl::Status AddRequantize(const FloatLayer& layer);
  absl::Status AddReluLayer(const FloatLayer& layer);
  absl::Status BecomeDequantizingMatMul(const FloatLayer& layer);

  GraphBuilder builder_;
  const WeightRule rule_;
  std::map<WeightsKey, SharedWeights> weights_;
  // The quint8 form of float tensors ("x:0").
  absl::flat_hash_map<std::string, Codes> codes_;
  // The least maximum that the layers which read a float tensor can do with.
  absl::flat_hash_map<std::string, float> floors_;
  std::vector<std::string> warnings_;
};

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_EIGHTBIT_EIGHTBIT_LAYERS_H_
