#include "runtime/benchmark/op_profile.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/session/job.pb.h"
#include "tensorflow/core/framework/step_stats.pb.h"

namespace requant {
namespace {

using tensorflow::NodeExecStats;

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

}  // namespace

void OpProfile::Add(const tensorflow::StepStats& stats) {
  ++batches_;
  for (const tensorflow::DeviceStepStats& device : stats.dev_stats()) {
    for (const NodeExecStats& node : device.node_stats()) {
      const std::string op = OpOf(node);
      const int64_t nanoseconds = Nanoseconds(node);
      for (Cost* cost : {&types_[{op, ""}], &nodes_[{op, node.node_name()}]}) {
        ++cost->calls;
        cost->nanoseconds += nanoseconds;
      }
      nanoseconds_ += nanoseconds;
    }
  }
}

ProfileMessage OpProfile::Result(int max_nodes) const {
  ProfileMessage profile;
  profile.set_batches(batches_);
  if (batches_ == 0) return profile;
  profile.set_operation_microseconds(1e-3 * static_cast<double>(nanoseconds_) /
                                     static_cast<double>(batches_));
  for (const OperationTime& type : Sorted(types_)) *profile.add_type() = type;
  for (const OperationTime& node : Sorted(nodes_)) {
    if (profile.node_size() == max_nodes) break;
    *profile.add_node() = node;
  }
  return profile;
}

std::vector<OperationTime> OpProfile::Sorted(const Costs& costs) const {
  std::vector<OperationTime> sorted;
  const double batches = static_cast<double>(batches_);
  for (const auto& [name, cost] : costs) {
    OperationTime time;
    time.set_op(name.first);
    time.set_node(name.second);
    time.set_calls(static_cast<double>(cost.calls) / batches);
    time.set_microseconds(1e-3 * static_cast<double>(cost.nanoseconds) /
                          batches);
    sorted.push_back(time);
  }
  // Stable: equal ones stay in the order of their names.
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const OperationTime& a, const OperationTime& b) {
                     return a.microseconds() > b.microseconds();
                   });
  return sorted;
}

}  // namespace requant
