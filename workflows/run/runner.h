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
  // After a failure, what does not depend on it goes on.
  bool keep_going = false;
  // A verdict that is not certain stops the run too.
  bool strict = false;
  // Tasks side by side; 0: as many as help.
  int jobs = 0;
  // By stage: a program that edits its outputs, with arguments after blanks.
  std::map<std::string, std::string> tamper;
};

// Returns by task what would become of it. Nothing runs.
absl::StatusOr<std::vector<TaskOutlook>> LookAhead(const Plan& plan,
                                                   const RunMachine& machine,
                                                   const RunOptions& options,
                                                   StageStore* store);

struct RunResult {
  RunRecord record;
  // By task: the key of its outputs in the store; "": there are none.
  std::vector<std::string> keys;
  // The signal that ended the run; 0: none.
  int interrupted_by = 0;
  // Counts the tasks that were asked for.
  int done = 0;
  int tasks = 0;
  // How many of those that are done the cache had.
  int cached = 0;
};

// Runs the plan to its end, whatever the outcome. `record` is StartRecord's
// (run_record.h) with what the caller adds. An error is one that kept it from
// starting, such as an input file that is gone or too small a disk. The
// observer may be called from other threads, one call at a time.
absl::StatusOr<RunResult> RunPlan(const Plan& plan, const RunMachine& machine,
                                  const RunOptions& options, RunRecord record,
                                  StageStore* store, RunObserver* observer);

// Returns 0, 1, 3, or 128 + signal.
int ExitCodeOf(const RunResult& result, bool strict);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_RUN_RUNNER_H_
