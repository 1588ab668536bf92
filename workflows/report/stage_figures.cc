#include "workflows/report/stage_figures.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/time/time.h"
#include "runtime/benchmark/benchmark_report.h"
#include "runtime/evaluation.pb.h"
#include "runtime/statistics/timing.h"
#include "workflows/run/run_record.pb.h"

namespace requant {
namespace {

std::vector<const TaskRecord*> TasksOf(const StageRecord& stage) {
  std::vector<const TaskRecord*> tasks;
  if (stage.has_work()) tasks.push_back(&stage.work());
  if (stage.has_verification()) tasks.push_back(&stage.verification().work());
  if (stage.benchmark().has_work()) tasks.push_back(&stage.benchmark().work());
  return tasks;
}

StageFigures FiguresOfStage(const StageRecord& stage) {
  StageFigures figures;
  figures.state = stage.left_out_because().empty()
                      ? StateName(StateOfTasks(stage))
                      : "left_out";
  for (const TaskRecord* task : TasksOf(stage)) {
    figures.seconds += task->seconds();
    figures.work_seconds += task->work_seconds();
  }
  if (stage.has_graph()) {
    figures.nodes = stage.graph().nodes();
    figures.bytes = stage.graph().bytes();
  }
  figures.result = &stage.verification().result();
  figures.verdict = stage.verification().verdict();
  return figures;
}

int FindStage(const RunRecord& record, std::string_view name) {
  for (int i = 0; i < record.stage_size(); ++i) {
    if (record.stage(i).name() == name) return i;
  }
  return -1;
}

// What the two graphs' speeds in one benchmark say, if there is such a
// benchmark; its intervals hold when the baseline was its first graph.
std::optional<PairedRatio> BenchmarkedSpeed(const RunRecord& record,
                                            std::string_view baseline,
                                            std::string_view stage) {
  std::optional<PairedRatio> speed;
  for (const StageRecord& candidate : record.stage()) {
    const auto& names = candidate.benchmark().graph();
    const std::vector<GraphFigures> figures =
        CheckedFiguresOf(candidate.benchmark());
    const int base =
        std::find(names.begin(), names.end(), baseline) - names.begin();
    const int graph =
        std::find(names.begin(), names.end(), stage) - names.begin();
    if (base >= figures.size() || graph >= figures.size()) continue;
    if (base == 0) {
      speed = figures[graph].speed;
    } else if (figures[base].speed.median > 0) {
      speed =
          PairedRatio{figures[graph].speed.median / figures[base].speed.median,
                      std::nullopt};
    }
  }
  return speed;
}

std::optional<int64_t> BaselineFileBytes(const RunRecord& record,
                                         std::string_view path) {
  for (const BaselineRecord& baseline : record.baseline()) {
    if (baseline.path() != path) continue;
    for (const FileRecord& file : baseline.work().input()) {
      if (file.path() == path && file.bytes() > 0) return file.bytes();
    }
  }
  return std::nullopt;
}

void CompareWithBaseline(const RunRecord& record,
                         const std::vector<StageFigures>& figures,
                         RunSummary* summary) {
  const StageRecord& stage = record.stage(summary->stage);
  const StageFigures& own = figures[summary->stage];
  const EvaluateResult& result = stage.verification().result();
  std::optional<double> baseline_speed =
      RecordsPerSecond(result.baseline_timing());
  if (summary->baseline_stage >= 0) {
    const StageFigures& base = figures[summary->baseline_stage];
    summary->baseline_bytes = base.bytes;
    if (base.result->scores().has_accuracy()) {
      summary->baseline_accuracy = base.result->scores().accuracy();
    }
    if (!baseline_speed) {
      baseline_speed = RecordsPerSecond(base.result->timing());
    }
    summary->speed = BenchmarkedSpeed(record, summary->baseline, stage.name());
    summary->speed_is_benchmarked = summary->speed.has_value();
  } else {
    summary->baseline_bytes = BaselineFileBytes(record, summary->baseline);
  }
  if (result.baseline_scores().has_accuracy()) {
    summary->baseline_accuracy = result.baseline_scores().accuracy();
  }
  const std::optional<double> speed = RecordsPerSecond(result.timing());
  if (!summary->speed && baseline_speed && *baseline_speed > 0 && speed) {
    summary->speed = PairedRatio{*speed / *baseline_speed, std::nullopt};
  }
  if (summary->baseline_bytes && own.bytes && *own.bytes > 0) {
    summary->size_ratio = static_cast<double>(*summary->baseline_bytes) /
                          static_cast<double>(*own.bytes);
  }
}

}  // namespace

std::vector<GraphFigures> CheckedFiguresOf(const BenchmarkRecord& benchmark) {
  const BenchmarkResult& result = benchmark.result();
  if (result.entry_size() == 0 ||
      result.entry_size() != benchmark.graph_size()) {
    return {};
  }
  const int rounds = result.entry(0).round_size();
  for (const EntryMeasurement& entry : result.entry()) {
    if (rounds == 0 || entry.round_size() != rounds) return {};
  }
  return FiguresOf(result);
}

std::vector<StageFigures> FiguresOfStages(const RunRecord& record) {
  std::vector<StageFigures> all;
  for (const StageRecord& stage : record.stage()) {
    all.push_back(FiguresOfStage(stage));
  }
  for (const StageRecord& stage : record.stage()) {
    const std::vector<GraphFigures> figures =
        CheckedFiguresOf(stage.benchmark());
    for (size_t i = 0; i < figures.size(); ++i) {
      const int graph = FindStage(record, stage.benchmark().graph(i));
      if (graph >= 0) all[graph].benchmark = figures[i];
    }
  }
  return all;
}

RunSummary SummaryOf(const RunRecord& record,
                     const std::vector<StageFigures>& figures) {
  RunSummary summary;
  for (int i = 0; i < record.stage_size(); ++i) {
    const VerificationRecord& verification = record.stage(i).verification();
    if (!verification.result().has_comparison()) continue;
    summary.stage = i;
    summary.baseline = verification.baseline();
  }
  if (summary.stage < 0) return summary;
  summary.baseline_stage = FindStage(record, summary.baseline);
  CompareWithBaseline(record, figures, &summary);
  return summary;
}

TaskRecord::State StateOfTasks(const StageRecord& stage) {
  const std::vector<const TaskRecord*> tasks = TasksOf(stage);
  for (const TaskRecord::State state :
       {TaskRecord::FAILED, TaskRecord::INTERRUPTED, TaskRecord::RUNNING,
        TaskRecord::NOT_RUN, TaskRecord::DONE, TaskRecord::CACHED}) {
    for (const TaskRecord* task : tasks) {
      if (task->state() == state) return state;
    }
  }
  return tasks.empty() ? TaskRecord::NOT_RUN : TaskRecord::GIVEN;
}

std::string OutcomeName(RunRecord::Outcome outcome) {
  return absl::AsciiStrToLower(RunRecord::Outcome_Name(outcome));
}

std::string StateName(TaskRecord::State state) {
  return absl::AsciiStrToLower(TaskRecord::State_Name(state));
}

std::string VerdictName(VerificationRecord::Verdict verdict) {
  if (verdict == VerificationRecord::NONE) return "";
  return VerificationRecord::Verdict_Name(verdict);
}

std::string UtcTime(int64_t milliseconds) {
  return absl::FormatTime("%Y-%m-%d%ET%H:%M:%E3SZ",
                          absl::FromUnixMillis(milliseconds),
                          absl::UTCTimeZone());
}

}  // namespace requant
