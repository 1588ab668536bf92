#include "runtime/benchmark/benchmark_contender.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "runtime/benchmark/op_profile.h"
#include "runtime/benchmark/signature_inputs.h"
#include "runtime/benchmark/stream_pool.h"
#include "runtime/datasets/batch_source.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/session/job.pb.h"
#include "runtime/session/model.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace requant {
namespace {

using Clock = std::chrono::steady_clock;

// The first traced runs are slower than the others.
constexpr int kProfileWarmUpBatches = 3;
constexpr int kProfileBatches = 20;
constexpr double kMaxProfileSeconds = 10;
constexpr int kProfiledNodes = 15;

int64_t Bytes(const Batch& batch) {
  int64_t bytes = 0;
  for (const tensorflow::Tensor& input : batch.inputs) {
    bytes += static_cast<int64_t>(input.TotalBytes());
  }
  return bytes;
}

}  // namespace

absl::StatusOr<std::vector<Batch>> PreloadBatches(const DatasetSpec& dataset,
                                                  const std::string& name,
                                                  BatchOptions options,
                                                  int64_t max_batches,
                                                  int64_t max_bytes) {
  if (dataset.has_in_graph()) {
    return absl::InvalidArgumentError(absl::StrCat(
        name,
        ": its records are read by the graph itself (in_graph) and "
        "cannot be preloaded; requant evaluate times such a "
        "graph"));
  }
  REQUANT_ASSIGN_OR_RETURN(const std::unique_ptr<BatchSource> source,
                           OpenBatchSource(dataset, options));
  std::vector<Batch> batches;
  int64_t bytes = 0;
  while (static_cast<int64_t>(batches.size()) < max_batches &&
         (batches.empty() || bytes < max_bytes)) {
    Batch batch;
    REQUANT_ASSIGN_OR_RETURN(const bool more, source->Next(&batch));
    if (!more) break;
    if (batch.size < options.batch_size && !batches.empty()) break;
    bytes += Bytes(batch);
    batches.push_back(std::move(batch));
  }
  if (batches.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " has no records to run"));
  }
  return batches;
}

absl::StatusOr<std::unique_ptr<BenchmarkContender>> BenchmarkContender::Load(
    const BenchmarkEntry& entry, const StreamSetting& setting,
    const std::vector<Batch>& batches) {
  std::unique_ptr<BenchmarkContender> contender(
      new BenchmarkContender(entry, setting, batches));
  // Streams of one thread run in their callers' threads and share a session.
  // Those with more get a session each: a session's streams would share its
  // threads.
  const int models = setting.threads() == 1 ? 1 : setting.streams();
  for (int i = 0; i < models; ++i) {
    REQUANT_RETURN_IF_ERROR(contender->AddModel());
  }
  contender->pool_ = std::make_unique<StreamPool>(
      setting.streams(), [self = contender.get()](int stream, int64_t batch) {
        const size_t which = stream % self->functions_.size();
        std::vector<tensorflow::Tensor> outputs;
        return self->RunBatch(self->functions_[which].get(), batch, nullptr,
                              &outputs);
      });
  return contender;
}

absl::Status BenchmarkContender::AddModel() {
  SessionSpec session;
  session.set_intra_op_threads(setting_.threads());
  session.set_inter_op_threads(setting_.threads());
  REQUANT_ASSIGN_OR_RETURN(std::unique_ptr<Model> model,
                           Model::Load(entry_.model(), session));
  models_.push_back(std::move(model));
  REQUANT_RETURN_IF_ERROR(CheckFedShapes(models_.back()->signature(),
                                         entry_.model().path(),
                                         entry_.dataset(), batches_.front()));
  REQUANT_ASSIGN_OR_RETURN(std::unique_ptr<ModelFunction> function,
                           MakeFunction(models_.back().get(), /*trace=*/false));
  functions_.push_back(std::move(function));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ModelFunction>> BenchmarkContender::MakeFunction(
    Model* model, bool trace) const {
  REQUANT_ASSIGN_OR_RETURN(const std::vector<std::string> inputs,
                           InputTensors(*model, entry_.dataset()));
  REQUANT_ASSIGN_OR_RETURN(
      const std::string output,
      model->OutputTensor(entry_.dataset().prediction().tensor()));
  ModelFunctionOptions options;
  options.in_caller_thread = setting_.threads() == 1;
  options.trace = trace;
  return ModelFunction::Make(model, inputs, {output}, options);
}

absl::StatusOr<int64_t> BenchmarkContender::RunBatch(
    ModelFunction* function, int64_t number, tensorflow::RunMetadata* metadata,
    std::vector<tensorflow::Tensor>* outputs) const {
  const Batch& batch = batches_[number % batches_.size()];
  const absl::Status status = function->Run(batch.inputs, outputs, metadata);
  if (status.ok()) return batch.size;
  return absl::Status(
      status.code(),
      absl::StrCat(entry_.model().path(), ": records ", batch.first_record,
                   " to ", batch.first_record + batch.size - 1, " of ",
                   entry_.dataset_name(), ": ", status.message()));
}

absl::StatusOr<StreamTimes> BenchmarkContender::Run(
    const RunLength& length, const std::function<void()>& on_alive) {
  return pool_->Run(length, on_alive);
}

absl::StatusOr<tensorflow::Tensor> BenchmarkContender::Output(int64_t batch) {
  std::vector<tensorflow::Tensor> outputs;
  REQUANT_RETURN_IF_ERROR(
      RunBatch(functions_.front().get(), batch, nullptr, &outputs).status());
  return outputs.front();
}

absl::StatusOr<ProfileMessage> BenchmarkContender::Profile(
    const std::function<void()>& on_alive) {
  REQUANT_ASSIGN_OR_RETURN(const std::unique_ptr<ModelFunction> function,
                           MakeFunction(models_.front().get(), /*trace=*/true));
  OpProfile profile;
  std::chrono::duration<double> measured{0};
  int batches = 0;
  for (int i = 0; i < kProfileWarmUpBatches + kProfileBatches; ++i) {
    tensorflow::RunMetadata metadata;
    const Clock::time_point start = Clock::now();
    std::vector<tensorflow::Tensor> outputs;
    REQUANT_RETURN_IF_ERROR(
        RunBatch(function.get(), i, &metadata, &outputs).status());
    const auto seconds = Clock::now() - start;
    on_alive();
    if (i < kProfileWarmUpBatches) continue;
    measured += seconds;
    profile.Add(metadata.step_stats());
    ++batches;
    if (measured.count() > kMaxProfileSeconds) break;
  }
  ProfileMessage result = profile.Result(kProfiledNodes);
  result.set_batch_microseconds(1e6 * measured.count() / batches);
  return result;
}

}  // namespace requant
