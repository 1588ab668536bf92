#include "workflows/run/task_maker.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace requant {

std::string TaskMaker::TamperOf(const Task& task) const {
  if (task.kind != Task::Kind::kMake) return "";
  const auto found = tamper_.find(plan_.file.workflow.stage(task.stage).name());
  return found == tamper_.end() ? "" : found->second;
}

absl::StatusOr<PreparedTask> TaskMaker::Prepare(
    const Task& task, const FinishedTasks& finished,
    std::optional<int64_t> records) const {
  PreparedTask prepared;
  prepared.settings = SettingsOn(machine_);
  prepared.settings.records = records;
  REQUANT_ASSIGN_OR_RETURN(prepared.inputs, ResolveInputs(plan_, task, finished,
                                                          run_folder_, store_));
  REQUANT_ASSIGN_OR_RETURN(
      prepared.parts, TaskKeyParts(plan_, task, prepared.inputs, machine_,
                                   prepared.settings, TamperOf(task), store_));
  prepared.key = KeyOf(prepared.parts);
  return prepared;
}

absl::StatusOr<FinishedTask> TaskMaker::FindIntact(
    const std::string& key) const {
  REQUANT_ASSIGN_OR_RETURN(CachedTask cached, store_->Find(key));
  for (const FileRecord& output : cached.work().output()) {
    REQUANT_RETURN_IF_ERROR(store_->Check(key, output));
  }
  return FinishedTask{key, std::move(cached)};
}

absl::StatusOr<TaskWork> TaskMaker::WorkIn(const std::string& folder,
                                           const Task& task,
                                           const PreparedTask& prepared) const {
  TaskPaths paths;
  for (const ResolvedInput& input : prepared.inputs) {
    paths.inputs.push_back(input.path);
  }
  for (const TaskOutput& output : task.outputs) {
    paths.outputs.push_back(absl::StrCat(folder, "/", output.file));
  }
  TaskWork work;
  work.task = &task;
  work.folder = folder;
  work.tamper = TamperOf(task);
  work.is_benchmark = MeasuresTime(plan_, task);
  work.output_paths = paths.outputs;
  REQUANT_ASSIGN_OR_RETURN(work.commands,
                           TaskCommands(plan_, task, paths, prepared.settings));
  return work;
}

absl::StatusOr<FinishedTask> TaskMaker::Make(const Task& task,
                                             const PreparedTask& prepared,
                                             const TaskWatch& watch) const {
  REQUANT_ASSIGN_OR_RETURN(const std::string folder, store_->NewFolder());
  absl::Cleanup discard = [&] { store_->Discard(folder); };
  REQUANT_ASSIGN_OR_RETURN(const TaskWork work, WorkIn(folder, task, prepared));
  REQUANT_ASSIGN_OR_RETURN(CachedTask done, DoTaskWork(work, machine_, watch));
  REQUANT_RETURN_IF_ERROR(CheckUnchanged(task, prepared.inputs, store_));
  done.set_task(task.name);
  for (const KeyPart& part : prepared.parts) *done.add_part() = part;
  REQUANT_RETURN_IF_ERROR(store_->Publish(folder, prepared.key, done));
  return FinishedTask{prepared.key, std::move(done)};
}

}  // namespace requant
