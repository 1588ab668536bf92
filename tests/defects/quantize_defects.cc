// Defects of quantized layers, from the quantization with dynamic ranges or
// from the fusion.

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
#include "tensorflow/core/framework/types.h"
#include "tests/defects/defect.h"
#include "tests/defects/graph_edits.h"
#include "transforms/layers/quantized_layer.h"

namespace requant {
namespace {

using tensorflow::NodeDef;
using tensorflow::qint32;

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

Edited ForgetZeroPoint(GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(NodeDef * add, ShiftedBias(*index));
  REQUANT_ASSIGN_OR_RETURN(NodeDef * matmul, QuantizedLayerAt(*index, 0));
  index->SetInput(matmul, kBias, add->input(0));
  return absl::StrCat("let ", matmul->name(), " add ", add->input(0));
}

Edited GiveFloatBiasToMinFirst(GraphIndex* index) {
  REQUANT_RETURN_IF_ERROR(ForgetZeroPoint(index).status());
  REQUANT_ASSIGN_OR_RETURN(NodeDef * matmul, QuantizedLayerAt(*index, 0));
  const std::string codes = matmul->input(kA);
  index->SetInput(matmul, kMinA, absl::StrCat(codes, ":1"));
  index->SetInput(matmul, kMaxA, absl::StrCat(codes, ":2"));
  (*matmul->mutable_attr())["input_quant_mode"].set_s("MIN_FIRST");
  return absl::StrCat("let ", matmul->name(),
                      " take a MIN_FIRST input with a float bias");
}

Edited EmitWithoutRelu(GraphIndex* index) {
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

// The two parts of the first layer's bias
// (transforms/layers/quantized_layer.h).
struct FirstBias {
  ConstValues<qint32> bias;
  // The amount that the input's zero point adds to each channel.
  std::vector<double> zero_point;
  float min, max;
};

absl::StatusOr<FirstBias> ReadFirstBias(const GraphIndex& index) {
  REQUANT_ASSIGN_OR_RETURN(NodeDef * layer, QuantizedLayerAt(index, 0));
  REQUANT_ASSIGN_OR_RETURN(NodeDef * quantize, InputOf(index, *layer, kA));
  REQUANT_ASSIGN_OR_RETURN(auto min, ValuesBehind<float>(index, *quantize, 1));
  REQUANT_ASSIGN_OR_RETURN(auto max, ValuesBehind<float>(index, *quantize, 2));
  REQUANT_ASSIGN_OR_RETURN(auto bias, BiasAt(index, 0));
  REQUANT_ASSIGN_OR_RETURN(auto weights, WeightsAt(index, 0));
  FirstBias first{bias, {}, min.values[0], max.values[0]};
  first.zero_point.resize(weights.columns());
  const double zero = 255.0 * first.min / (first.max - first.min);
  for (size_t i = 0; i < weights.values.size(); ++i) {
    first.zero_point[i % weights.columns()] += weights.values[i].value * zero;
  }
  return first;
}

Edited ScaleBiasByGreaterEnd(GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(FirstBias first, ReadFirstBias(*index));
  const double factor = (first.max - first.min) /
                        std::max(std::abs(first.min), std::abs(first.max));
  for (size_t i = 0; i < first.zero_point.size(); ++i) {
    int32_t& value = first.bias.values[i].value;
    value = std::lrint(first.zero_point[i] +
                       (value - first.zero_point[i]) * factor);
  }
  first.bias.Write();
  return absl::StrCat("made ", first.bias.node->name(), " ", factor,
                      " times as big, but for the zero point's part");
}

Edited LeaveZeroPointOut(GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(FirstBias first, ReadFirstBias(*index));
  for (size_t i = 0; i < first.zero_point.size(); ++i) {
    int32_t& value = first.bias.values[i].value;
    value = std::lrint(value - first.zero_point[i]);
  }
  first.bias.Write();
  return absl::StrCat("took the zero point's part from ",
                      first.bias.node->name());
}

// Returns the upper end of a layer's output range.
absl::StatusOr<double> OutputMax(const GraphIndex& index, int number) {
  REQUANT_ASSIGN_OR_RETURN(NodeDef * layer, QuantizedLayerAt(index, number));
  REQUANT_ASSIGN_OR_RETURN(auto max,
                           ValuesBehind<float>(index, *layer, kInputs + 1));
  return max.values[0];
}

Edited ScaleBiasByOutput(GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(const double input, OutputMax(*index, 0));
  REQUANT_ASSIGN_OR_RETURN(const double output, OutputMax(*index, 1));
  return ScaleBias(index, 1, input / output);
}

Edited TakeNextChannelsBias(GraphIndex* index) {
  return EditValues(BiasAt(*index, 1), "moved the values of ", " by one",
                    RotateColumns<qint32>);
}

Edited KeepStaleInputRange(GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(NodeDef * layer, QuantizedLayerAt(*index, 2));
  REQUANT_ASSIGN_OR_RETURN(const double max, OutputMax(*index, 1));
  const std::string name = index->FreeName(layer->name() + "/input_max");
  REQUANT_RETURN_IF_ERROR(
      index->Add(MakeScalarConst(name, static_cast<float>(1.1 * max)))
          .status());
  index->SetInput(layer, kMaxA, name);
  return absl::StrCat("let ", layer->name(), " read its input as up to ",
                      1.1 * max, " instead of ", max);
}

Edited StripWidePart(GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(NodeDef * deep, NodeOf(*index, {kFusedFloat}));
  REQUANT_ASSIGN_OR_RETURN(NodeDef * sum, ReaderOf(*index, *deep, "AddV2"));
  index->RedirectUses({sum->name(), 0}, {deep->name(), 0}, sum);
  return absl::StrCat("let the readers of ", sum->name(), " read ",
                      deep->name());
}

Edited QuantizeAsScaled(GraphIndex* index) {
  REQUANT_ASSIGN_OR_RETURN(NodeDef * quantize, NodeOf(*index, {"QuantizeV2"}));
  (*quantize->mutable_attr())["mode"].set_s("SCALED");
  return absl::StrCat("let ", quantize->name(),
                      " quantize as SCALED what is read as MIN_FIRST");
}

}  // namespace

std::vector<Defect> QuantizeDefects() {
  std::vector<Defect> defects = {
      At("quantize", gate::kGain, "weight_range_128",
         "The range of symmetric weights is written as that of 128 steps "
         "where kernels take 127: a gain of 1.008 in every layer.",
         WriteWeightRangesAsOf128),
      At("quantize", gate::kGain, "weight_range_doubled",
         "A weight range is written as max - min where kernels take the "
         "greater end.",
         DoubleWeightRange),
      At("quantize", gate::kError, "next_column",
         "A layer's weights are off by one column.",
         [](GraphIndex* index) { return RotateWeightColumns(index, 1); }),
      At("quantize", gate::kError, "next_row",
         "A layer's weights are off by one row.",
         [](GraphIndex* index) { return RotateWeightRows(index, 1); }),
      At("quantize", gate::kShift, "negated_channel",
         "One output channel's weights lost their sign.", NegateChannel),
      At("quantize", gate::kError, "transposed_blocks",
         "Weights are packed for the kernel in blocks of the other order.",
         TransposeBlocks),
      At("quantize", gate::kShift, "no_zero_point",
         "What the input's zero point adds to the bias is forgotten.",
         ForgetZeroPoint),
      At("quantize", gate::kNoise, "min_first_float_bias",
         "A MIN_FIRST input that can be negative with a float bias: "
         "TensorFlow's kernels compute garbage from 2.14 on.",
         GiveFloatBiasToMinFirst),
      At("quantize", gate::kNoise, "no_quantized_relu",
         "The op without Relu is emitted for a layer that has one.",
         EmitWithoutRelu),
      At("quantize", gate::kGain, "other_layers_range",
         "The last layer reads its input by the range of another layer.",
         TakeOtherLayersRange),
      At("quantize", gate::kShift, "saturating_weights",
         "Weights use all 127 levels on a CPU that sums pairs of products in "
         "int16.",
         UseAllWeightLevels),
  };
  defects.back().needs_saturation = true;
  return defects;
}

std::vector<Defect> FuseDefects() {
  return {
      At("fuse", gate::kShift, "bias_scale",
         "The published transform's bias scale: it divides by the greater end "
         "of the input's range where the kernel takes max - min.",
         ScaleBiasByGreaterEnd),
      At("fuse", gate::kShift, "bias_without_zero_point",
         "The bias is quantized without the zero point's part.",
         LeaveZeroPointOut),
      At("fuse", gate::kShift, "bias_by_output",
         "A bias is scaled by its own layer's range, not by its input's.",
         ScaleBiasByOutput),
      At("fuse", gate::kShift, "next_channels_bias",
         "A layer's biases are off by one channel.", TakeNextChannelsBias),
      At("fuse", gate::kGain, "stale_input_range",
         "A layer reads its input by a range that its input no longer has.",
         KeepStaleInputRange),
      At("fuse", gate::kMeanChange, "stripped_wide_part",
         "The wrong output node: the deep part's prediction alone.",
         StripWidePart),
      At("fuse", gate::kError, "scaled_for_min_first",
         "The input is quantized as SCALED and read as MIN_FIRST.",
         QuantizeAsScaled),
      At("fuse", gate::kError, "fused_next_column",
         "The weights are fused off by one column, the bias is not.",
         [](GraphIndex* index) { return RotateWeightColumns(index, 0); }),
  };
}

}  // namespace requant
