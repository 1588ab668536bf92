#ifndef REQUANT_RUNTIME_BENCHMARK_BENCHMARK_CONTENDER_H_
#define REQUANT_RUNTIME_BENCHMARK_BENCHMARK_CONTENDER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/benchmark/stream_pool.h"
#include "runtime/datasets/batch_source.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/session/job.pb.h"
#include "runtime/session/model.h"
#include "tensorflow/core/framework/step_stats.pb.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant {

// Reads the first batches of a dataset into memory, so that reading them is no
// part of what is measured: `max_batches` of them, or as many as fit in
// `max_bytes`, but at least one. All have `options.batch_size` records, unless
// the whole dataset has fewer; a dataset without records is an error. Errors
// name the dataset as `name`.
absl::StatusOr<std::vector<Batch>> PreloadBatches(const DatasetSpec& dataset,
                                                  const std::string& name,
                                                  BatchOptions options,
                                                  int64_t max_batches,
                                                  int64_t max_bytes);

// Returns where the time of a graph goes, by type of operation and for the
// `max_nodes` costliest nodes: averages over what TensorFlow recorded of
// batches, at least one, run with FULL_TRACE. The caller knows
// `batch_microseconds` and sets it.
ProfileMessage ProfileOf(const std::vector<tensorflow::StepStats>& batches,
                         size_t max_nodes);

// One of the graphs under measurement, loaded for a setting of streams and
// threads. Errors name the graph.
class BenchmarkContender {
 public:
  // `batches` must outlive it and not be empty.
  static absl::StatusOr<std::unique_ptr<BenchmarkContender>> Load(
      const BenchmarkEntry& entry, const StreamSetting& setting,
      const std::vector<Batch>& batches);

  const StreamSetting& setting() const { return setting_; }

  // Runs the batches over and over in all streams.
  absl::StatusOr<StreamTimes> Run(const RunLength& length,
                                  const std::function<void()>& on_alive);

  // Returns what the first stream's session computes of one batch.
  absl::StatusOr<tensorflow::Tensor> Output(int64_t batch);

  // Runs some batches in one stream and says where their time went.
  absl::StatusOr<ProfileMessage> Profile(const std::function<void()>& on_alive);

 private:
  BenchmarkContender(const BenchmarkEntry& entry, const StreamSetting& setting,
                     const std::vector<Batch>& batches)
      : entry_(entry), setting_(setting), batches_(batches) {}

  absl::Status AddModel();
  absl::StatusOr<std::unique_ptr<ModelFunction>> MakeFunction(Model* model,
                                                              bool trace) const;
  absl::StatusOr<int64_t> RunBatch(
      ModelFunction* function, int64_t number,
      tensorflow::RunMetadata* metadata,
      std::vector<tensorflow::Tensor>* outputs) const;

  const BenchmarkEntry entry_;
  const StreamSetting setting_;
  const std::vector<Batch>& batches_;
  // One for all streams, or one for each.
  std::vector<std::unique_ptr<Model>> models_;
  std::vector<std::unique_ptr<ModelFunction>> functions_;
  std::unique_ptr<StreamPool> pool_;
};

}  // namespace requant

#endif  // REQUANT_RUNTIME_BENCHMARK_BENCHMARK_CONTENDER_H_
