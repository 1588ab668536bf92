#ifndef REQUANT_WORKFLOWS_RUN_TASK_MAKER_H_
#define REQUANT_WORKFLOWS_RUN_TASK_MAKER_H_

// One task's result: its key, whether the store has it, whether the disk has
// space for it, and making it: its programs run one after the other and leave
// their outputs in a folder.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/terminal/progress.h"
#include "workflows/plan/plan.h"
#include "workflows/run/run_record.h"
#include "workflows/run/stage_store.h"
#include "workflows/run/task_command.h"

namespace requant {

// A task whose inputs exist.
struct PreparedTask {
  std::vector<ResolvedInput> inputs;
  CommandSettings settings;
  std::vector<KeyPart> parts;
  std::string key;
};

struct TaskWatch {
  std::function<void(const ProgressReport& report)> on_progress;
  // Gets each warning as it comes.
  std::function<void(const std::string& warning)> on_warning;
  // The work is abandoned once this is true.
  const std::atomic<bool>* stop = nullptr;
};

// Is thread-safe. The constructor's arguments must outlive it.
class TaskMaker {
 public:
  // Shown paths are relative to `run_folder`. `tamper` is that of RunOptions.
  TaskMaker(const Plan& plan, const RunMachine& machine,
            const std::string& run_folder,
            const std::map<std::string, std::string>& tamper, StageStore* store)
      : plan_(plan),
        machine_(machine),
        run_folder_(run_folder),
        tamper_(tamper),
        store_(store) {}

  // Finds the inputs of one of the plan's tasks. All tasks that make them must
  // be finished. `records` is how many records a verification takes, if not as
  // many as the workflow says.
  absl::StatusOr<PreparedTask> Prepare(const Task& task,
                                       const FinishedTasks& finished,
                                       std::optional<int64_t> records) const;

  // Returns the store's result for this key if all its files are as they were
  // made. Errors are those of StageStore::Find.
  absl::StatusOr<FinishedTask> FindIntact(const std::string& key) const;

  // Checks, several at a time, whether files of the store's results changed.
  // Returns each change with the index of the result.
  std::vector<std::pair<int, absl::Status>> FindChanged(
      const std::vector<FinishedTask>& results) const;

  // Runs the task's commands and, unless there is an error, puts what they made
  // into the store. If a program failed, the error is the sentence that it
  // wrote. Cancelled means that it was interrupted or stopped. Also fails if an
  // input changed meanwhile.
  absl::StatusOr<FinishedTask> Make(const Task& task,
                                    const PreparedTask& prepared,
                                    const TaskWatch& watch) const;

  // Returns the record of the work: what was made and read, the commands as a
  // shell in the run's folder takes them, and what the user should know.
  TaskRecord RecordOf(const Task& task, const PreparedTask& prepared,
                      const FinishedTask& finished) const;

  // Fails with ResourceExhausted unless the store's disk has space for what
  // `tasks`, given by index, are expected to write; the message says how much
  // is free, how much is needed, and what to do. Is OK without tasks, and if
  // the free space is not known.
  absl::Status CheckSpace(const std::vector<int>& tasks) const;

 private:
  std::string TamperOf(const Task& task) const;
  double ExpectedBytes(const Task& task) const;

  const Plan& plan_;
  const RunMachine& machine_;
  const std::string& run_folder_;
  const std::map<std::string, std::string>& tamper_;
  StageStore* const store_;
};

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_RUN_TASK_MAKER_H_
