#include "runtime/benchmark/step_events.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/step_stats.pb.h"

namespace requant {
namespace {

using tensorflow::DeviceStepStats;
using tensorflow::NodeExecStats;
using tensorflow::StepStats;

// The operation in a label such as "[mem 1KB] layer/MatMul = MatMul(a, b)".
std::string OpOf(const NodeExecStats& node) {
  const std::string_view label = node.timeline_label();
  const std::string name = absl::StrCat(node.node_name(), " = ");
  const size_t found = label.find(name);
  if (found == std::string_view::npos) return "";
  const std::string_view rest = label.substr(found + name.size());
  return std::string(rest.substr(0, rest.find('(')));
}

// "CPU:0" of "/job:localhost/replica:0/task:0/device:CPU:0".
std::string ShortDevice(std::string_view device) {
  constexpr std::string_view kMark = "/device:";
  const size_t mark = device.rfind(kMark);
  if (mark != std::string_view::npos) {
    device.remove_prefix(mark + kMark.size());
  }
  return std::string(device);
}

StepEvent EventOf(const NodeExecStats& node, const std::string& device) {
  StepEvent event;
  event.node = node.node_name();
  event.op = OpOf(node);
  event.device = device;
  // Either all times come in nanoseconds, too, or none do.
  if (node.all_start_nanos() > 0) {
    event.start_nanoseconds =
        node.all_start_nanos() + node.op_start_rel_nanos();
    event.nanoseconds = node.op_end_rel_nanos() - node.op_start_rel_nanos();
  } else {
    event.start_nanoseconds =
        1000 * (node.all_start_micros() + node.op_start_rel_micros());
    event.nanoseconds =
        1000 * (node.op_end_rel_micros() - node.op_start_rel_micros());
  }
  event.nanoseconds = std::max<int64_t>(event.nanoseconds, 0);
  return event;
}

}  // namespace

std::vector<StepEvent> StepEvents(const StepStats& stats) {
  std::vector<StepEvent> events;
  for (const DeviceStepStats& device : stats.dev_stats()) {
    const std::string name = ShortDevice(device.device());
    for (const NodeExecStats& node : device.node_stats()) {
      events.push_back(EventOf(node, name));
    }
  }
  std::sort(events.begin(), events.end(),
            [](const StepEvent& a, const StepEvent& b) {
              return std::tie(a.start_nanoseconds, a.node) <
                     std::tie(b.start_nanoseconds, b.node);
            });
  return events;
}

}  // namespace requant
