#include "runtime/layer_pass.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "runtime/batch_streams.h"
#include "runtime/datasets/batch_source.h"
#include "runtime/layer_comparison.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant {
namespace {

using tensorflow::Tensor;

// Gives `tensors` of `model` for a batch.
absl::StatusOr<std::unique_ptr<ModelFunction>> MakeFunction(
    const EvaluateJob& job, Model* model,
    const std::vector<std::string>& tensors) {
  REQUANT_ASSIGN_OR_RETURN(const std::vector<std::string> inputs,
                           InputTensors(*model, job.dataset()));
  ModelFunctionOptions options;
  options.in_caller_thread = job.streams() > 1;
  return ModelFunction::Make(model, inputs, tensors, options);
}

absl::Status RunGraph(const Batch& batch, const std::string& path,
                      ModelFunction* function, GraphRun* run) {
  const absl::Status status = function->Run(batch.inputs, &run->outputs);
  if (status.ok()) return status;
  return absl::Status(
      status.code(),
      absl::StrCat(path, ": its layers for the records ", batch.first_record,
                   " to ", batch.first_record + batch.size - 1, ": ",
                   status.message()));
}

// Adds a batch to the layers' comparisons. Of codes there are three tensors.
absl::Status AddBatch(const BatchRun& run, const LayerPairs& layers,
                      std::vector<LayerComparison>* comparisons) {
  const std::vector<Tensor>& outputs = run.graphs[0].outputs;
  size_t next = 0;
  for (size_t i = 0; i < layers.pairs.size(); ++i) {
    const Tensor& tensor = outputs[next++];
    const Tensor* ends[2] = {nullptr, nullptr};
    if (layers.pairs[i].coding != LayerCoding::kFloat) {
      for (const Tensor*& end : ends) end = &outputs[next++];
    }
    REQUANT_RETURN_IF_ERROR((*comparisons)[i].Add(
        run.batch.size, run.graphs[1].outputs[i], tensor, ends[0], ends[1]));
  }
  return absl::OkStatus();
}

BatchOptions FirstRecords(const EvaluateJob& job) {
  BatchOptions options;
  options.batch_size = job.batch_size();
  options.max_records = job.layer_records();
  if (job.max_records() > 0) {
    options.max_records = std::min(options.max_records, job.max_records());
  }
  options.max_bad_records = job.max_bad_records();
  options.prefetch = std::max(options.prefetch, 2 * job.streams());
  return options;
}

}  // namespace

absl::Status CompareLayers(const EvaluateJob& job, const LayerPairs& layers,
                           Model* model, Model* baseline,
                           EvaluateResult* result) {
  std::vector<std::string> tensors, baseline_tensors;
  std::vector<LayerComparison> comparisons;
  for (const LayerPair& pair : layers.pairs) {
    comparisons.emplace_back(pair);
    baseline_tensors.push_back(pair.float_tensor);
    tensors.push_back(pair.tensor);
    if (pair.coding == LayerCoding::kFloat) continue;
    tensors.push_back(pair.min_tensor);
    tensors.push_back(pair.max_tensor);
  }
  for (const std::string& name : layers.unmatched) {
    result->add_unmatched_layer(name);
  }
  if (layers.pairs.empty()) return absl::OkStatus();
  REQUANT_ASSIGN_OR_RETURN(const std::unique_ptr<ModelFunction> function,
                           MakeFunction(job, model, tensors));
  REQUANT_ASSIGN_OR_RETURN(
      const std::unique_ptr<ModelFunction> baseline_function,
      MakeFunction(job, baseline, baseline_tensors));
  REQUANT_ASSIGN_OR_RETURN(const std::unique_ptr<BatchSource> source,
                           OpenBatchSource(job.dataset(), FirstRecords(job)));
  BatchStreams streams(
      source.get(), job.streams(),
      [&](const Batch& batch, std::vector<GraphRun>* runs) {
        runs->resize(2);
        REQUANT_RETURN_IF_ERROR(
            RunGraph(batch, model->path(), function.get(), &(*runs)[0]));
        return RunGraph(batch, baseline->path(), baseline_function.get(),
                        &(*runs)[1]);
      });
  BatchRun run;
  while (true) {
    REQUANT_ASSIGN_OR_RETURN(const bool more, streams.Next(&run));
    if (!more) break;
    REQUANT_RETURN_IF_ERROR(AddBatch(run, layers, &comparisons));
  }
  for (const LayerComparison& comparison : comparisons) {
    *result->add_layer() = comparison.Result();
  }
  return absl::OkStatus();
}

}  // namespace requant
