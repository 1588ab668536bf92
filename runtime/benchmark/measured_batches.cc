#include "runtime/benchmark/measured_batches.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "google/protobuf/repeated_ptr_field.h"

namespace requant {
namespace {

using tensorflow::NodeExecStats;

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

}  // namespace requant
