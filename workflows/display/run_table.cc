#include "workflows/display/run_table.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/message_text.h"
#include "base/terminal/progress.h"
#include "base/terminal/styled_text.h"
#include "base/terminal/terminal_text.h"
#include "runtime/evaluation.pb.h"
#include "runtime/statistics/batch_timer.h"
#include "runtime/statistics/paired_comparison.h"
#include "workflows/display/run_figures.h"
#include "workflows/report/stage_figures.h"
#include "workflows/run/run_record.pb.h"

namespace requant {
namespace {

enum Column {
  kStage,
  kTime,
  kAccuracy,
  kDifference,
  kInterval,
  kAgreement,
  kChange,
  kRate,
  kSize,
  kVerdict,
  kColumns,
};

constexpr std::array<std::string_view, kColumns> kTitles = {
    "stage",     "time",        "accuracy",  "diff (points)", "95 % interval",
    "agreement", "mean change", "records/s", "size",          "verdict"};

// What goes on a narrow terminal, the first first.
constexpr Column kExpendable[] = {kRate,   kInterval,   kAgreement,
                                  kSize,   kDifference, kTime,
                                  kChange, kAccuracy};

constexpr int kGap = 2;

struct Row {
  std::array<std::string, kColumns> cells;
  Style verdict_style = Style::kPlain;
};

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

void FillResult(const EvaluateResult& result, Row* row) {
  const Comparison& comparison = result.comparison();
  if (result.scores().has_accuracy()) {
    row->cells[kAccuracy] = AccuracyText(result.scores().accuracy());
  }
  if (comparison.has_accuracy()) {
    const AccuracyDifference& accuracy = comparison.accuracy();
    row->cells[kDifference] = PointsText(accuracy.points());
    row->cells[kInterval] =
        absl::StrCat("[", PointsText(accuracy.interval().low()), ", ",
                     PointsText(accuracy.interval().high()), "]");
  }
  if (comparison.has_agreement()) {
    row->cells[kAgreement] = AgreementText(comparison.agreement().share());
  }
  const std::optional<Estimate> change = MeanOutputChange(result.comparison());
  if (change.has_value()) row->cells[kChange] = ChangeText(change->value);
  const std::optional<double> rate = RecordsPerSecond(result.timing());
  if (rate.has_value() && *rate > 0) row->cells[kRate] = HumanRate(*rate);
}

void FillVerdict(StageState state, VerificationRecord::Verdict verdict,
                 Row* row) {
  std::string& cell = row->cells[kVerdict];
  switch (state) {
    case StageState::kFailed:
      cell = "FAILED";
      row->verdict_style = Style::kBad;
      return;
    case StageState::kInterrupted:
      cell = "interrupted";
      row->verdict_style = Style::kBad;
      return;
    case StageState::kGateFailed:
      row->verdict_style = Style::kBad;
      break;
    case StageState::kInconclusive:
      row->verdict_style = Style::kDoubtful;
      break;
    default:
      row->verdict_style = Style::kGood;
      break;
  }
  cell = std::string(VerdictText(verdict));
}

Row StageRow(const StageRecord& stage) {
  Row row;
  const StageState state = StateOf(stage);
  row.cells[kStage] = PrintableLine(stage.name(), true);
  row.cells[kTime] = TimeCell(state, SecondsOf(stage));
  FillResult(stage.verification().result(), &row);
  if (stage.has_graph() && stage.graph().bytes() > 0) {
    row.cells[kSize] = SizeText(stage.graph().bytes());
  }
  FillVerdict(state, stage.verification().verdict(), &row);
  return row;
}

Row BaselineRow(const BaselineRecord& baseline) {
  Row row;
  const StageState state = StateOf(baseline);
  row.cells[kStage] = PrintableLine(baseline.name(), true);
  row.cells[kTime] = TimeCell(state, baseline.work().seconds());
  FillResult(baseline.result(), &row);
  FillVerdict(state, VerificationRecord::NONE, &row);
  return row;
}

// Of each column; 0 for one that is left out.
using Widths = std::array<int, kColumns>;

Widths WidthsOf(const std::vector<Row>& rows) {
  Widths widths = {};
  for (const Row& row : rows) {
    for (size_t i = 0; i < kColumns; ++i) {
      widths[i] = std::max(widths[i], DisplayWidth(row.cells[i]));
    }
  }
  for (size_t i = 0; i < kColumns; ++i) {
    if (widths[i] == 0) continue;
    widths[i] = std::max(widths[i], DisplayWidth(kTitles[i]));
  }
  return widths;
}

int TotalWidth(const Widths& widths) {
  int total = -kGap;
  for (int width : widths) total += width == 0 ? 0 : width + kGap;
  return total;
}

void AppendRow(const Row& row, const Widths& widths, bool color,
               std::string* text) {
  StyledLine line;
  for (size_t i = 0; i < kColumns; ++i) {
    if (widths[i] == 0) continue;
    const bool to_the_left = i == kStage || i == kVerdict;
    line.push_back({to_the_left ? PaddedRight(row.cells[i], widths[i])
                                : PaddedLeft(row.cells[i], widths[i]),
                    i == kVerdict ? row.verdict_style : Style::kPlain});
    line.push_back({std::string(kGap, ' ')});
  }
  absl::StrAppend(text, Render(line, TotalWidth(widths), color).text, "\n");
}

}  // namespace

std::string RunTable(const RunRecord& record, int columns, bool color) {
  std::vector<Row> rows;
  for (const RunRow& row : RowsOf(record)) {
    rows.push_back(row.is_baseline ? BaselineRow(record.baseline(row.index))
                                   : StageRow(record.stage(row.index)));
  }
  Widths widths = WidthsOf(rows);
  for (Column column : kExpendable) {
    if (columns == 0 || TotalWidth(widths) <= columns) break;
    widths[column] = 0;
  }
  Row titles;
  for (size_t i = 0; i < kColumns; ++i) titles.cells[i] = kTitles[i];
  std::string text;
  AppendRow(titles, widths, color, &text);
  for (const Row& row : rows) AppendRow(row, widths, color, &text);
  return text;
}

}  // namespace requant
