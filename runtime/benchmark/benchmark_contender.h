#ifndef REQUANT_RUNTIME_BENCHMARK_BENCHMARK_CONTENDER_H_
#define REQUANT_RUNTIME_BENCHMARK_BENCHMARK_CONTENDER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/benchmark/chrome_trace.h"
#include "runtime/benchmark/stream_pool.h"
#include "runtime/datasets/batch_source.h"
#include "runtime/session/model.h"
#include "runtime/session/worker.pb.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant {

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

  // What the first stream's session computes of one batch.
  absl::StatusOr<tensorflow::Tensor> Output(int64_t batch);

  // Runs some batches in one stream and says where their time went. Events of
  // the first few go to `trace`, unless it is null.
  absl::StatusOr<ProfileMessage> Profile(ChromeTrace* trace,
                                         const std::function<void()>& on_alive);

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
