#ifndef REQUANT_WORKFLOWS_RUN_RUN_RECORD_H_
#define REQUANT_WORKFLOWS_RUN_RUN_RECORD_H_

// The record of a run: what it says of the machine, where each task of the plan
// has its place, and how results get there.

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "workflows/plan/plan.h"
#include "workflows/run/run_observer.h"
#include "workflows/run/run_record.pb.h"
#include "workflows/run/stage_store.pb.h"

namespace requant {

struct RunMachine {
  // The real path of the running program, beside which the others are.
  std::string own_path;
  // Threads that can run at once.
  int cores = 1;
  // What quantization's target "host" means.
  std::string target;
  // For children that load TensorFlow (base/process/machine.h).
  std::vector<std::pair<std::string, std::string>> environment;
  // Instruction sets that work, such as "avx2".
  std::vector<std::string> features;
  ToolRecord tool;
};

absl::StatusOr<RunMachine> ThisMachine();

// Returns the record before anything ran: workflow, variables, machine and
// stages.
RunRecord StartRecord(const Plan& plan, const RunMachine& machine);

TaskPlace PlaceOf(const Task& task);

// Returns the task's own record, in a record of the same plan.
TaskRecord* WorkOf(const Task& task, RunRecord* record);
const TaskRecord& WorkOf(const Task& task, const RunRecord& record);

// Adds what a task found, and how its gates judged that.
void RecordResult(const Task& task, const CachedTask& result,
                  const std::vector<GateRecord>& gates, RunRecord* record);

// Returns sizes and operations of a graph's file.
absl::StatusOr<GraphRecord> SummarizeGraphFile(const std::string& path);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_RUN_RUN_RECORD_H_
