#ifndef REQUANT_WORKFLOWS_RUN_RUNNER_H_
#define REQUANT_WORKFLOWS_RUN_RUNNER_H_

// Runs a plan: what the work folder has is used, the rest is done in order,
// verified, and written down in a RunRecord.

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "workflows/plan/plan.h"
#include "workflows/run/run_record.h"
#include "workflows/run/run_record.pb.h"
#include "workflows/run/stage_store.h"

namespace requant {

struct RunOptions {
  // Where the run's folder will be; commands are recorded relative to it.
  std::string run_folder;
  StageChoice choice;
  // Whether tasks that do not depend on a failed one go on.
  bool keep_going = false;
  // Whether a verdict that is not certain stops the run too.
  bool strict = false;
  // How many tasks may run at once; 0 means as many as help.
  int jobs = 0;
  // For each stage, a program that edits its outputs, with arguments.
  std::map<std::string, std::string> tamper;
};

// Returns what would happen to each task, without running anything.
absl::StatusOr<std::vector<TaskOutlook>> LookAhead(const Plan& plan,
                                                   const RunMachine& machine,
                                                   const RunOptions& options,
                                                   StageStore* store);

struct RunResult {
  RunRecord record;
  // For each task, the key of its outputs in the store, or "" without outputs.
  std::vector<std::string> keys;
  // The signal that ended the run, or 0.
  int interrupted_by = 0;
  // How many of the requested tasks are done, and how many were requested.
  int done = 0;
  int tasks = 0;
  // How many of the tasks that are done came from the cache.
  int cached = 0;
};

// Runs the plan to its end, whatever the outcome. `record` is StartRecord's
// (run_record.h) with what the caller adds. An error means that it could not
// start, for example because an input file is gone or the disk is too small.
// The observer may be called from other threads, one call at a time.
absl::StatusOr<RunResult> RunPlan(const Plan& plan, const RunMachine& machine,
                                  const RunOptions& options, RunRecord record,
                                  StageStore* store, RunObserver* observer);

// Returns 0, 1, 3, or 128 plus the signal.
int ExitCodeOf(const RunResult& result, bool strict);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_RUN_RUNNER_H_
