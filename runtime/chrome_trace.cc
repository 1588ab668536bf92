#include "runtime/chrome_trace.h"

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
#include "runtime/step_events.h"

namespace requant {
namespace {

// The row of the batches, above the threads.
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
  row_of_thread_.clear();
  rows_of_process_.clear();
}

void ChromeTrace::AddBatch(const std::vector<StepEvent>& events) {
  if (events.empty()) return;
  if (batches_++ == 0) origin_ = events.front().start_nanoseconds;
  const int64_t start = events.front().start_nanoseconds;
  int64_t end = start;
  for (const StepEvent& event : events) {
    end = std::max(end, event.start_nanoseconds + event.nanoseconds);
    const int process = Process(event.device);
    const int row = Row(process, event.thread);
    const std::string op = event.op.empty() ? event.node : event.op;
    WriteEvent({{"name", JsonString(op)},
                {"cat", "\"op\""},
                {"ph", "\"X\""},
                {"ts", Microseconds(event.start_nanoseconds - origin_)},
                {"dur", Microseconds(event.nanoseconds)},
                {"pid", absl::StrCat(process)},
                {"tid", absl::StrCat(row)},
                {"args", JsonObject({{"node", JsonString(event.node)},
                                     {"op", JsonString(op)}})}});
  }
  WriteEvent({{"name", JsonString(absl::StrCat("batch ", batches_))},
              {"cat", "\"batch\""},
              {"ph", "\"X\""},
              {"ts", Microseconds(start - origin_)},
              {"dur", Microseconds(end - start)},
              {"pid", absl::StrCat(Process(events.front().device))},
              {"tid", absl::StrCat(kBatchRow)}});
}

void ChromeTrace::Finish() { write_("\n]}\n"); }

int ChromeTrace::Process(const std::string& device) {
  const auto [place, is_new] =
      process_of_device_.try_emplace(device, processes_ + 1);
  if (!is_new) return place->second;
  const int process = ++processes_;
  WriteEvent({{"name", "\"process_name\""},
              {"ph", "\"M\""},
              {"pid", absl::StrCat(process)},
              {"args", JsonObject({{"name", JsonString(absl::StrCat(
                                                graph_, " ", device))}})}});
  NameRow(process, kBatchRow, "batches");
  rows_of_process_[process] = kBatchRow;
  return process;
}

int ChromeTrace::Row(int process, uint32_t thread) {
  const auto [place, is_new] = row_of_thread_.try_emplace({process, thread}, 0);
  if (!is_new) return place->second;
  const int row = ++rows_of_process_[process];
  place->second = row;
  NameRow(process, row, absl::StrCat("thread ", row));
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
