#include "transforms/layers/calibration_tensors.h"

#include <cstddef>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/text/nearest_name.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "transforms/layers/float_layer.h"
#include "transforms/layers/tensor_pattern.h"

namespace requant {
namespace {

using tensorflow::NodeDef;

// Returns whether a range may pass through the op on its way to a quantization.
bool IsScalarArithmetic(const std::string& op) {
  static const auto* ops = new absl::flat_hash_set<std::string>{
      "Abs", "Add", "AddV2", "Div",     "Identity", "Maximum", "Minimum",
      "Mul", "Neg", "Print", "RealDiv", "Reshape",  "Sub"};
  return ops->contains(op);
}

// Returns what the node computes for quantization ranges, or kTensor.
ObservedKind KindOf(const GraphIndex& index, const NodeDef& node) {
  if (node.op() == "RequantizationRange") return ObservedKind::kRange;
  const bool is_min = node.op() == "Min";
  if ((!is_min && node.op() != "Max") ||
      !FeedsQuantizationRange(index, node.name())) {
    return ObservedKind::kTensor;
  }
  return is_min ? ObservedKind::kMin : ObservedKind::kMax;
}

// A list of tensors in the order found, without duplicates.
class TensorList {
 public:
  void Add(std::string_view name, bool layer_input = false) {
    const TensorName tensor = ParseTensorName(name);
    const auto [known, is_new] = known_.insert(
        {{std::string(tensor.node), tensor.port}, tensors_.size()});
    if (is_new) {
      tensors_.push_back(
          {ObservedKind::kTensor, std::string(tensor.node), tensor.port});
    }
    if (layer_input) tensors_[known->second].layer_input = true;
  }

  std::vector<CalibrationTensor> Take() { return std::move(tensors_); }

 private:
  absl::flat_hash_map<std::pair<std::string, int>, size_t> known_;
  std::vector<CalibrationTensor> tensors_;
};

// Adds the blocks that are concatenated to make `tensor`, if any.
void AddBlocks(const GraphIndex& index, std::string_view tensor,
               TensorList* list) {
  const NodeDef* node = MakerOfValues(index, tensor);
  if (node == nullptr) return;
  const bool axis_is_last = node->op() == "ConcatV2";
  if (!axis_is_last && node->op() != "Concat") return;
  const int end = DataInputs(*node) - (axis_is_last ? 1 : 0);
  for (int i = axis_is_last ? 0 : 1; i < end; ++i) list->Add(node->input(i));
}

}  // namespace

bool FeedsQuantizationRange(const GraphIndex& index, const std::string& node) {
  constexpr size_t kMostVisited = 64;
  std::vector<std::string_view> open = {node};
  // Initialising this with {node} would store views of a temporary copy.
  absl::flat_hash_set<std::string_view> seen;
  seen.insert(node);
  while (!open.empty()) {
    const std::string_view current = open.back();
    open.pop_back();
    for (const Use& use : index.Uses(current)) {
      // Input 0 is the tensor to quantize; the others are ranges and biases.
      if (use.input > 0 && absl::StrContains(use.node->op(), "uantize")) {
        return true;
      }
      if (IsScalarArithmetic(use.node->op()) && seen.size() < kMostVisited &&
          seen.insert(use.node->name()).second) {
        open.push_back(use.node->name());
      }
    }
  }
  return false;
}

std::vector<CalibrationTensor> FindCalibrationTensors(
    const GraphIndex& index, const std::vector<std::string>& outputs) {
  std::vector<CalibrationTensor> ranges;
  for (const NodeDef& node : index.graph().node()) {
    const ObservedKind kind = KindOf(index, node);
    if (kind != ObservedKind::kTensor) ranges.push_back({kind, node.name(), 0});
  }
  if (!ranges.empty()) return ranges;
  FloatLayerOptions options;
  options.outputs = outputs;
  TensorList list;
  for (const FloatLayer& layer : FindFloatLayers(index, options).layers) {
    list.Add(layer.input, true);
    AddBlocks(index, layer.input, &list);
    list.Add(layer.output);
  }
  return list.Take();
}

void MarkLayerInputs(const GraphIndex& index,
                     std::vector<CalibrationTensor>* tensors) {
  absl::flat_hash_set<std::string> inputs;
  for (const FloatLayer& layer : FindFloatLayers(index, {}).layers) {
    inputs.insert(layer.input);
  }
  for (CalibrationTensor& tensor : *tensors) {
    tensor.layer_input =
        tensor.kind == ObservedKind::kTensor &&
        inputs.contains(absl::StrCat(tensor.node, ":", tensor.output));
  }
}

absl::StatusOr<CalibrationTensor> FindCalibrationTensor(
    const GraphIndex& index, const std::string& name) {
  const TensorName tensor = ParseTensorName(name);
  const NodeDef* node = tensor.control() ? nullptr : index.Find(tensor.node);
  if (node == nullptr) {
    std::vector<std::string> names;
    for (const NodeDef& other : index.graph().node()) {
      names.push_back(other.name());
    }
    return absl::NotFoundError(
        absl::StrCat("the graph has no node for the tensor \"", name, "\"",
                     DidYouMean(std::string(tensor.node), names)));
  }
  const ObservedKind kind = KindOf(index, *node);
  return CalibrationTensor{kind, node->name(),
                           kind == ObservedKind::kTensor ? tensor.port : 0};
}

}  // namespace requant
