#include "workflows/run/run_places.h"

#include <string>

#include "workflows/language/stage_parts.h"
#include "workflows/run/task_work.h"
#include "workflows/workflow.pb.h"

namespace requant {
namespace {

// A verification's baseline as people named it; "": none.
std::string BaselineName(const Plan& plan, const Task& task) {
  for (const TaskInput& input : task.inputs) {
    if (input.role != "baseline" && input.role != "baseline_predictions") {
      continue;
    }
    if (input.task < 0) return input.path;
    const Task& maker = plan.tasks[input.task];
    if (maker.stage >= 0) {
      return std::string(plan.file.workflow.stage(maker.stage).name());
    }
    for (const TaskInput& from : maker.inputs) {
      if (from.role == "graph") return from.path;
    }
  }
  return "";
}

void AddGivenGraph(const std::string& path, StageRecord* stage) {
  TaskRecord& work = *stage->mutable_work();
  work.set_state(TaskRecord::GIVEN);
  FileRecord& file = *work.add_output();
  file.set_role("graph");
  file.set_path(path);
  const auto graph = SummarizeGraphFile(path);
  if (!graph.ok()) return;
  *stage->mutable_graph() = *graph;
  file.set_bytes(graph->bytes());
}

void AddVerification(const Plan& plan, const Task& task, StageRecord* record) {
  VerificationRecord& verification = *record->mutable_verification();
  verification.mutable_work();
  if (task.evaluation >= 0) {
    verification.set_evaluation(
        plan.file.workflow.evaluation(task.evaluation).name());
  }
  verification.set_baseline(BaselineName(plan, task));
  for (const std::string& note : task.notes) {
    verification.mutable_work()->add_note(note);
  }
}

void AddStage(const Plan& plan, int index, RunRecord* record) {
  const Stage& stage = plan.file.workflow.stage(index);
  StageRecord& added = *record->add_stage();
  added.set_name(stage.name());
  added.set_summary(stage.summary());
  added.set_kind(StageKind(stage));
  added.set_left_out_because(plan.left_out_by[index]);
  if (!plan.given_graph[index].empty()) {
    AddGivenGraph(plan.given_graph[index], &added);
  }
  if (plan.make_task[index] >= 0) {
    if (stage.has_benchmark()) {
      added.mutable_benchmark()->mutable_work();
      for (const Input& graph : stage.benchmark().graph()) {
        added.mutable_benchmark()->add_graph(graph.has_stage() ? graph.stage()
                                                               : graph.file());
      }
    } else {
      added.mutable_work();
    }
  }
  if (plan.verify_task[index] >= 0) {
    AddVerification(plan, plan.tasks[plan.verify_task[index]], &added);
  }
}

}  // namespace

RunRecord StartRecord(const Plan& plan, const RunMachine& machine) {
  RunRecord record;
  const Workflow& workflow = plan.file.workflow;
  record.set_workflow(workflow.name());
  record.set_file(plan.file.path);
  record.set_file_content(plan.file.content);
  record.set_summary(workflow.summary());
  *record.mutable_tool() = machine.tool;
  for (const auto& [name, value] : plan.file.variables) {
    SettingRecord& setting = *record.add_variable();
    setting.set_name(name);
    setting.set_value(value.value);
    setting.set_from(value.from);
  }
  for (int i = 0; i < workflow.stage_size(); ++i) AddStage(plan, i, &record);
  for (const Task& task : plan.tasks) {
    if (task.kind != Task::Kind::kBaseline) continue;
    BaselineRecord& baseline = *record.add_baseline();
    baseline.set_name(task.name);
    baseline.mutable_work();
    for (const TaskInput& input : task.inputs) {
      if (input.role == "graph") baseline.set_path(input.path);
    }
  }
  return record;
}

TaskPlace PlaceOf(const Plan& plan, int task) {
  TaskPlace place;
  place.stage = plan.tasks[task].stage;
  place.verifies = plan.tasks[task].kind == Task::Kind::kVerify;
  if (plan.tasks[task].kind != Task::Kind::kBaseline) return place;
  for (int i = 0; i <= task; ++i) {
    if (plan.tasks[i].kind == Task::Kind::kBaseline) ++place.baseline;
  }
  return place;
}

const TaskRecord& WorkOf(const Plan& plan, int task, const RunRecord& record) {
  const TaskPlace place = PlaceOf(plan, task);
  if (place.stage < 0) return record.baseline(place.baseline).work();
  const StageRecord& stage = record.stage(place.stage);
  if (place.verifies) return stage.verification().work();
  return stage.has_benchmark() ? stage.benchmark().work() : stage.work();
}

TaskRecord* WorkOf(const Plan& plan, int task, RunRecord* record) {
  return const_cast<TaskRecord*>(
      &WorkOf(plan, task, static_cast<const RunRecord&>(*record)));
}

}  // namespace requant
