#include "workflows/display/run_conclusion.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/message_text.h"
#include "base/terminal/progress.h"
#include "base/terminal/terminal_text.h"
#include "base/text/printable.h"
#include "runtime/evaluation.pb.h"
#include "runtime/statistics/paired_comparison.h"
#include "workflows/run/gates.h"

namespace requant {
namespace {

// --- The table.

// Narrow terminals drop the least important first. Figures have their own.
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

void AddRow(const RunRow& row, Table* table) {
  const StageFigures& stage = row.figures;
  std::vector<StyledText> cells = {{PrintableLine(row.name, true)},
                                   {TimeCell(row.state, stage.seconds)}};
  for (const Figure& figure : Figures()) {
    if (figure.column.title == nullptr) continue;
    cells.push_back({FigureText(stage, figure)});
    if (figure.column.interval_title == nullptr) continue;
    cells.push_back({IntervalCell(stage, figure)});
  }
  cells.push_back({stage.bytes.value_or(0) > 0 ? SizeText(*stage.bytes) : ""});
  cells.push_back(VerdictCell(row.state, stage.verdict));
  table->AddRow(cells);
}

// Returns the first of the stage's tasks that did not succeed, or else its
// last.
const TaskRecord& DecisiveTask(const StageRecord& stage) {
  const TaskRecord* decisive = &TaskRecord::default_instance();
  for (const TaskRecord* task : TasksOf(stage)) {
    decisive = task;
    if (task->state() != TaskRecord::DONE &&
        task->state() != TaskRecord::CACHED &&
        task->state() != TaskRecord::GIVEN) {
      break;
    }
  }
  return *decisive;
}

// Returns the gate that decided on the verdict.
std::string DecisiveGate(const VerificationRecord& verification) {
  for (const GateRecord& gate : verification.gate()) {
    if (gate.verdict() == verification.verdict()) return gate.name();
  }
  return "";
}

std::string MessageOf(const StageRecord& stage, StageState state) {
  switch (state) {
    case StageState::kLeftOut:
      return stage.left_out_because();
    case StageState::kGateFailed:
    case StageState::kInconclusive:
      return DecisiveGate(stage.verification());
    case StageState::kInterrupted:
      return "interrupted";
    case StageState::kFailed:
    case StageState::kWaiting:
      return DecisiveTask(stage).message();
    default:
      return "";
  }
}

RunRow RowOf(const BaselineRecord& baseline, int index) {
  const auto state = static_cast<StageState>(baseline.work().state());
  RunRow row = {{-1, index}, baseline.name(), state, {}, ""};
  row.figures.seconds = baseline.work().seconds();
  row.figures.result = &baseline.result();
  row.message = state == StageState::kInterrupted ? "interrupted"
                                                  : baseline.work().message();
  return row;
}

RunRow RowOf(const StageRecord& stage, int index, const StageFigures& figures) {
  const StageState state = StateOf(stage);
  RunRow row = {{index}, stage.name(), state, figures, MessageOf(stage, state)};
  const bool is_made = state == StageState::kWaiting && figures.seconds > 0;
  if (is_made && row.message.empty()) row.message = "made";
  return row;
}

// --- What follows the table.

// How many of the last lines of a failed task are shown.
constexpr int kMostNotes = 20;

// A text whose paragraphs have at most 80 columns.
class Text {
 public:
  explicit Text(bool color) : color_(color) {}

  void Verdict(std::string_view word, Style style, std::string_view sentence) {
    std::string paragraph;
    AppendWrapped(absl::StrCat(word, ": ", sentence), 0, &paragraph);
    absl::StrAppend(&text_, "\n", Styled(std::string(word), style, color_),
                    std::string_view(paragraph).substr(word.size()));
  }
  void Sentence(std::string_view sentence, size_t indent = 2) {
    AppendWrapped(PrintableLine(sentence, true), indent, &text_);
  }
  // Adds a line that is never broken: a path or a command.
  void Line(std::string_view line, size_t indent = 2) {
    absl::StrAppend(&text_, std::string(indent, ' '), PrintableLine(line, true),
                    "\n");
  }

  const std::string& text() const { return text_; }

 private:
  const bool color_;
  std::string text_;
};

std::vector<const StageRecord*> StagesIn(const RunRecord& record,
                                         StageState state) {
  std::vector<const StageRecord*> stages;
  for (const StageRecord& stage : record.stage()) {
    if (StateOf(stage) == state) stages.push_back(&stage);
  }
  return stages;
}

std::string StageNames(const std::vector<const StageRecord*>& stages) {
  return absl::StrCat(
      stages.size() == 1 ? "stage " : "stages ",
      absl::StrJoin(stages, ", ", [](std::string* out, const StageRecord* it) {
        absl::StrAppend(out, it->name());
      }));
}

void SayAccuracy(const StageFigures& now, const RunSummary& summary,
                 Text* text) {
  const std::optional<Estimate> accuracy = FigureOf(now, "accuracy");
  const std::optional<Estimate> gain = FigureOf(now, "difference_points");
  const std::optional<Estimate> mean = FigureOf(now, "mean_output_change");
  if (accuracy.has_value()) {
    std::string line =
        absl::StrCat("accuracy  ", AccuracyText(accuracy->value));
    if (summary.baseline_accuracy.has_value()) {
      absl::StrAppend(&line, " from ",
                      AccuracyText(*summary.baseline_accuracy));
    }
    if (gain.has_value()) {
      absl::StrAppend(&line, ", ", PointsText(gain->value), " points (",
                      PointsText(gain->interval->low()), " to ",
                      PointsText(gain->interval->high()), ")");
    }
    text->Line(line);
  }
  if (const auto rmse = FigureOf(now, "rmse"); rmse.has_value()) {
    text->Line(absl::StrFormat("RMSE      %.4g", rmse->value) +
               (summary.baseline_rmse
                    ? absl::StrFormat(" from %.4g", *summary.baseline_rmse)
                    : ""));
  }
  if (mean.has_value()) {
    text->Line(
        absl::StrFormat("outputs   change by %s on average, %s at most",
                        ChangeText(mean->value),
                        ChangeText(FigureOf(now, "max_output_change")->value)));
  }
}

void SaySizeAndSpeed(const StageFigures& now, const RunSummary& summary,
                     Text* text) {
  if (summary.size_ratio.has_value()) {
    text->Line(absl::StrFormat(
        "size      %s from %s, a factor of %.2f", SizeText(*now.bytes),
        SizeText(*summary.baseline_bytes), *summary.size_ratio));
  }
  if (!summary.speed.has_value()) return;
  std::string line =
      absl::StrFormat("speed     %.2f times as fast", summary.speed->median);
  if (summary.speed->interval.has_value()) {
    absl::StrAppendFormat(&line, " (%.2f to %.2f)",
                          summary.speed->interval->low(),
                          summary.speed->interval->high());
  }
  if (IsSlower(*summary.speed)) absl::StrAppend(&line, ", which is slower");
  if (!summary.speed_is_benchmarked) {
    absl::StrAppend(&line, ", by the verifications");
  }
  text->Line(line);
}

void SayResult(const RunRecord& record, Text* text) {
  const std::vector<StageFigures> figures = FiguresOfStages(record);
  const RunSummary summary = SummaryOf(record, figures);
  if (summary.stage < 0) return;
  text->Line("", 0);
  text->Line(absl::StrCat(
                 record.stage(summary.stage).name(), " against ",
                 summary.baseline.empty() ? "its baseline" : summary.baseline),
             0);
  SayAccuracy(figures[summary.stage], summary, text);
  SaySizeAndSpeed(figures[summary.stage], summary, text);
}

void SayWorstLayer(const EvaluateResult& result, Text* text) {
  const auto worst =
      std::min_element(result.layer().begin(), result.layer().end(),
                       [](const ComparedLayer& a, const ComparedLayer& b) {
                         return a.signal_to_noise() < b.signal_to_noise();
                       });
  if (worst == result.layer().end()) return;
  std::string sentence =
      absl::StrFormat("worst layer: %s, signal to noise %.1f dB", worst->name(),
                      worst->signal_to_noise());
  if (worst->step() > 0) {
    absl::StrAppendFormat(&sentence, ", error %.2f quantization steps",
                          worst->rms_error() / worst->step());
  }
  if (worst->clipped_share() > 0) {
    absl::StrAppendFormat(&sentence, ", %.2f %% of its values clipped",
                          100 * worst->clipped_share());
  }
  text->Sentence(sentence);
}

// Adds the gates with this verdict, and what to do about them.
void SayGates(const StageRecord& stage, VerificationRecord::Verdict verdict,
              Text* text) {
  std::vector<std::string> advice;
  for (const GateRecord& gate : stage.verification().gate()) {
    if (gate.verdict() != verdict) continue;
    text->Sentence(absl::StrCat("stage ", stage.name(), ", gate ", gate.name(),
                                ": ", gate.sentence()));
    const bool is_new =
        std::find(advice.begin(), advice.end(), gate.advice()) == advice.end();
    if (!gate.advice().empty() && is_new) advice.push_back(gate.advice());
  }
  SayWorstLayer(stage.verification().result(), text);
  if (advice.empty()) return;
  text->Line("what to try:", 0);
  for (const std::string& sentence : advice) text->Sentence(sentence);
}

void SayFailedTask(const std::string& name, const TaskRecord& task,
                   Text* text) {
  const std::vector<std::string> message =
      absl::StrSplit(task.message(), '\n', absl::SkipWhitespace());
  text->Sentence(absl::StrCat(name, ": ", message.empty() ? "" : message[0]));
  for (size_t i = 1; i < message.size(); ++i) text->Line(message[i], 4);
  if (task.note_size() > 0) text->Line("notes:", 0);
  for (int i = std::max(0, task.note_size() - kMostNotes); i < task.note_size();
       ++i) {
    text->Line(task.note(i));
  }
  if (task.command_size() > 0) text->Line("commands:", 0);
  for (const std::string& command : task.command()) text->Line(command);
}

// Names the gates that lacked what they judge.
void SayUnjudged(const RunRecord& record, Text* text) {
  for (const StageRecord& stage : record.stage()) {
    for (const GateRecord& gate : stage.verification().gate()) {
      if (gate.verdict() != VerificationRecord::NONE) continue;
      text->Sentence(absl::StrCat("not judged: stage ", stage.name(), ", gate ",
                                  gate.name(), ": ", gate.sentence()));
    }
  }
}

void SayPassed(const RunRecord& record, Text* text) {
  int gates = 0, limits = 0, verified = 0;
  for (const StageRecord& stage : record.stage()) {
    for (const GateRecord& gate : stage.verification().gate()) {
      if (gate.verdict() != VerificationRecord::PASS) continue;
      ++gates;
      if (gate.name() != kLostValuesGate) ++limits;
    }
    if (stage.verification().verdict() != VerificationRecord::NONE) ++verified;
  }
  const size_t cached = StagesIn(record, StageState::kCached).size();
  std::string sentence = absl::StrCat(CountText(record.stage_size(), "stage"),
                                      " in ", SecondsText(record.seconds()));
  if (cached > 0) absl::StrAppend(&sentence, " (", cached, " cached)");
  if (gates > 0) {
    absl::StrAppend(&sentence, ", ", CountText(gates, "gate"), " of ",
                    CountText(verified, "verified stage"),
                    gates == 1 ? " holds" : " hold");
  }
  if (gates > 0 && limits == 0) {
    sentence += "; no limit is set on how much the model may change";
  }
  text->Verdict("PASSED", Style::kGood, sentence);
  SayUnjudged(record, text);
  SayResult(record, text);
}

void SayInconclusive(const RunRecord& record, Text* text) {
  const std::vector<const StageRecord*> stages =
      StagesIn(record, StageState::kInconclusive);
  text->Verdict("WARNING, INCONCLUSIVE", Style::kDoubtful,
                absl::StrCat("the records do not suffice to say whether ",
                             StageNames(stages),
                             stages.size() == 1 ? " keeps its" : " keep their",
                             " limits; with --strict, such a run fails"));
  for (const StageRecord* stage : stages) {
    SayGates(*stage, VerificationRecord::INCONCLUSIVE, text);
  }
  SayUnjudged(record, text);
  SayResult(record, text);
}

// Returns whether the stage failed only the expectation of a known accuracy.
bool OnlyMissesExpectation(const StageRecord* stage) {
  const auto& gates = stage->verification().gate();
  return std::none_of(gates.begin(), gates.end(), [](const GateRecord& gate) {
    return gate.verdict() == VerificationRecord::FAIL &&
           gate.name() != "expect";
  });
}

void SayGateFailed(const RunRecord& record, Text* text) {
  const std::vector<const StageRecord*> stages =
      StagesIn(record, StageState::kGateFailed);
  std::vector<const StageRecord*> changed = stages;
  const auto missing = std::stable_partition(
      changed.begin(), changed.end(),
      [](const StageRecord* stage) { return !OnlyMissesExpectation(stage); });
  const std::vector<const StageRecord*> missed(missing, changed.end());
  changed.erase(missing, changed.end());
  std::vector<std::string> parts;
  if (!changed.empty()) {
    parts.push_back(
        absl::StrCat(StageNames(changed), " changed the model more than ",
                     changed.size() == 1 ? "its" : "their", " gates allow"));
  }
  if (!missed.empty()) {
    parts.push_back(
        absl::StrCat(StageNames(missed), missed.size() == 1 ? " does" : " do",
                     " not have the accuracy that is expected of the model"));
  }
  parts.push_back("nothing that needs it ran");
  text->Verdict("FAILED", Style::kBad, absl::StrJoin(parts, "; "));
  for (const StageRecord* stage : stages) {
    SayGates(*stage, VerificationRecord::FAIL, text);
  }
}

void SayFailed(const RunRecord& record, const std::string& resume, Text* text) {
  const std::vector<const StageRecord*> stages =
      StagesIn(record, StageState::kFailed);
  text->Verdict("FAILED", Style::kBad,
                stages.empty() ? "the run could not be finished"
                               : absl::StrCat(StageNames(stages),
                                              " could not be finished"));
  for (const StageRecord* stage : stages) {
    SayFailedTask(absl::StrCat("stage ", stage->name()), DecisiveTask(*stage),
                  text);
  }
  for (const BaselineRecord& baseline : record.baseline()) {
    if (baseline.work().state() != TaskRecord::FAILED) continue;
    SayFailedTask(baseline.name(), baseline.work(), text);
  }
  if (resume.empty()) return;
  text->Line("what is done is kept; to go on from there:", 0);
  text->Line(resume);
}

void SayInterrupted(const std::string& resume, Text* text) {
  text->Verdict("INTERRUPTED", Style::kDoubtful,
                "what is done is kept; to go on from there:");
  text->Line(resume);
}

}  // namespace

std::string SecondsText(double seconds) {
  if (seconds >= 59.95) return HumanDuration(seconds);
  if (seconds < 0.05) return "<0.1 s";
  return absl::StrFormat("%.1f s", seconds);
}

std::vector<RunRow> RowsOf(const RunRecord& record) {
  std::map<std::string, int> first_users;
  for (int i = 0; i < record.stage_size(); ++i) {
    first_users.emplace(
        absl::StrCat(record.stage(i).verification().evaluation(), "/baseline"),
        i);
  }
  // Baselines by the stage that they precede, which is the first by default.
  std::multimap<int, int> baselines;
  for (int i = 0; i < record.baseline_size(); ++i) {
    const auto user = first_users.find(record.baseline(i).name());
    baselines.emplace(user == first_users.end() ? 0 : user->second, i);
  }
  const std::vector<StageFigures> figures = FiguresOfStages(record);
  std::vector<RunRow> rows;
  for (int i = 0; i < record.stage_size(); ++i) {
    const auto [begin, end] = baselines.equal_range(i);
    for (auto baseline = begin; baseline != end; ++baseline) {
      rows.push_back(
          RowOf(record.baseline(baseline->second), baseline->second));
    }
    rows.push_back(RowOf(record.stage(i), i, figures[i]));
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

bool IsOver(StageState state) {
  return state != StageState::kWaiting && state != StageState::kRunning;
}

std::string RunTable(const RunRecord& record, int columns, bool color) {
  Table table;
  AddColumns(&table);
  for (const RunRow& row : RowsOf(record)) AddRow(row, &table);
  return table.Text(columns, color);
}

std::string RunConclusion(const RunRecord& record,
                          const RunConclusionOptions& options) {
  Text text(options.color);
  switch (record.outcome()) {
    case RunRecord::PASSED:
      SayPassed(record, &text);
      break;
    case RunRecord::INCONCLUSIVE:
      SayInconclusive(record, &text);
      break;
    case RunRecord::GATE_FAILED:
      SayGateFailed(record, &text);
      break;
    case RunRecord::INTERRUPTED:
      SayInterrupted(options.resume, &text);
      break;
    default:
      SayFailed(record, options.resume, &text);
      break;
  }
  const bool has_result = record.outcome() == RunRecord::PASSED ||
                          record.outcome() == RunRecord::INCONCLUSIVE;
  if (has_result && !options.serving.empty()) text.Line(options.serving, 0);
  if (!options.report.empty()) {
    text.Line("", 0);
    text.Line(absl::StrCat("report: ", options.report), 0);
  }
  return absl::StrCat(RunTable(record, options.columns, options.color),
                      text.text());
}

}  // namespace requant
