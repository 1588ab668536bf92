#include "workflows/display/run_figures.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/terminal/progress.h"
#include "workflows/report/stage_figures.h"
#include "workflows/run/run_record.pb.h"

namespace requant {
namespace {

StageState StateOf(TaskRecord::State state) {
  switch (state) {
    case TaskRecord::RUNNING:
      return StageState::kRunning;
    case TaskRecord::DONE:
      return StageState::kDone;
    case TaskRecord::CACHED:
      return StageState::kCached;
    case TaskRecord::FAILED:
      return StageState::kFailed;
    case TaskRecord::GIVEN:
      return StageState::kGiven;
    case TaskRecord::INTERRUPTED:
      return StageState::kInterrupted;
    default:
      return StageState::kWaiting;
  }
}

// The first stage that is compared with the baseline; none: 0.
int FirstUser(const RunRecord& record, const BaselineRecord& baseline) {
  for (int i = 0; i < record.stage_size(); ++i) {
    const VerificationRecord& verification = record.stage(i).verification();
    if (absl::StrCat(verification.evaluation(), "/baseline") ==
        baseline.name()) {
      return i;
    }
  }
  return 0;
}

}  // namespace

std::string SecondsText(double seconds) {
  if (seconds >= 59.95) return HumanDuration(seconds);
  if (seconds < 0.05) return "<0.1 s";
  return absl::StrFormat("%.1f s", seconds);
}

std::vector<RunRow> RowsOf(const RunRecord& record) {
  std::vector<RunRow> rows;
  for (int i = 0; i < record.stage_size(); ++i) {
    for (int j = 0; j < record.baseline_size(); ++j) {
      if (FirstUser(record, record.baseline(j)) == i) rows.push_back({true, j});
    }
    rows.push_back({false, i});
  }
  return rows;
}

StageState StateOf(const StageRecord& stage) {
  if (!stage.left_out_because().empty()) return StageState::kLeftOut;
  const StageState state = StateOf(StateOfTasks(stage));
  if (!IsOver(state) || state == StageState::kFailed ||
      state == StageState::kInterrupted) {
    return state;
  }
  switch (stage.verification().verdict()) {
    case VerificationRecord::FAIL:
      return StageState::kGateFailed;
    case VerificationRecord::INCONCLUSIVE:
      return StageState::kInconclusive;
    default:
      return state;
  }
}

StageState StateOf(const BaselineRecord& baseline) {
  return StateOf(baseline.work().state());
}

bool IsOver(StageState state) {
  return state != StageState::kWaiting && state != StageState::kRunning;
}

const TaskRecord& OwnWork(const StageRecord& stage) {
  const bool is_benchmark =
      stage.has_benchmark() &&
      stage.benchmark().work().state() != TaskRecord::NOT_RUN;
  return is_benchmark ? stage.benchmark().work() : stage.work();
}

double SecondsOf(const StageRecord& stage) {
  return OwnWork(stage).seconds() + stage.verification().work().seconds();
}

const TaskRecord& DecisiveTask(const StageRecord& stage) {
  const StageState own = StateOf(OwnWork(stage).state());
  const bool makes_nothing = !stage.has_work() && !stage.has_benchmark();
  const bool succeeded = makes_nothing || own == StageState::kDone ||
                         own == StageState::kCached ||
                         own == StageState::kGiven;
  return succeeded && stage.has_verification() ? stage.verification().work()
                                               : OwnWork(stage);
}

}  // namespace requant
