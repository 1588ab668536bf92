#include "runtime/evaluation/layer_pass.h"

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
#include "runtime/datasets/batch_source.h"
#include "runtime/evaluation/batch_streams.h"
#include "runtime/evaluation/layer_comparison.h"
#include "runtime/session/job_reports.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant {
namespace {

using tensorflow::Tensor;

// Gives tensors of a graph for a batch. What the graph is fed it cannot be
// asked for as well.
class TensorReader {
 public:
  static absl::StatusOr<std::unique_ptr<TensorReader>> Make(
      const EvaluateOptions& options, Model* model,
      const std::vector<std::string>& tensors) {
    std::unique_ptr<TensorReader> reader(new TensorReader(model->path()));
    REQUANT_ASSIGN_OR_RETURN(const std::vector<std::string> inputs,
                             InputTensors(*model, options.dataset));
    std::vector<std::string> fetches;
    for (const std::string& tensor : tensors) {
      const auto fed = std::find(inputs.begin(), inputs.end(), tensor);
      const bool is_fed = fed != inputs.end();
      reader->places_.push_back(
          {is_fed, is_fed ? static_cast<size_t>(fed - inputs.begin())
                          : fetches.size()});
      if (!is_fed) fetches.push_back(tensor);
    }
    // What is fed alone needs no run.
    if (fetches.empty()) return reader;
    ModelFunctionOptions function;
    function.in_caller_thread = options.streams > 1;
    REQUANT_ASSIGN_OR_RETURN(
        reader->function_,
        ModelFunction::Make(model, inputs, fetches, function));
    return reader;
  }

  // Thread-safe.
  absl::Status Read(const Batch& batch, std::vector<Tensor>* values) const {
    std::vector<Tensor> fetched;
    if (function_ != nullptr) {
      REQUANT_RETURN_IF_ERROR(
          RunError(function_->Run(batch.inputs, &fetched), path_,
                   absl::StrCat("its layers for the ", RecordsText(batch))));
    }
    values->clear();
    for (const Place& place : places_) {
      values->push_back(place.is_fed ? batch.inputs[place.number]
                                     : fetched[place.number]);
    }
    return absl::OkStatus();
  }

 private:
  // Among the inputs, or among what is fetched.
  struct Place {
    bool is_fed = false;
    size_t number = 0;
  };

  explicit TensorReader(const std::string& path) : path_(path) {}

  const std::string path_;
  std::vector<Place> places_;
  std::unique_ptr<ModelFunction> function_;
};

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

BatchOptions FirstRecords(const EvaluateOptions& options) {
  BatchOptions batching;
  batching.batch_size = options.batch_size;
  batching.max_records = options.layer_records;
  if (options.max_records > 0) {
    batching.max_records = std::min(batching.max_records, options.max_records);
  }
  batching.max_bad_records = options.max_bad_records;
  batching.prefetch = std::max(batching.prefetch, 2 * options.streams);
  return batching;
}

}  // namespace

absl::Status CompareLayers(const EvaluateOptions& options,
                           const LayerPairs& layers, Model* model,
                           Model* baseline, EvaluateResult* result) {
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
  REQUANT_ASSIGN_OR_RETURN(const std::unique_ptr<TensorReader> reader,
                           TensorReader::Make(options, model, tensors));
  REQUANT_ASSIGN_OR_RETURN(
      const std::unique_ptr<TensorReader> baseline_reader,
      TensorReader::Make(options, baseline, baseline_tensors));
  REQUANT_ASSIGN_OR_RETURN(
      const std::unique_ptr<BatchSource> source,
      OpenBatchSource(options.dataset, FirstRecords(options)));
  BatchStreams streams(
      source.get(), options.streams,
      [&](const Batch& batch, std::vector<GraphRun>* runs) {
        runs->resize(2);
        REQUANT_RETURN_IF_ERROR(reader->Read(batch, &(*runs)[0].outputs));
        return baseline_reader->Read(batch, &(*runs)[1].outputs);
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
