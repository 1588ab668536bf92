#ifndef REQUANT_RUNTIME_BENCHMARK_CHROME_TRACE_H_
#define REQUANT_RUNTIME_BENCHMARK_CHROME_TRACE_H_

// Traces of graphs as JSON that chrome://tracing and Perfetto load: a process
// per graph and device, an event per run of a node, a row for the batches as a
// whole and as many rows for nodes as run at the same time. (TensorFlow does
// not tell which thread ran a node.)

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/benchmark/step_events.h"

namespace requant {

class ChromeTrace {
 public:
  // The text goes to `write`, piece by piece.
  explicit ChromeTrace(std::function<void(std::string_view text)> write);

  // From now on, events are those of this graph. Its time starts at 0, so that
  // graphs are seen side by side.
  void StartGraph(const std::string& name);

  // One batch of that graph, later than those before it. `events` are sorted by
  // start time.
  void AddBatch(const std::vector<StepEvent>& events);

  // Ends the text; nothing can be added then.
  void Finish();

 private:
  struct Process {
    int number = 0;
    // When the last event of each row of nodes ends.
    std::vector<int64_t> row_ends;
  };

  // The process of that device, which is named where it first occurs.
  Process& ProcessOf(const std::string& device);
  // The number of the first row that is free for the event, which then takes
  // it.
  int TakeRow(const StepEvent& event, Process* process);
  void NameRow(int process, int row, const std::string& name);
  void WriteEvent(
      const std::vector<std::pair<std::string, std::string>>& event);

  const std::function<void(std::string_view)> write_;
  bool is_first_ = true;
  std::string graph_;
  int64_t batches_ = 0;
  int64_t origin_ = 0;
  int processes_ = 0;
  // Of the graph at hand, by device.
  std::map<std::string, Process> process_of_device_;
};

}  // namespace requant

#endif  // REQUANT_RUNTIME_BENCHMARK_CHROME_TRACE_H_
