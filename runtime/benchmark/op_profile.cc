#include "runtime/benchmark/op_profile.h"

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/benchmark/step_events.h"
#include "runtime/session/worker.pb.h"

namespace requant {

void OpProfile::Add(const std::vector<StepEvent>& events) {
  ++batches_;
  for (const StepEvent& event : events) {
    const std::string op = event.op.empty() ? "(other)" : event.op;
    for (Cost* cost : {&types_[{op, ""}], &nodes_[{op, event.node}]}) {
      ++cost->calls;
      cost->nanoseconds += event.nanoseconds;
    }
    nanoseconds_ += event.nanoseconds;
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
