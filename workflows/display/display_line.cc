#include "workflows/display/display_line.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/terminal/progress.h"
#include "base/terminal/terminal_text.h"
#include "workflows/display/run_conclusion.h"
#include "workflows/report/figures.h"
#include "workflows/run/run_record.pb.h"

namespace requant {
namespace {

constexpr std::string_view kNameTitle = "stage";
constexpr int kMarkWidth = 2;
constexpr int kGap = 2;
constexpr int kTimeWidth = 7;
constexpr int kPercentWidth = 5;
// "99.9k/s".
constexpr int kRateWidth = 7;
// "0:03 left".
constexpr int kLeftWidth = 9;
// "accuracy 78.40 %", which a verification will have to say.
constexpr int kNoteWidth = 16;
constexpr int kMinBarWidth = 8;
constexpr int kMaxBarWidth = 20;

struct ResultColumn {
  std::string_view title;
  int width;
  // 0 is the last to go when there is little space.
  int importance;
  // Null for the verdict, which stands to the left.
  const Figure* figure;
};

const std::vector<ResultColumn>& Columns() {
  static const auto* const columns = [] {
    auto* const all = new std::vector<ResultColumn>;
    for (const Figure& figure : Figures()) {
      const FigureLineColumn& line = figure.line;
      if (line.title == nullptr) continue;
      all->push_back({line.title, line.width, line.importance, &figure});
    }
    all->push_back({"verdict", 7, 0, nullptr});
    return all;
  }();
  return *columns;
}

// How a state is marked at the beginning of a line.
struct StateMark {
  const char* utf8;
  const char* ascii;
  Style style;
};

StateMark MarkOf(StageState state) {
  switch (state) {
    case StageState::kDone:
    case StageState::kCached:
      return {"\u2713", "+", Style::kGood};
    case StageState::kGiven:
      return {"\u2713", "+", Style::kDim};
    case StageState::kRunning:
      return {"\u25b8", ">", Style::kBar};
    case StageState::kInconclusive:
      return {"!", "!", Style::kDoubtful};
    case StageState::kGateFailed:
    case StageState::kFailed:
    case StageState::kInterrupted:
      return {"\u2717", "x", Style::kBad};
    case StageState::kLeftOut:
      return {"-", "-", Style::kDim};
    case StageState::kWaiting:
      break;
  }
  return {"\u00b7", ".", Style::kDim};
}

Style StyleOf(VerificationRecord::Verdict verdict) {
  constexpr Style kStyles[] = {Style::kPlain, Style::kGood, Style::kDoubtful,
                               Style::kBad};
  return kStyles[verdict];
}

void FillResults(const EvaluateResult& result, DisplayRow* row) {
  StageFigures stage;
  stage.result = &result;
  for (const ResultColumn& column : Columns()) {
    row->figures.push_back(
        column.figure == nullptr ? "" : FigureText(stage, *column.figure));
  }
}

// Returns the gate that decided on the verdict.
std::string DecisiveGate(const VerificationRecord& verification) {
  for (const GateRecord& gate : verification.gate()) {
    if (gate.verdict() == verification.verdict()) return gate.name();
  }
  return "";
}

// Returns what stands in place of the time.
std::string TimeText(const DisplayRow& row) {
  if (row.state == StageState::kLeftOut) return "skipped";
  if (row.seconds > 0) return SecondsText(row.seconds);
  if (row.state == StageState::kGiven) return "given";
  return row.state == StageState::kCached ? "cached" : "";
}

std::string PassingTime(double seconds) {
  if (seconds >= 59.5) return HumanDuration(seconds);
  return absl::StrFormat("%.0f s", seconds);
}

double Share(const TaskProgress& progress) {
  return std::clamp(
      static_cast<double>(progress.done) / static_cast<double>(progress.total),
      0.0, 1.0);
}

std::string PercentText(const TaskProgress& progress) {
  return absl::StrFormat("%3d %%", static_cast<int>(100 * Share(progress)));
}

std::string LeftText(const RunningTask& running) {
  const int64_t left = running.progress.total - running.progress.done;
  if (left < 0 || running.rate <= 0) return "";
  return absl::StrCat(HumanDuration(static_cast<double>(left) / running.rate),
                      " left");
}

}  // namespace

DisplayRow RowOf(const StageRecord& stage, bool utf8) {
  DisplayRow row;
  row.name = PrintableLine(stage.name(), utf8);
  row.state = StateOf(stage);
  row.seconds = SecondsOf(stage);
  row.verdict = stage.verification().verdict();
  FillResults(stage.verification().result(), &row);
  switch (row.state) {
    case StageState::kLeftOut:
      row.message = stage.left_out_because();
      break;
    case StageState::kGateFailed:
    case StageState::kInconclusive:
      row.message = DecisiveGate(stage.verification());
      break;
    case StageState::kInterrupted:
      row.message = "interrupted";
      break;
    case StageState::kFailed:
    case StageState::kWaiting:
      row.message = DecisiveTask(stage).message();
      if (row.message.empty() && row.state == StageState::kWaiting &&
          row.seconds > 0) {
        row.message = "made";
      }
      break;
    default:
      break;
  }
  row.message = PrintableLine(row.message, utf8);
  return row;
}

DisplayRow RowOf(const BaselineRecord& baseline, bool utf8) {
  DisplayRow row;
  row.name = PrintableLine(baseline.name(), utf8);
  row.state = StateOf(baseline);
  row.seconds = baseline.work().seconds();
  FillResults(baseline.result(), &row);
  if (row.state == StageState::kFailed) {
    row.message = PrintableLine(baseline.work().message(), utf8);
  } else if (row.state == StageState::kInterrupted) {
    row.message = "interrupted";
  }
  return row;
}

DisplayLayout::DisplayLayout(int columns, const std::vector<DisplayRow>& rows,
                             bool utf8)
    : utf8_(utf8), width_(std::max(0, columns - 1)) {
  int widest = DisplayWidth(kNameTitle);
  for (const DisplayRow& row : rows) {
    widest = std::max(widest, DisplayWidth(row.name));
  }
  // Long names leave more than half of the line to the figures.
  constexpr int kEnough = 40;
  const int beside_time = width_ - kMarkWidth - kGap - kTimeWidth;
  const int most = width_ >= kEnough  ? width_ * 2 / 5
                   : beside_time >= 3 ? beside_time
                                      : width_ - kMarkWidth;
  name_width_ = std::max(0, std::min(widest, most));
  int room = Room();
  for (int importance = 0; importance < static_cast<int>(Columns().size());
       ++importance) {
    for (int i = 0; i < static_cast<int>(Columns().size()); ++i) {
      if (Columns()[i].importance != importance) continue;
      room -= kGap + Columns()[i].width;
      if (room >= 0) columns_.push_back(i);
    }
  }
  std::sort(columns_.begin(), columns_.end());
}

std::string DisplayLayout::Shorten(const std::string& text, int width) const {
  return Shortened(text, width, utf8_ ? "\u2026" : "~");
}

bool DisplayLayout::ShowsTime() const {
  return width_ >= kMarkWidth + name_width_ + kGap + kTimeWidth;
}

int DisplayLayout::Room() const {
  return width_ - kMarkWidth - name_width_ - kGap - kTimeWidth;
}

StyledLine DisplayLayout::Header() const {
  if (columns_.size() < 2) return {};
  std::string text = absl::StrCat(
      std::string(kMarkWidth, ' '), PaddedRight(kNameTitle, name_width_),
      std::string(kGap, ' '), PaddedLeft("time", kTimeWidth));
  for (int i : columns_) {
    const ResultColumn& column = Columns()[i];
    absl::StrAppend(&text, std::string(kGap, ' '),
                    column.figure == nullptr
                        ? std::string(column.title)
                        : PaddedLeft(column.title, column.width));
  }
  return {{text, Style::kDim}};
}

StyledLine DisplayLayout::Line(const DisplayRow& row,
                               const RunningTask* running) const {
  const StageState state = running ? StageState::kRunning : row.state;
  const std::string name =
      PaddedRight(Shorten(row.name, name_width_), name_width_);
  const bool faint =
      state == StageState::kWaiting || state == StageState::kLeftOut;
  const StateMark mark = MarkOf(state);
  StyledLine line = {
      {absl::StrCat(utf8_ ? mark.utf8 : mark.ascii, " "), mark.style},
      {name, faint ? Style::kDim : Style::kPlain}};
  if (!ShowsTime()) return line;
  std::string time = running ? PassingTime(running->seconds) : TimeText(row);
  // If two figures do not both fit, the one that says more is shown.
  if (running && running->progress.total > 0 && Room() < kGap + kPercentWidth) {
    time = PercentText(running->progress);
  }
  const bool measured = running || row.seconds > 0;
  line.push_back({std::string(kGap, ' ')});
  line.push_back(
      {PaddedLeft(time, kTimeWidth), measured ? Style::kPlain : Style::kDim});
  if (running) {
    running->progress.total > 0 ? AppendProgress(*running, &line)
                                : AppendCount(*running, &line);
  } else if (state == StageState::kFailed ||
             state == StageState::kInterrupted ||
             state == StageState::kLeftOut || state == StageState::kWaiting) {
    line.push_back({std::string(kGap, ' ')});
    line.push_back({Shorten(row.message, Room() - kGap),
                    faint ? Style::kDim : Style::kPlain});
  } else {
    AppendResults(row, &line);
  }
  return line;
}

void DisplayLayout::AppendResults(const DisplayRow& row,
                                  StyledLine* line) const {
  int room = Room();
  for (int i : columns_) {
    const ResultColumn& column = Columns()[i];
    line->push_back({std::string(kGap, ' ')});
    room -= kGap + column.width;
    if (column.figure != nullptr) {
      line->push_back({PaddedLeft(row.figures[i], column.width)});
      continue;
    }
    const std::string verdict = VerdictName(row.verdict);
    const bool fits = DisplayWidth(verdict) <= column.width + room;
    line->push_back({fits ? verdict : "unclear", StyleOf(row.verdict)});
    if (row.message.empty() || !fits) continue;
    room -= DisplayWidth(verdict) - column.width + kGap;
    line->push_back(
        {absl::StrCat("  ", Shorten(row.message, std::max(0, room)))});
  }
}

void DisplayLayout::AppendProgress(const RunningTask& running,
                                   StyledLine* line) const {
  const TaskProgress& progress = running.progress;
  int room = Room() - kGap - kPercentWidth;
  if (room < 0) return;
  const auto take = [&room](int width) {
    if (room < width) return false;
    room -= width;
    return true;
  };
  const std::string& note = progress.note;
  const int note_width =
      std::max(DisplayWidth(note), running.verifies ? kNoteWidth : 0);
  const bool has_bar = take(kMinBarWidth + 1);
  const bool has_rate = take(kGap + kRateWidth);
  const bool has_note = note_width > 0 && take(kGap + note_width);
  const bool has_left = take(kGap + kLeftWidth);
  line->push_back({std::string(kGap, ' ')});
  if (has_bar) {
    const int width = std::min(kMinBarWidth + room, kMaxBarWidth);
    line->push_back({Bar(width, Share(progress)), Style::kBar});
    line->push_back({" "});
  }
  std::string text = PercentText(progress);
  if (has_rate) {
    const std::string rate =
        running.rate > 0 ? absl::StrCat(HumanRate(running.rate), "/s") : "";
    absl::StrAppend(&text, "  ", PaddedLeft(rate, kRateWidth));
  }
  if (has_note) absl::StrAppend(&text, "  ", PaddedRight(note, note_width));
  if (has_left) absl::StrAppend(&text, "  ", LeftText(running));
  line->push_back({text});
}

void DisplayLayout::AppendCount(const RunningTask& running,
                                StyledLine* line) const {
  const TaskProgress& progress = running.progress;
  std::string text = absl::StrCat("  ", progress.what);
  if (progress.what.empty()) {
    absl::StrAppend(&text, running.verifies ? "verifying" : "working");
  }
  if (progress.done > 0) {
    absl::StrAppend(&text, "  ", HumanCount(progress.done), " ", progress.unit);
    if (running.rate > 0) {
      absl::StrAppend(&text, "  ", HumanRate(running.rate), "/s");
    }
  }
  line->push_back({text, progress.done > 0 ? Style::kPlain : Style::kDim});
}

std::string DisplayLayout::Bar(int width, double share) const {
  std::string bar;
  if (!utf8_) {
    const int full = static_cast<int>(share * (width - 2));
    bar.assign(full, '=');
    if (full < width - 2) bar.push_back('>');
    bar.resize(width - 2, ' ');
    return absl::StrCat("[", bar, "]");
  }
  // In halves of a column.
  const int halves = static_cast<int>(share * 2 * width);
  for (int i = 0; i < width; ++i) {
    absl::StrAppend(&bar, 2 * i + 2 <= halves   ? "\u2501"
                          : 2 * i + 1 <= halves ? "\u2578"
                                                : "\u2500");
  }
  return bar;
}

}  // namespace requant
