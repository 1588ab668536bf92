#ifndef REQUANT_WORKFLOWS_RUN_TASK_MAKER_H_
#define REQUANT_WORKFLOWS_RUN_TASK_MAKER_H_

// One task's result: its key, whether the store has it, and making it.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "workflows/plan/plan_tasks.h"
#include "workflows/run/run_machine.h"
#include "workflows/run/stage_store.h"
#include "workflows/run/task_command.h"
#include "workflows/run/task_key.h"
#include "workflows/run/task_work.h"

namespace requant {

// A task whose inputs are there.
struct PreparedTask {
  std::vector<ResolvedInput> inputs;
  CommandSettings settings;
  std::vector<KeyPart> parts;
  std::string key;
};

// Thread-safe. Whatever it is given must outlive it.
class TaskMaker {
 public:
  // `run_folder` is where shown paths start. `tamper`: by stage, a program that
  // edits its outputs, with arguments behind blanks.
  TaskMaker(const Plan& plan, const RunMachine& machine,
            const std::string& run_folder,
            const std::map<std::string, std::string>& tamper, StageStore* store)
      : plan_(plan),
        machine_(machine),
        run_folder_(run_folder),
        tamper_(tamper),
        store_(store) {}

  // Finds the inputs of a task of the plan, all tasks that make any being
  // finished. `records`: how many a verification takes, unless as many as the
  // workflow says.
  absl::StatusOr<PreparedTask> Prepare(const Task& task,
                                       const FinishedTasks& finished,
                                       std::optional<int64_t> records) const;

  // What the store has of that key, all its files being as they were made.
  // Errors are as of StageStore::Find.
  absl::StatusOr<FinishedTask> FindIntact(const std::string& key) const;

  // Runs the task's commands and puts what they made into the store. An error
  // is as of DoTaskWork, or that an input changed meanwhile; the store then
  // has nothing of it.
  absl::StatusOr<FinishedTask> Make(const Task& task,
                                    const PreparedTask& prepared,
                                    const TaskWatch& watch) const;

 private:
  std::string TamperOf(const Task& task) const;
  absl::StatusOr<TaskWork> WorkIn(const std::string& folder, const Task& task,
                                  const PreparedTask& prepared) const;

  const Plan& plan_;
  const RunMachine& machine_;
  const std::string& run_folder_;
  const std::map<std::string, std::string>& tamper_;
  StageStore* const store_;
};

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_RUN_TASK_MAKER_H_
