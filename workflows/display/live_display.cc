// Displays a run on a terminal: a line per stage, as wide as the terminal.
//
//     stage        time   accuracy  agreement   change  verdict
//   ✓ freeze      1.2 s   78.455 %
//   ✓ optimize    5.4 s   78.455 %     1.0000  0.00000  PASS
//   ▸ quantize      3 s  ━━━━━━━╸────────────  38 %   312k/s  accuracy 78.40 %
//   · calibrate

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/terminal/progress.h"
#include "base/terminal/terminal_text.h"
#include "workflows/display/run_conclusion.h"
#include "workflows/display/run_display.h"
#include "workflows/report/figures.h"
#include "workflows/run/run_record.h"
#include "workflows/run/run_record.pb.h"

namespace requant {
namespace {

constexpr std::string_view kNameTitle = "stage";
constexpr int kMarkWidth = 2;
constexpr int kGap = 2;
constexpr int kTimeWidth = 7;
constexpr int kPercentWidth = 5;
// Such as "99.9k/s".
constexpr int kRateWidth = 7;
// Such as "0:03 left".
constexpr int kLeftWidth = 9;
// Such as "accuracy 78.40 %", which a verification shows.
constexpr int kNoteWidth = 16;
constexpr int kMinBarWidth = 8;
constexpr int kMaxBarWidth = 20;

struct ResultColumn {
  std::string_view title;
  int width;
  // 0 is dropped last if space is short.
  int importance;
  // Null for the verdict, which is left-aligned.
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
  constexpr StateMark kMarks[] = {
      {"\u00b7", ".", Style::kDim},   // Waiting.
      {"\u25b8", ">", Style::kBar},   // Running.
      {"\u2713", "+", Style::kGood},  // Done.
      {"\u2713", "+", Style::kGood},  // Cached.
      {"\u2717", "x", Style::kBad},   // Failed.
      {"\u2713", "+", Style::kDim},   // Given.
      {"\u2717", "x", Style::kBad},   // Interrupted.
      {"-", "-", Style::kDim},        // Left out.
      {"!", "!", Style::kDoubtful},   // Inconclusive.
      {"\u2717", "x", Style::kBad},   // A gate failed.
  };
  return kMarks[static_cast<int>(state)];
}

Style StyleOf(VerificationRecord::Verdict verdict) {
  constexpr Style kStyles[] = {Style::kPlain, Style::kGood, Style::kDoubtful,
                               Style::kBad};
  return kStyles[verdict];
}

// Returns the text in the column for the time.
std::string TimeText(const RunRow& row) {
  if (row.state == StageState::kLeftOut) return "skipped";
  if (row.figures.seconds > 0) return SecondsText(row.figures.seconds);
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

// What a row's task is doing.
struct RunningTask {
  // The time, including what the row's other task took.
  double seconds = 0;
  bool verifies = false;
  TaskProgress progress;
  // How fast it progresses, per second; 0 if that is not known.
  double rate = 0;
};

std::string LeftText(const RunningTask& running) {
  const int64_t left = running.progress.total - running.progress.done;
  if (left < 0 || running.rate <= 0) return "";
  return absl::StrCat(HumanDuration(static_cast<double>(left) / running.rate),
                      " left");
}

// Decides which columns there are and where, by the terminal's width and the
// widest name alone, so that nothing moves when figures change.
class DisplayLayout {
 public:
  DisplayLayout(int columns, const std::vector<RunRow>& rows, bool utf8)
      : utf8_(utf8), width_(std::max(0, columns - 1)) {
    int widest = DisplayWidth(kNameTitle);
    for (const RunRow& row : rows) {
      widest = std::max(widest, DisplayWidth(PrintableLine(row.name, utf8)));
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

  // Returns nothing if there is no space for a column that needs a title.
  StyledLine Header() const {
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

  // Returns the line of a row; `running` is null unless a task of it runs.
  StyledLine Line(const RunRow& row, const RunningTask* running) const {
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
    if (running && running->progress.total > 0 &&
        Room() < kGap + kPercentWidth) {
      time = PercentText(running->progress);
    }
    const bool measured = running || row.figures.seconds > 0;
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

 private:
  std::string Shorten(const std::string& text, int width) const {
    return Shortened(PrintableLine(text, utf8_), width, utf8_ ? "\u2026" : "~");
  }

  bool ShowsTime() const {
    return width_ >= kMarkWidth + name_width_ + kGap + kTimeWidth;
  }

  // Returns how many columns are left after the time.
  int Room() const {
    return width_ - kMarkWidth - name_width_ - kGap - kTimeWidth;
  }

  void AppendResults(const RunRow& row, StyledLine* line) const {
    int room = Room();
    for (int i : columns_) {
      const ResultColumn& column = Columns()[i];
      line->push_back({std::string(kGap, ' ')});
      room -= kGap + column.width;
      if (column.figure != nullptr) {
        line->push_back({PaddedLeft(FigureText(row.figures, *column.figure),
                                    column.width)});
        continue;
      }
      const std::string verdict = VerdictName(row.figures.verdict);
      const bool fits = DisplayWidth(verdict) <= column.width + room;
      line->push_back(
          {fits ? verdict : "unclear", StyleOf(row.figures.verdict)});
      if (row.message.empty() || !fits) continue;
      room -= DisplayWidth(verdict) - column.width + kGap;
      line->push_back(
          {absl::StrCat("  ", Shorten(row.message, std::max(0, room)))});
    }
  }

  void AppendProgress(const RunningTask& running, StyledLine* line) const {
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

  void AppendCount(const RunningTask& running, StyledLine* line) const {
    const TaskProgress& progress = running.progress;
    std::string text = absl::StrCat("  ", progress.what);
    if (progress.what.empty()) {
      absl::StrAppend(&text, running.verifies ? "verifying" : "working");
    }
    if (progress.done > 0) {
      absl::StrAppend(&text, "  ", HumanCount(progress.done), " ",
                      progress.unit);
      if (running.rate > 0) {
        absl::StrAppend(&text, "  ", HumanRate(running.rate), "/s");
      }
    }
    line->push_back({text, progress.done > 0 ? Style::kPlain : Style::kDim});
  }

  std::string Bar(int width, double share) const {
    std::string bar;
    if (!utf8_) {
      const int full = static_cast<int>(share * (width - 2));
      bar.assign(full, '=');
      if (full < width - 2) bar.push_back('>');
      bar.resize(width - 2, ' ');
      return absl::StrCat("[", bar, "]");
    }
    // The length is in halves of a column.
    const int halves = static_cast<int>(share * 2 * width);
    for (int i = 0; i < width; ++i) {
      absl::StrAppend(&bar, 2 * i + 2 <= halves   ? "\u2501"
                            : 2 * i + 1 <= halves ? "\u2578"
                                                  : "\u2500");
    }
    return bar;
  }

  const bool utf8_;
  // How much of a line may be used. A character in the last column would move
  // the cursor to the next line.
  const int width_;
  int name_width_ = 0;
  // Indexes of the columns of results that fit, ascending.
  std::vector<int> columns_;
};

// A little less than a tenth of a second, so that no tick is missed.
constexpr double kSecondsBetweenDraws = 0.095;

class LiveDisplay : public RunObserver {
 public:
  LiveDisplay(const RunDisplayOptions& options, ProgressEnvironment environment)
      : options_(options),
        environment_(std::move(environment)),
        block_(environment_, options.color) {}

  void RunStarted(const RunRecord& record) override {
    start_ = environment_.now();
    rows_ = RowsOf(record);
    Draw({});
  }

  void TaskStarted(const RunRecord& record, const TaskPlace& place) override {
    rows_ = RowsOf(record);
    const int row = RowIndex(place);
    if (row < 0) return;
    running_.insert_or_assign(row, Running{TaskClock(environment_.now()),
                                           place.verifies || place.stage < 0});
    Tick();
  }

  void TaskProgressed(const RunRecord&, const TaskPlace& place,
                      const TaskProgress& progress) override {
    const auto found = running_.find(RowIndex(place));
    if (found == running_.end()) return;
    TaskProgress printable = progress;
    for (std::string* text :
         {&printable.what, &printable.unit, &printable.note}) {
      *text = PrintableLine(*text, options_.utf8);
    }
    found->second.clock.Take(environment_.now(), printable);
    Tick();
  }

  void TaskEnded(const RunRecord& record, const TaskPlace& place) override {
    running_.erase(RowIndex(place));
    rows_ = RowsOf(record);
    Tick();
  }

  void Said(std::string_view text) override {
    constexpr std::string_view kWarning = "warning:";
    std::vector<StyledLine> lines;
    for (std::string_view line : absl::StrSplit(text, '\n')) {
      const std::string printable = PrintableLine(line, options_.utf8);
      const size_t begin = std::min(printable.find(kWarning), printable.size());
      const size_t end = std::min(begin + kWarning.size(), printable.size());
      lines.push_back({{printable.substr(0, begin)},
                       {printable.substr(begin, end - begin), Style::kDoubtful},
                       {printable.substr(end)}});
    }
    Draw(lines);
  }

  void RunEnded(const RunRecord& record) override {
    running_.clear();
    rows_ = RowsOf(record);
    if (options_.erase_at_end) {
      block_.Show({}, {});
      return;
    }
    for (RunRow& row : rows_) {
      if (row.state == StageState::kWaiting && row.message.empty()) {
        row.message = "not run";
      }
    }
    block_.Show(Block(static_cast<int>(rows_.size()) + 1), {});
  }

  void Tick() override {
    if (environment_.now() - last_drawn_ < kSecondsBetweenDraws) return;
    Draw({});
  }

 private:
  struct Running {
    TaskClock clock;
    // Whether a stage's graph, or a baseline, is evaluated.
    bool verifies = false;
  };

  // Returns -1 if there is none.
  int RowIndex(const TaskPlace& place) const {
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i].place.stage == place.stage &&
          rows_[i].place.baseline == place.baseline) {
        return static_cast<int>(i);
      }
    }
    return -1;
  }

  bool IsRunning(int row) const { return running_.count(row) > 0; }
  bool IsOver(int row) const {
    return !IsRunning(row) && requant::IsOver(rows_[row].state);
  }

  StyledLine RowLine(const DisplayLayout& layout, int row) const {
    const auto found = running_.find(row);
    if (found == running_.end()) return layout.Line(rows_[row], nullptr);
    const TaskClock& clock = found->second.clock;
    const double now = environment_.now();
    const RunningTask task = {rows_[row].figures.seconds + clock.Seconds(now),
                              found->second.verifies, clock.progress(),
                              clock.Rate(now)};
    return layout.Line(rows_[row], &task);
  }

  // Returns at most `most` lines: where there are more rows, those up to the
  // last one that runs.
  std::vector<StyledLine> Block(int most) const {
    const DisplayLayout layout(environment_.columns(), rows_, options_.utf8);
    std::vector<StyledLine> lines;
    const StyledLine header = layout.Header();
    if (!header.empty() && most > 1) {
      lines.push_back(header);
      --most;
    }
    const int last_running = running_.empty() ? 0 : running_.rbegin()->first;
    const int first = std::max(0, last_running + 1 - most);
    const int end = std::min(static_cast<int>(rows_.size()), first + most);
    for (int row = first; row < end; ++row) {
      lines.push_back(RowLine(layout, row));
    }
    return lines;
  }

  StyledLine Footer() const {
    int over = 0, waiting = 0;
    for (int row = 0; row < static_cast<int>(rows_.size()); ++row) {
      if (IsOver(row)) ++over;
      if (!IsOver(row) && !IsRunning(row)) ++waiting;
    }
    std::vector<std::string> parts = {
        absl::StrCat(over, " of ", rows_.size(), " done")};
    if (!running_.empty()) {
      parts.push_back(absl::StrCat(running_.size(), " running"));
    }
    if (waiting > 0) parts.push_back(absl::StrCat(waiting, " waiting"));
    parts.push_back(HumanDuration(environment_.now() - start_));
    return {{absl::StrCat("  ", absl::StrJoin(parts, ", ")), Style::kDim}};
  }

  // Draws the block and, above it, the lines `above`, which stay.
  void Draw(const std::vector<StyledLine>& above) {
    last_drawn_ = environment_.now();
    // The cursor needs a row of its own.
    const int most = std::max(0, environment_.rows() - 1);
    const bool has_footer = most >= 2;
    std::vector<StyledLine> block = Block(most - has_footer);
    if (has_footer) block.push_back(Footer());
    block_.Show(above, block);
  }

  const RunDisplayOptions options_;
  const ProgressEnvironment environment_;
  TerminalBlock block_;
  std::vector<RunRow> rows_;
  // The running tasks by row.
  std::map<int, Running> running_;
  double start_ = 0;
  double last_drawn_ = 0;
};

}  // namespace

std::unique_ptr<RunObserver> MakeLiveDisplay(const RunDisplayOptions& options,
                                             ProgressEnvironment environment) {
  return std::make_unique<LiveDisplay>(options, std::move(environment));
}

}  // namespace requant
