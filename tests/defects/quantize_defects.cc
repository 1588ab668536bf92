// Defects of the quantization with dynamic ranges.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tests/defects/defect.h"
#include "tests/defects/graph_edits.h"
#include "transforms/layers/quantized_layer.h"

namespace requant {
namespace {

using tensorflow::NodeDef;
using tensorflow::qint8;

Edited WriteWeightRangesAsOf128(GraphIndex* index) {
  for (NodeDef* matmul : QuantizedLayers(*index)) {
    for (const int input : {kMinW, kMaxW}) {
      REQUANT_RETURN_IF_ERROR(ScaleInput(*index, *matmul, input, 128.0 / 127));
    }
  }
  return "wrote all weight ranges as those of 128 steps";
}

Edited DoubleWeightRange(GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(NodeDef * matmul, QuantizedLayerAt(*index, 1));
  for (const int input : {kMinW, kMaxW}) {
    REQUANT_RETURN_IF_ERROR(ScaleInput(*index, *matmul, input, 2));
  }
  return absl::StrCat("doubled the weights' range of ", matmul->name());
}

Edited NegateChannel(GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(auto weights, WeightsAt(*index, 0));
  const int64_t columns = weights.columns();
  std::vector<int64_t> sums(columns);
  for (size_t i = 0; i < weights.values.size(); ++i) {
    sums[i % columns] += std::abs(weights.values[i].value);
  }
  const int64_t channel =
      std::max_element(sums.begin(), sums.end()) - sums.begin();
  for (size_t i = channel; i < weights.values.size(); i += columns) {
    weights.values[i].value = -weights.values[i].value;
  }
  weights.Write();
  return absl::StrCat("negated channel ", channel, " of ",
                      weights.node->name());
}

Edited TransposeBlocks(GraphIndex* index) {
  constexpr int64_t kBlock = 4;
  REQUANT_ASSIGN_OR_RETURN(auto weights, WeightsAt(*index, 1));
  const int64_t columns = weights.columns(), rows = weights.rows();
  for (int64_t row = 0; row + kBlock <= rows; row += kBlock) {
    for (int64_t column = 0; column + kBlock <= columns; column += kBlock) {
      for (int64_t i = 0; i < kBlock; ++i) {
        for (int64_t j = 0; j < i; ++j) {
          std::swap(weights.values[(row + i) * columns + column + j],
                    weights.values[(row + j) * columns + column + i]);
        }
      }
    }
  }
  weights.Write();
  return absl::StrCat("transposed blocks of four by four in ",
                      weights.node->name());
}

// Returns the node that adds the zero point's part to the first layer's bias.
absl::StatusOr<NodeDef*> ShiftedBias(const GraphIndex& index) {
  REQUANT_ASSIGN_OR_RETURN(NodeDef * matmul, QuantizedLayerAt(index, 0));
  REQUANT_ASSIGN_OR_RETURN(NodeDef * add, InputOf(index, *matmul, kBias));
  if (add->op() == "AddV2") return add;
  return absl::NotFoundError("the first layer's bias is not shifted");
}

Edited LeaveZeroPointOut(GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(NodeDef * add, ShiftedBias(*index));
  REQUANT_ASSIGN_OR_RETURN(NodeDef * matmul, QuantizedLayerAt(*index, 0));
  index->SetInput(matmul, kBias, add->input(0));
  return absl::StrCat("let ", matmul->name(), " add ", add->input(0));
}

Edited GiveFloatBiasToMinFirst(GraphIndex* index) {
  REQUANT_RETURN_IF_ERROR(LeaveZeroPointOut(index).status());
  REQUANT_ASSIGN_OR_RETURN(NodeDef * matmul, QuantizedLayerAt(*index, 0));
  const std::string codes = matmul->input(kA);
  index->SetInput(matmul, kMinA, absl::StrCat(codes, ":1"));
  index->SetInput(matmul, kMaxA, absl::StrCat(codes, ":2"));
  (*matmul->mutable_attr())["input_quant_mode"].set_s("MIN_FIRST");
  return absl::StrCat("let ", matmul->name(),
                      " take a MIN_FIRST input with a float bias");
}

Edited LeaveReluOut(GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(NodeDef * matmul, QuantizedLayerAt(*index, 1));
  matmul->set_op(kQuantizedMatMul);
  (*matmul->mutable_attr())["Tbias"].set_type(tensorflow::DT_FLOAT);
  return absl::StrCat("took the Relu from ", matmul->name());
}

Edited TakeOtherLayersRange(GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(NodeDef * last, NodeOf(*index, {kFusedFloat}));
  REQUANT_ASSIGN_OR_RETURN(NodeDef * other, NodeOf(*index, {"Requantize"}));
  index->SetInput(last, kMinA, absl::StrCat(other->name(), ":1"));
  index->SetInput(last, kMaxA, absl::StrCat(other->name(), ":2"));
  return absl::StrCat("let ", last->name(), " take the range of ",
                      other->name());
}

Defect At(std::string_view name, const char* gate, std::string_view sentence,
          const GraphEdit& edit) {
  return {name,
          sentence,
          Defect::Workflow::kPublished,
          stage::kQuantize,
          stage::kQuantize,
          gate,
          edit};
}

}  // namespace

std::vector<Defect> QuantizeDefects() {
  std::vector<Defect> defects = {
      At("weight_range_128", gate::kGain,
         "The range of symmetric weights is written as that of 128 steps "
         "where kernels take 127: a gain of 1.008 in every layer.",
         WriteWeightRangesAsOf128),
      At("weight_range_doubled", gate::kGain,
         "A weight range is written as max - min where kernels take the "
         "greater end.",
         DoubleWeightRange),
      At("next_column", gate::kError,
         "A layer's weights are off by one column.",
         [](GraphIndex* index) { return RotateWeightColumns(index, 1); }),
      At("next_row", gate::kError, "A layer's weights are off by one row.",
         [](GraphIndex* index) { return RotateWeightRows(index, 1); }),
      At("negated_channel", gate::kShift,
         "One output channel's weights lost their sign.", NegateChannel),
      At("transposed_blocks", gate::kError,
         "Weights are packed for the kernel in blocks of the other order.",
         TransposeBlocks),
      At("no_zero_point", gate::kShift,
         "What the input's zero point adds to the bias is forgotten.",
         LeaveZeroPointOut),
      At("min_first_float_bias", gate::kNoise,
         "A MIN_FIRST input that can be negative with a float bias: "
         "TensorFlow's kernels compute garbage from 2.14 on.",
         GiveFloatBiasToMinFirst),
      At("no_quantized_relu", gate::kNoise,
         "The op without Relu is emitted for a layer that has one.",
         LeaveReluOut),
      At("other_layers_range", gate::kGain,
         "The last layer reads its input by the range of another layer.",
         TakeOtherLayersRange),
      At("saturating_weights", gate::kShift,
         "Weights use all 127 levels on a CPU that sums pairs of products in "
         "int16.",
         UseAllWeightLevels),
  };
  defects.back().needs_saturation = true;
  return defects;
}

}  // namespace requant
