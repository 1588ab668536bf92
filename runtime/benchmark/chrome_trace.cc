#include "runtime/benchmark/chrome_trace.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/json.h"
#include "runtime/benchmark/step_events.h"

namespace requant {
namespace {

// The row of the batches, above those of the nodes.
constexpr int kBatchRow = 0;

std::string Microseconds(int64_t nanoseconds) {
  return absl::StrFormat("%.3f", 1e-3 * static_cast<double>(nanoseconds));
}

}  // namespace

ChromeTrace::ChromeTrace(std::function<void(std::string_view text)> write)
    : write_(std::move(write)) {
  write_("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [");
}

void ChromeTrace::StartGraph(const std::string& name) {
  graph_ = name;
  batches_ = 0;
  process_of_device_.clear();
}

void ChromeTrace::AddBatch(const std::vector<StepEvent>& events) {
  if (events.empty()) return;
  if (batches_++ == 0) origin_ = events.front().start_nanoseconds;
  const int64_t start = events.front().start_nanoseconds;
  int64_t end = start;
  for (const StepEvent& event : events) {
    end = std::max(end, event.start_nanoseconds + event.nanoseconds);
    Process& process = ProcessOf(event.device);
    const int row = TakeRow(event, &process);
    const std::string op = event.op.empty() ? event.node : event.op;
    WriteEvent({{"name", JsonString(op)},
                {"cat", "\"op\""},
                {"ph", "\"X\""},
                {"ts", Microseconds(event.start_nanoseconds - origin_)},
                {"dur", Microseconds(event.nanoseconds)},
                {"pid", absl::StrCat(process.number)},
                {"tid", absl::StrCat(row)},
                {"args", JsonObject({{"node", JsonString(event.node)},
                                     {"op", JsonString(op)}})}});
  }
  WriteEvent({{"name", JsonString(absl::StrCat("batch ", batches_))},
              {"cat", "\"batch\""},
              {"ph", "\"X\""},
              {"ts", Microseconds(start - origin_)},
              {"dur", Microseconds(end - start)},
              {"pid", absl::StrCat(ProcessOf(events.front().device).number)},
              {"tid", absl::StrCat(kBatchRow)}});
}

void ChromeTrace::Finish() { write_("\n]}\n"); }

ChromeTrace::Process& ChromeTrace::ProcessOf(const std::string& device) {
  Process& process = process_of_device_[device];
  if (process.number != 0) return process;
  process.number = ++processes_;
  WriteEvent({{"name", "\"process_name\""},
              {"ph", "\"M\""},
              {"pid", absl::StrCat(process.number)},
              {"args", JsonObject({{"name", JsonString(absl::StrCat(
                                                graph_, " ", device))}})}});
  NameRow(process.number, kBatchRow, "batches");
  return process;
}

int ChromeTrace::TakeRow(const StepEvent& event, Process* process) {
  const int64_t end = event.start_nanoseconds + event.nanoseconds;
  std::vector<int64_t>& ends = process->row_ends;
  const auto free = std::find_if(ends.begin(), ends.end(), [&](int64_t busy) {
    return busy <= event.start_nanoseconds;
  });
  const int row = static_cast<int>(free - ends.begin()) + kBatchRow + 1;
  if (free != ends.end()) {
    *free = end;
  } else {
    ends.push_back(end);
    NameRow(process->number, row, absl::StrCat("nodes ", row));
  }
  return row;
}

void ChromeTrace::NameRow(int process, int row, const std::string& name) {
  WriteEvent({{"name", "\"thread_name\""},
              {"ph", "\"M\""},
              {"pid", absl::StrCat(process)},
              {"tid", absl::StrCat(row)},
              {"args", JsonObject({{"name", JsonString(name)}})}});
}

void ChromeTrace::WriteEvent(
    const std::vector<std::pair<std::string, std::string>>& event) {
  write_(absl::StrCat(is_first_ ? "\n" : ",\n", JsonObject(event)));
  is_first_ = false;
}

}  // namespace requant
