// Defects of the fusion of quantized layers.

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
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
using tensorflow::qint8;

// The first layer's bias in its two parts
// (transforms/layers/quantized_layer.h).
struct FirstBias {
  ConstValues<qint32> bias;
  // What the input's zero point adds to each channel.
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

// Returns the end of the range that a layer writes.
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

Defect At(std::string_view name, const char* gate, std::string_view sentence,
          const GraphEdit& edit) {
  return {name,         sentence,     Defect::Workflow::kPublished,
          stage::kFuse, stage::kFuse, gate,
          edit};
}

}  // namespace

std::vector<Defect> FuseDefects() {
  return {
      At("bias_scale", gate::kShift,
         "The published transform's bias scale: it divides by the greater end "
         "of the input's range where the kernel takes max - min.",
         ScaleBiasByGreaterEnd),
      At("bias_without_zero_point", gate::kShift,
         "The bias is quantized without the zero point's part.",
         LeaveZeroPointOut),
      At("bias_by_output", gate::kShift,
         "A bias is scaled by its own layer's range, not by its input's.",
         ScaleBiasByOutput),
      At("next_channels_bias", gate::kShift,
         "A layer's biases are off by one channel.", TakeNextChannelsBias),
      At("stale_input_range", gate::kGain,
         "A layer reads its input by a range that its input no longer has.",
         KeepStaleInputRange),
      At("stripped_wide_part", gate::kMeanChange,
         "The wrong output node: the deep part's prediction alone.",
         StripWidePart),
      At("scaled_for_min_first", gate::kError,
         "The input is quantized as SCALED and read as MIN_FIRST.",
         QuantizeAsScaled),
      At("fused_next_column", gate::kError,
         "The weights are fused off by one column, the bias is not.",
         [](GraphIndex* index) { return RotateWeightColumns(index, 0); }),
  };
}

}  // namespace requant
