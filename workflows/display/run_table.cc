#include "workflows/display/run_table.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/message_text.h"
#include "base/terminal/terminal_text.h"
#include "base/terminal/table.h"
#include "runtime/statistics/paired_comparison.h"
#include "workflows/display/run_figures.h"
#include "workflows/report/figures.h"
#include "workflows/report/stage_figures.h"
#include "workflows/run/run_record.pb.h"

namespace requant {
namespace {

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
  switch (state) {
    case StageState::kFailed:
      return {"FAILED", Style::kBad};
    case StageState::kInterrupted:
      return {"interrupted", Style::kBad};
    case StageState::kGateFailed:
      return {VerdictName(verdict), Style::kBad};
    case StageState::kInconclusive:
      return {VerdictName(verdict), Style::kDoubtful};
    default:
      return {VerdictName(verdict), Style::kGood};
  }
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
