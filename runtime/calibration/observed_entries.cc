#include "runtime/calibration/observed_entries.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "graph/graph_index.h"
#include "transforms/layers/float_layer.h"
#include "transforms/qdq/qdq_sites.h"

namespace requant {
namespace {

using tensorflow::GraphDef;

// If there are more, only their number is reported.
constexpr size_t kNamedUnobserved = 10;

// Returns the tensor of the dataset's prediction, if it has one.
absl::StatusOr<std::vector<std::string>> PredictionTensor(
    const CalibrateJob& job, const Model& model) {
  const std::string& name = job.dataset().prediction().tensor();
  if (name.empty()) return std::vector<std::string>();
  REQUANT_ASSIGN_OR_RETURN(std::string output, model.OutputTensor(name));
  return std::vector<std::string>{std::move(output)};
}

// Returns the tensors that the job names, or those that the transforms for
// eight-bit graphs need.
absl::StatusOr<std::vector<CalibrationTensor>> ChooseTensors(
    const CalibrateJob& job, const Model& model,
    const std::vector<std::string>& more_outputs, GraphDef* graph) {
  REQUANT_ASSIGN_OR_RETURN(const GraphIndex index, GraphIndex::Create(graph));
  std::vector<CalibrationTensor> tensors;
  for (const std::string& name : job.tensors()) {
    REQUANT_ASSIGN_OR_RETURN(const std::string tensor,
                             model.OutputTensor(name));
    REQUANT_ASSIGN_OR_RETURN(CalibrationTensor found,
                             FindCalibrationTensor(index, tensor));
    const auto same = [&](const CalibrationTensor& other) {
      return other.node == found.node && other.output == found.output;
    };
    if (std::none_of(tensors.begin(), tensors.end(), same)) {
      tensors.push_back(std::move(found));
    }
  }
  if (!tensors.empty()) {
    MarkLayerInputs(index, &tensors);
    return tensors;
  }
  REQUANT_ASSIGN_OR_RETURN(std::vector<std::string> outputs,
                           PredictionTensor(job, model));
  outputs.insert(outputs.end(), more_outputs.begin(), more_outputs.end());
  tensors = FindCalibrationTensors(index, outputs);
  if (tensors.empty()) {
    return absl::NotFoundError(
        absl::StrCat(model.path(),
                     " has nothing to calibrate: no node computes ranges, and ",
                     WhyNoLayers(*graph, FindFloatLayers(index)),
                     "; requant calibrate --tensors observes any tensor"));
  }
  return tensors;
}

void WarnOfNotObserved(const CalibrateJob& job, const Model& model,
                       const std::vector<NotObserved>& keys) {
  // Without signatures, the outputs are those that the dataset names.
  std::string not_needed = "the outputs do not depend on it";
  if (!model.signature().outputs().empty()) {
    not_needed =
        absl::StrCat("the signature ",
                     job.model().signature().empty() ? "serving_default"
                                                     : job.model().signature(),
                     " does not compute it (--signature chooses another)");
  }
  for (size_t i = 0; i < std::min(keys.size(), kNamedUnobserved); ++i) {
    const RangeKey& key = keys[i].range;
    SayWarning(absl::StrCat(
        "the range of ", TensorText(key.first, key.second),
        " is not observed: ",
        keys[i].is_needed ? "it is in a loop or under a condition (While, If)"
                          : not_needed));
  }
  if (keys.size() > kNamedUnobserved) {
    SayWarning(absl::StrCat(keys.size(),
                            " ranges are not observed, of which the first ",
                            kNamedUnobserved, " are named above"));
  }
}

}  // namespace

std::string TensorText(const std::string& node, int output) {
  return absl::StrCat(node, ":", output);
}

absl::StatusOr<std::vector<ObservedEntry>> ChooseEntries(
    const CalibrateJob& job, const Model& model,
    const std::vector<std::string>& outputs, GraphDef* graph) {
  REQUANT_ASSIGN_OR_RETURN(const std::vector<CalibrationTensor> tensors,
                           ChooseTensors(job, model, outputs, graph));
  std::vector<ObservedEntry> entries;
  for (const CalibrationTensor& tensor : tensors) {
    entries.push_back({tensor, {TensorText(tensor.node, tensor.output)}});
    if (tensor.kind == ObservedKind::kRange) {
      entries.back().fetches.push_back(TensorText(tensor.node, 1));
    }
  }
  return entries;
}

absl::StatusOr<std::vector<ObservedEntry>> ChooseQdqEntries(
    const CalibrateJob& job, const Model& model, const GraphDef& graph,
    GraphDef* added) {
  QdqSiteOptions options;
  options.ops.assign(job.qdq().op().begin(), job.qdq().op().end());
  if (!job.qdq().inputs().empty()) {
    REQUANT_ASSIGN_OR_RETURN(options.inputs,
                             ParseQdqInputs(job.qdq().inputs()));
  }
  REQUANT_ASSIGN_OR_RETURN(std::vector<std::string> outputs,
                           PredictionTensor(job, model));
  for (const auto& [key, output] : model.signature().outputs()) {
    outputs.push_back(output.name());
  }
  if (outputs.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(model.path(),
                     " has no signature that tells its outputs: name one by "
                     "prediction { tensor: ... } in the dataset"));
  }
  // Protobuf maps are unordered.
  std::sort(outputs.begin(), outputs.end());
  REQUANT_ASSIGN_OR_RETURN(QdqObservers qdq,
                           MakeQdqObservers(graph, options, outputs));
  WarnOfNotObserved(job, model, qdq.not_observed);
  if (qdq.observers.empty()) {
    return absl::NotFoundError(absl::StrCat(
        model.path(), " has nothing to calibrate: no ",
        options.ops.empty() ? "MatMul" : absl::StrJoin(options.ops, ", "),
        " whose inputs can be observed"));
  }
  *added = std::move(qdq.added);
  std::vector<ObservedEntry> entries;
  for (const QdqObserver& observer : qdq.observers) {
    const auto& [node, output] = observer.range;
    entries.push_back({{ObservedKind::kTensor, node, output},
                       observer.tensors,
                       observer.is_weight});
  }
  return entries;
}

}  // namespace requant
