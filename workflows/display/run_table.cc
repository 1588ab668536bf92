#include "workflows/display/run_table.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/message_text.h"
#include "base/terminal/progress.h"
#include "base/terminal/terminal_text.h"
#include "runtime/statistics/paired_comparison.h"
#include "workflows/report/figures.h"
#include "workflows/run/run_record.pb.h"

namespace requant {
namespace {

// Returns the first stage that is compared with the baseline; none: 0.
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

// The less important go first on a narrow terminal; figures have theirs.
constexpr int kSizeImportance = 4;
constexpr int kTimeImportance = 6;

std::string TimeCell(StageState state, double seconds) {
  if (state == StageState::kLeftOut) return "skipped";
  if (seconds > 0) return SecondsText(seconds);
  switch (state) {
    case StageState::kWaiting:
      return "not run";
    case StageState::kGiven:
      return "given";
    case StageState::kCached:
    case StageState::kGateFailed:
    case StageState::kInconclusive:
      return "cached";
    default:
      return SecondsText(seconds);
  }
}

StyledText VerdictCell(StageState state, VerificationRecord::Verdict verdict) {
  if (state == StageState::kFailed) return {"FAILED", Style::kBad};
  if (state == StageState::kInterrupted) return {"interrupted", Style::kBad};
  return {VerdictName(verdict), state == StageState::kGateFailed ? Style::kBad
                                : state == StageState::kInconclusive
                                    ? Style::kDoubtful
                                    : Style::kGood};
}

void AddColumns(Table* table) {
  table->AddColumn("stage", Table::kAlways, /*left=*/true);
  table->AddColumn("time", kTimeImportance);
  for (const Figure& figure : Figures()) {
    const FigureColumn& column = figure.column;
    if (column.title == nullptr) continue;
    table->AddColumn(column.title, column.importance);
    if (column.interval_title == nullptr) continue;
    table->AddColumn(column.interval_title, column.interval_importance);
  }
  table->AddColumn("size", kSizeImportance);
  table->AddColumn("verdict", Table::kAlways, /*left=*/true);
}

std::string IntervalCell(const StageFigures& stage, const Figure& figure) {
  const std::optional<Estimate> found = figure.of(stage);
  if (!found.has_value() || !found->interval.has_value()) return "";
  return absl::StrCat("[", figure.text(found->interval->low()), ", ",
                      figure.text(found->interval->high()), "]");
}

void AddRow(const std::string& name, StageState state, double seconds,
            const StageFigures& stage, Table* table) {
  std::vector<StyledText> cells = {{PrintableLine(name, true)},
                                   {TimeCell(state, seconds)}};
  for (const Figure& figure : Figures()) {
    if (figure.column.title == nullptr) continue;
    cells.push_back({FigureText(stage, figure)});
    if (figure.column.interval_title == nullptr) continue;
    cells.push_back({IntervalCell(stage, figure)});
  }
  cells.push_back({stage.bytes.value_or(0) > 0 ? SizeText(*stage.bytes) : ""});
  cells.push_back(VerdictCell(state, stage.verdict));
  table->AddRow(cells);
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
  const auto state = static_cast<StageState>(StateOfTasks(stage));
  if (!IsOver(state) || state == StageState::kFailed ||
      state == StageState::kInterrupted) {
    return state;
  }
  const VerificationRecord::Verdict verdict = stage.verification().verdict();
  return verdict == VerificationRecord::FAIL ? StageState::kGateFailed
         : verdict == VerificationRecord::INCONCLUSIVE
             ? StageState::kInconclusive
             : state;
}

StageState StateOf(const BaselineRecord& baseline) {
  return static_cast<StageState>(baseline.work().state());
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
  const TaskRecord::State own = OwnWork(stage).state();
  const bool makes_nothing = !stage.has_work() && !stage.has_benchmark();
  const bool succeeded = makes_nothing || own == TaskRecord::DONE ||
                         own == TaskRecord::CACHED || own == TaskRecord::GIVEN;
  return succeeded && stage.has_verification() ? stage.verification().work()
                                               : OwnWork(stage);
}

std::string RunTable(const RunRecord& record, int columns, bool color) {
  const std::vector<StageFigures> figures = FiguresOfStages(record);
  Table table;
  AddColumns(&table);
  for (const RunRow& row : RowsOf(record)) {
    if (row.is_baseline) {
      const BaselineRecord& baseline = record.baseline(row.index);
      StageFigures found;
      found.result = &baseline.result();
      AddRow(baseline.name(), StateOf(baseline), baseline.work().seconds(),
             found, &table);
    } else {
      const StageRecord& stage = record.stage(row.index);
      AddRow(stage.name(), StateOf(stage), SecondsOf(stage), figures[row.index],
             &table);
    }
  }
  return table.Text(columns, color);
}

}  // namespace requant
