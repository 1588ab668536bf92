#include "workflows/run/run_record.h"

#include <sys/utsname.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/process/machine.h"
#include "base/process/subprocess.h"
#include "base/process/tensorflow_child.h"
#include "base/status_macros.h"
#include "base/version.h"
#include "graph/graph_io.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "workflows/language/stage_fields.h"
#include "workflows/run/gates.h"
#include "workflows/workflow.pb.h"

namespace requant {
namespace {

void AddWorkingSets(const CpuFeatures& cpu, ToolRecord* tool) {
  const std::pair<const char*, const InstructionSet*> sets[] = {
      {"avx2", &cpu.avx2},
      {"avx_vnni", &cpu.avx_vnni},
      {"avx512", &cpu.avx512},
      {"avx512_vnni", &cpu.avx512_vnni},
      {"amx_int8", &cpu.amx_int8}};
  for (const auto& [name, set] : sets) {
    if (set->works) tool->add_cpu_feature(name);
  }
}

std::string SystemName() {
  struct utsname name;
  if (uname(&name) != 0) return "";
  return absl::StrCat(name.sysname, " ", name.release, " ", name.machine);
}

// Returns a verification's baseline as people named it, or "" without one.
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
    if (const TaskInput* graph = maker.Find("graph")) return graph->path;
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

// Returns the graph's stage, the stage that verifies this file, or its path.
std::string BenchmarkedName(const Workflow& workflow, const Input& graph) {
  if (graph.has_stage()) return std::string(graph.stage());
  for (const Stage& stage : workflow.stage()) {
    if (stage.has_evaluate() &&
        stage.evaluate().graph().file() == graph.file()) {
      return std::string(stage.name());
    }
  }
  return std::string(graph.file());
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
        added.mutable_benchmark()->add_graph(
            BenchmarkedName(plan.file.workflow, graph));
      }
    } else {
      added.mutable_work();
    }
  }
  if (stage.has_evaluate() && stage.evaluate().graph().has_file()) {
    const auto graph = SummarizeGraphFile(stage.evaluate().graph().file());
    if (graph.ok()) *added.mutable_graph() = *graph;
  }
  if (plan.verify_task[index] >= 0) {
    AddVerification(plan, plan.tasks[plan.verify_task[index]], &added);
  }
}

}  // namespace

absl::StatusOr<RunMachine> ThisMachine() {
  RunMachine machine;
  REQUANT_ASSIGN_OR_RETURN(machine.own_path, OwnPath());
  const CpuFeatures cpu = ProbeCpu();
  machine.environment = TensorFlowEnvironment();
  ToolRecord& tool = machine.tool;
  tool.set_version(kRequantVersion);
  tool.set_tensorflow(REQUANT_TENSORFLOW_VERSION);
  tool.set_cpu(cpu.model);
  AddWorkingSets(cpu, &tool);
  tool.set_cores(ReadCoreLimits().usable());
  tool.set_target(QuantizationTarget(cpu, CachedOneDnnIsaCap()));
  tool.set_system(SystemName());
  return machine;
}

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
    baseline.set_path(task.Find("graph")->path);
  }
  return record;
}

TaskPlace PlaceOf(const Task& task) {
  return {task.stage, task.baseline, task.kind == Task::Kind::kVerify};
}

const TaskRecord& WorkOf(const TaskPlace& place, const RunRecord& record) {
  if (place.stage < 0) return record.baseline(place.baseline).work();
  const StageRecord& stage = record.stage(place.stage);
  if (place.verifies) return stage.verification().work();
  return stage.has_benchmark() ? stage.benchmark().work() : stage.work();
}

TaskRecord* WorkOf(const TaskPlace& place, RunRecord* record) {
  if (place.stage < 0) {
    return record->mutable_baseline(place.baseline)->mutable_work();
  }
  StageRecord* const stage = record->mutable_stage(place.stage);
  if (place.verifies) return stage->mutable_verification()->mutable_work();
  return stage->has_benchmark() ? stage->mutable_benchmark()->mutable_work()
                                : stage->mutable_work();
}

void RecordResult(const Task& task, const CachedTask& result,
                  const std::vector<GateRecord>& gates, RunRecord* record) {
  if (task.kind == Task::Kind::kBaseline) {
    *record->mutable_baseline(task.baseline)->mutable_result() =
        result.evaluation();
    return;
  }
  StageRecord& stage = *record->mutable_stage(task.stage);
  if (task.kind == Task::Kind::kVerify) {
    VerificationRecord& verification = *stage.mutable_verification();
    *verification.mutable_result() = result.evaluation();
    *verification.mutable_gate() = {gates.begin(), gates.end()};
    verification.set_verdict(WorstVerdict(gates));
    return;
  }
  if (result.has_graph()) *stage.mutable_graph() = result.graph();
  if (result.has_benchmark()) {
    *stage.mutable_benchmark()->mutable_result() = result.benchmark();
  }
}

absl::StatusOr<GraphRecord> SummarizeGraphFile(const std::string& path) {
  REQUANT_ASSIGN_OR_RETURN(const tensorflow::GraphDef graph, ReadGraph(path));
  std::map<std::string, int64_t> counts;
  for (const auto& node : graph.node()) ++counts[std::string(node.op())];
  int64_t nodes = graph.node_size();
  // A model that is not frozen has its layers in functions.
  for (const auto& function : graph.library().function()) {
    nodes += function.node_def_size();
    for (const auto& node : function.node_def()) {
      ++counts[std::string(node.op())];
    }
  }
  GraphRecord record;
  record.set_nodes(nodes);
  record.set_bytes(BytesOf(path).value_or(0));
  for (const auto& [op, nodes] : counts) {
    OpRecord& entry = *record.add_op();
    entry.set_op(op);
    entry.set_nodes(nodes);
  }
  return record;
}

}  // namespace requant
