#include "runtime/benchmark/benchmark_contender.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <string_view>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "runtime/benchmark/signature_inputs.h"
#include "runtime/session/job_reports.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace requant {
namespace {

using Clock = std::chrono::steady_clock;
using tensorflow::NodeExecStats;

// The first traced runs are slower than the others.
constexpr int kProfileWarmUpBatches = 3;
constexpr int kProfileBatches = 20;
constexpr double kMaxProfileSeconds = 10;
constexpr size_t kProfiledNodes = 15;

int64_t Bytes(const Batch& batch) {
  int64_t bytes = 0;
  for (const tensorflow::Tensor& input : batch.inputs) {
    bytes += static_cast<int64_t>(input.TotalBytes());
  }
  return bytes;
}

// Returns the operation in a label such as
// "[mem 1KB] layer/MatMul = MatMul(a, b)", or "(other)" if it names none.
std::string OpOf(const NodeExecStats& node) {
  const std::string_view label = node.timeline_label();
  const std::string name = absl::StrCat(node.node_name(), " = ");
  const size_t found = label.find(name);
  std::string_view op;
  if (found != std::string_view::npos) op = label.substr(found + name.size());
  op = op.substr(0, op.find('('));
  return op.empty() ? "(other)" : std::string(op);
}

int64_t Nanoseconds(const NodeExecStats& node) {
  // Either all times come in nanoseconds, too, or none do.
  const int64_t nanoseconds =
      node.all_start_nanos() > 0
          ? node.op_end_rel_nanos() - node.op_start_rel_nanos()
          : 1000 * (node.op_end_rel_micros() - node.op_start_rel_micros());
  return std::max<int64_t>(nanoseconds, 0);
}

struct Cost {
  int64_t calls = 0;
  int64_t nanoseconds = 0;
};
// By operation and node; the node is empty in a type's key.
using Costs = std::map<std::pair<std::string, std::string>, Cost>;

// Appends the averages of the costliest, at most `most`, the costliest first.
void AppendCosts(const Costs& costs, size_t most, double batches,
                 google::protobuf::RepeatedPtrField<OperationTime>* times) {
  std::vector<std::pair<Costs::key_type, Cost>> sorted(costs.begin(),
                                                       costs.end());
  // Stable: equal ones stay in the order of their names.
  absl::c_stable_sort(sorted, [](const auto& a, const auto& b) {
    return a.second.nanoseconds > b.second.nanoseconds;
  });
  for (size_t i = 0; i < std::min(most, sorted.size()); ++i) {
    const auto& [name, cost] = sorted[i];
    OperationTime& time = *times->Add();
    time.set_op(name.first);
    time.set_node(name.second);
    time.set_calls(static_cast<double>(cost.calls) / batches);
    time.set_microseconds(1e-3 * static_cast<double>(cost.nanoseconds) /
                          batches);
  }
}

}  // namespace

ProfileMessage ProfileOf(const std::vector<tensorflow::StepStats>& batches,
                         size_t max_nodes) {
  Costs types, nodes;
  int64_t all_nanoseconds = 0;
  for (const tensorflow::StepStats& batch : batches) {
    for (const tensorflow::DeviceStepStats& device : batch.dev_stats()) {
      for (const NodeExecStats& node : device.node_stats()) {
        const std::string op = OpOf(node);
        const int64_t nanoseconds = Nanoseconds(node);
        for (Cost* cost : {&types[{op, ""}], &nodes[{op, node.node_name()}]}) {
          ++cost->calls;
          cost->nanoseconds += nanoseconds;
        }
        all_nanoseconds += nanoseconds;
      }
    }
  }
  const auto count = static_cast<double>(batches.size());
  ProfileMessage profile;
  profile.set_batches(static_cast<int64_t>(batches.size()));
  profile.set_operation_microseconds(
      1e-3 * static_cast<double>(all_nanoseconds) / count);
  AppendCosts(types, types.size(), count, profile.mutable_type());
  AppendCosts(nodes, max_nodes, count, profile.mutable_node());
  return profile;
}

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
  REQUANT_ASSIGN_OR_RETURN(const std::string output,
                           PredictionTensor(*model, entry_.dataset(), inputs));
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
  return RunError(
      status, entry_.model().path(),
      absl::StrCat(RecordsText(batch), " of ", entry_.dataset_name()));
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
  std::vector<tensorflow::StepStats> traced;
  std::chrono::duration<double> measured{0};
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
    traced.push_back(std::move(*metadata.mutable_step_stats()));
    if (measured.count() > kMaxProfileSeconds) break;
  }
  ProfileMessage profile = ProfileOf(traced, kProfiledNodes);
  profile.set_batch_microseconds(1e6 * measured.count() /
                                 static_cast<double>(traced.size()));
  return profile;
}

}  // namespace requant
