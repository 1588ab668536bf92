#include "runtime/servable/servable.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/message_text.h"
#include "base/program/isolation.h"
#include "base/status_macros.h"
#include "graph/constant_store.h"
#include "graph/freeze/needed_nodes.h"
#include "graph/graph_index.h"
#include "graph/graph_io.h"
#include "graph/saved_model/merge_signatures.h"
#include "graph/saved_model/saved_model_file.h"
#include "runtime/calibration/calibrate.h"
#include "runtime/datasets/batch_source.h"
#include "runtime/evaluation/evaluate.h"
#include "runtime/session/model.h"
#include "transforms/layers/calibration_tensors.h"

namespace requant {
namespace {

using tensorflow::GraphDef;
using tensorflow::SignatureDef;

std::vector<std::string> OutputNodes(const SignatureDef& signature) {
  std::vector<std::string> nodes;
  for (const auto& [key, info] : signature.outputs()) {
    for (const std::string& tensor : TensorsOf(info)) {
      nodes.emplace_back(NodeOf(tensor));
    }
  }
  // Protobuf maps are unordered.
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

// Warns of ranges and figures that depend on chance.
void WarnOfFew(int64_t calibrated, int64_t compared) {
  constexpr int64_t kFewCalibrated = 100, kFewCompared = 30;
  if (calibrated >= kFewCalibrated && compared >= kFewCompared) return;
  SayWarning(absl::StrCat("calibrating on ", CountText(calibrated, "record"),
                          " and comparing on ", CountText(compared, "other"),
                          ", but fewer than ", kFewCalibrated, " and ",
                          kFewCompared,
                          " tell little: give more records, 150 or more in "
                          "all"));
}

}  // namespace

absl::StatusOr<FrozenModel> FreezeSignatures(
    const std::string& path, const std::set<std::string>& tags) {
  FrozenModel model;
  REQUANT_ASSIGN_OR_RETURN(model.directory, FindSavedModel(path));
  model.tags = tags;
  {
    REQUANT_ASSIGN_OR_RETURN(const tensorflow::MetaGraphDef meta,
                             ReadSavedModel(model.directory, tags));
    for (const std::string& key : SignatureNames(meta)) {
      model.signatures[key] = meta.signature_def().at(key);
    }
  }
  if (model.signatures.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(path,
                     " has no signature, so it is not known what it computes; "
                     "requant freeze and --graph work on such a model"));
  }
  SetActivity(absl::StrCat("freezing ", path));
  FreezeOptions options;
  options.files.saved_model = model.directory;
  options.files.tags = tags;
  options.all_signatures = true;
  options.stays_in_memory = true;
  REQUANT_ASSIGN_OR_RETURN(model.frozen, Freeze(options));
  REQUANT_ASSIGN_OR_RETURN(
      const std::vector<std::string> merged,
      MergeSignatures(model.frozen.graph, &model.signatures));
  if (!merged.empty()) {
    std::set<std::string> outputs;
    for (const auto& [key, signature] : model.signatures) {
      const std::vector<std::string> own = OutputNodes(signature);
      outputs.insert(own.begin(), own.end());
    }
    model.frozen.outputs.assign(outputs.begin(), outputs.end());
    REQUANT_RETURN_IF_ERROR(
        KeepNeeded(model.frozen.outputs, &model.frozen.graph));
  }
  // Equal constants of the model's own must be in the graph until then.
  StoreConstants(&model.frozen.graph);
  return model;
}

absl::StatusOr<std::string> ChooseSignature(const FrozenModel& model,
                                            const std::string& name) {
  tensorflow::MetaGraphDef meta;
  for (const auto& [key, signature] : model.signatures) {
    (*meta.mutable_signature_def())[key] = signature;
  }
  std::string key = MeantSignature(meta, name);
  REQUANT_RETURN_IF_ERROR(CheckSignature(meta, key, model.directory));
  return key;
}

std::optional<DatasetSpec> DatasetForSignature(const FrozenModel& model,
                                               const std::string& key,
                                               const DatasetSpec& dataset) {
  const SignatureDef& signature = model.signatures.at(key);
  DatasetSpec own = dataset;
  for (const auto& [name, info] : signature.inputs()) {
    if (info.encoding_case() != tensorflow::TensorInfo::kName) {
      return std::nullopt;
    }
  }
  own.clear_input();
  for (const InputSpec& input : dataset.input()) {
    if (signature.inputs().contains(input.placeholder())) {
      *own.add_input() = input;
    }
  }
  own.clear_constant();
  for (const ConstantSpec& constant : dataset.constant()) {
    if (signature.inputs().contains(constant.placeholder())) {
      *own.add_constant() = constant;
    }
  }
  // Without inputs it would give each record the same.
  if (own.input().empty() || own.input_size() + own.constant_size() !=
                                 static_cast<int>(signature.inputs().size())) {
    return std::nullopt;
  }
  if (signature.outputs().contains(dataset.prediction().tensor())) return own;
  own.clear_label();
  own.clear_prediction();
  const std::map<std::string, tensorflow::TensorInfo> outputs(
      signature.outputs().begin(), signature.outputs().end());
  for (const auto& [name, info] : outputs) {
    if (info.dtype() != tensorflow::DT_FLOAT ||
        info.encoding_case() != tensorflow::TensorInfo::kName) {
      continue;
    }
    own.mutable_prediction()->set_tensor(name);
    return own;
  }
  return std::nullopt;
}

absl::StatusOr<SignatureRecords> DivideRecords(const std::string& signature,
                                               const DatasetSpec& dataset,
                                               int64_t most,
                                               int64_t max_bad_records,
                                               bool exact) {
  SignatureRecords records = {signature, dataset, most, 0};
  if (exact && most == 0) return records;
  SetActivity(absl::StrCat("reading ", DescribeFiles(dataset)));
  BatchOptions options;
  // No dataset has as many as would make this overflow.
  most = std::min(most, std::numeric_limits<int64_t>::max() / 4);
  options.max_records = most + (exact ? kMostCompared : most);
  options.max_bad_records = max_bad_records;
  REQUANT_ASSIGN_OR_RETURN(const int64_t count,
                           CountRecords(dataset, options, ReportAlive));
  if (!exact) records.calibrated = RecordsToCalibrateOn(count, most);
  records.held_back = std::max<int64_t>(0, count - records.calibrated);
  // A run verifies on other records.
  if (!exact || !IsPartOfRun()) {
    WarnOfFew(std::min(count, records.calibrated), records.held_back);
  }
  return records;
}

absl::StatusOr<RangeTable> CalibrateSignature(const FrozenModel& model,
                                              const SignatureRecords& records,
                                              const CalibrateJob& settings,
                                              FirstBatchShapes* shapes) {
  const SignatureDef& signature = model.signatures.at(records.signature);
  const std::vector<std::string> outputs = OutputNodes(signature);
  CalibrateJob job = settings;
  job.mutable_model()->set_path(model.directory);
  *job.mutable_dataset() = records.dataset;
  job.set_max_records(records.calibrated);
  GraphDef graph = model.frozen.graph;
  // What other signatures compute cannot run without their inputs.
  REQUANT_RETURN_IF_ERROR(KeepNeeded(outputs, &graph));
  std::set<std::string_view> nodes;
  for (const auto& node : graph.node()) nodes.insert(node.name());
  {
    REQUANT_ASSIGN_OR_RETURN(const GraphIndex index,
                             GraphIndex::Create(&graph));
    // It has no layers, but others have.
    if (FindCalibrationTensors(index, outputs).empty()) return RangeTable();
  }
  std::vector<ProductOperand>& wanted = shapes->wanted;
  wanted.erase(std::remove_if(wanted.begin(), wanted.end(),
                              [&](const ProductOperand& operand) {
                                return nodes.count(NodeOf(operand.tensor)) == 0;
                              }),
               wanted.end());
  const GraphToCalibrate part = {graph, signature, outputs};
  return ObserveRanges(job, nullptr, /*for_file=*/false, shapes, &part);
}

absl::StatusOr<EvaluateResult> CompareSignature(const FrozenModel& original,
                                                const std::string& candidate,
                                                const SignatureRecords& records,
                                                const CalibrateJob& settings) {
  ModelSpec model;
  model.set_signature(records.signature);
  for (const std::string& tag : original.tags) model.add_tags(tag);
  ModelSpec baseline = model;
  model.set_path(candidate);
  baseline.set_path(original.directory);
  return CompareModels(baseline, model, records, settings);
}

absl::StatusOr<EvaluateResult> CompareModels(const ModelSpec& original,
                                             const ModelSpec& candidate,
                                             const SignatureRecords& records,
                                             const CalibrateJob& settings) {
  EvaluateOptions options;
  options.model = candidate;
  options.baseline = original;
  options.dataset = records.dataset;
  options.batch_size = settings.batch_size();
  options.max_bad_records = settings.max_bad_records();
  options.skip_records = records.calibrated;
  options.max_records = records.held_back;
  REQUANT_ASSIGN_OR_RETURN(EvaluateResult result, Evaluate(options, nullptr));
  // A few batches say nothing about speed.
  result.clear_timing();
  result.clear_baseline_timing();
  return result;
}

}  // namespace requant
