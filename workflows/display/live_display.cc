// The display of a run on a terminal.

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/terminal/progress.h"
#include "base/terminal/terminal_text.h"
#include "workflows/display/display_line.h"
#include "workflows/display/run_conclusion.h"
#include "workflows/display/run_display.h"
#include "workflows/run/run_record.h"
#include "workflows/run/run_record.pb.h"

namespace requant {
namespace {

// A little less, so that a clock of ten ticks a second misses none.
constexpr double kSecondsBetweenDraws = 0.095;

class LiveDisplay : public RunDisplay {
 public:
  LiveDisplay(const RunDisplayOptions& options, ProgressEnvironment environment)
      : options_(options),
        environment_(std::move(environment)),
        block_(environment_, options.color) {}

  void RunStarted(const RunRecord& record) override {
    start_ = environment_.now();
    Refresh(record);
    Draw({});
  }

  void TaskStarted(const RunRecord& record, const TaskPlace& place) override {
    Refresh(record);
    const int row = RowIndex(place);
    if (row < 0) return;
    running_.insert_or_assign(row, Running{TaskClock(environment_.now()),
                                           place.verifies || place.stage < 0});
    scrolled_up_.erase(row);
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
    Refresh(record);
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
    Draw(std::move(lines));
  }

  void RunEnded(const RunRecord& record) override {
    running_.clear();
    Refresh(record);
    if (options_.erase_at_end) {
      block_.Show({}, {});
      return;
    }
    const DisplayLayout layout(environment_.columns(), rows_, options_.utf8);
    for (DisplayRow& row : rows_) {
      if (row.state == StageState::kWaiting && row.message.empty()) {
        row.message = "not run";
      }
    }
    block_.Show(Block(layout, static_cast<int>(rows_.size()) + 1), {});
  }

  void Tick() override {
    if (environment_.now() - last_drawn_ < kSecondsBetweenDraws) return;
    Draw({});
  }

 private:
  struct Running {
    TaskClock clock;
    // Says that a stage's graph, or a baseline, is evaluated.
    bool verifies = false;
  };

  // Takes the rows from the record.
  void Refresh(const RunRecord& record) {
    const int rows = record.stage_size() + record.baseline_size();
    if (static_cast<int>(sources_.size()) != rows) sources_ = RowsOf(record);
    rows_.clear();
    for (const RunRow& source : sources_) {
      rows_.push_back(source.is_baseline
                          ? RowOf(record.baseline(source.index), options_.utf8)
                          : RowOf(record.stage(source.index), options_.utf8));
    }
  }

  // Returns -1 if there is none.
  int RowIndex(const TaskPlace& place) const {
    const bool is_baseline = place.stage < 0;
    const int index = is_baseline ? place.baseline : place.stage;
    for (size_t i = 0; i < sources_.size(); ++i) {
      if (sources_[i].is_baseline == is_baseline &&
          sources_[i].index == index) {
        return static_cast<int>(i);
      }
    }
    return -1;
  }

  bool IsRunning(int row) const { return running_.count(row) > 0; }
  bool IsOver(int row) const {
    return !IsRunning(row) && requant::IsOver(rows_[row].state);
  }

  // Returns the rows that have not scrolled up.
  std::vector<int> RowsLeft() const {
    std::vector<int> left;
    for (int row = 0; row < static_cast<int>(rows_.size()); ++row) {
      if (scrolled_up_.count(row) == 0) left.push_back(row);
    }
    return left;
  }

  StyledLine RowLine(const DisplayLayout& layout, int row) const {
    const auto found = running_.find(row);
    if (found == running_.end()) return layout.Line(rows_[row], nullptr);
    const TaskClock& clock = found->second.clock;
    const double now = environment_.now();
    const RunningTask task = {rows_[row].seconds + clock.Seconds(now),
                              found->second.verifies, clock.progress(),
                              clock.Rate(now)};
    return layout.Line(rows_[row], &task);
  }

  // Appends the lines of finished stages that must go, for good, so that the
  // block has at most `most` lines.
  void TakeLinesThatGo(const DisplayLayout& layout, int most,
                       std::vector<StyledLine>* lines) {
    const std::vector<int> left = RowsLeft();
    const bool has_header = !header_scrolled_up_ && !layout.Header().empty();
    int too_many = static_cast<int>(left.size()) + has_header - most;
    if (too_many <= 0) return;
    if (has_header) {
      lines->push_back(layout.Header());
      header_scrolled_up_ = true;
      --too_many;
    }
    for (int row : left) {
      if (too_many <= 0) break;
      if (!IsOver(row)) continue;
      lines->push_back(RowLine(layout, row));
      scrolled_up_.insert(row);
      --too_many;
    }
  }

  std::vector<StyledLine> Block(const DisplayLayout& layout, int most) const {
    std::vector<StyledLine> lines;
    if (!header_scrolled_up_ && !layout.Header().empty()) {
      lines.push_back(layout.Header());
    }
    std::vector<int> left = RowsLeft();
    most -= static_cast<int>(lines.size());
    if (static_cast<int>(left.size()) > most) {
      // What runs comes first; the rest is in the footer's count.
      std::stable_partition(left.begin(), left.end(),
                            [this](int row) { return IsRunning(row); });
      left.resize(std::max(0, most));
      std::sort(left.begin(), left.end());
    }
    for (int row : left) lines.push_back(RowLine(layout, row));
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

  // Draws the block, and `above` it these lines, for good.
  void Draw(std::vector<StyledLine> above) {
    last_drawn_ = environment_.now();
    const DisplayLayout layout(environment_.columns(), rows_, options_.utf8);
    // The cursor has a row of its own.
    int most = std::max(0, environment_.rows() - 1);
    const bool has_footer = most >= 2;
    most -= has_footer;
    const int needed =
        static_cast<int>(rows_.size()) + (layout.Header().empty() ? 0 : 1);
    if (needed > most) {
      // What is finished is of more interest than all that waits.
      most =
          std::min(most, std::max(static_cast<int>(running_.size()), most / 2));
    }
    TakeLinesThatGo(layout, most, &above);
    std::vector<StyledLine> block = Block(layout, most);
    if (has_footer) block.push_back(Footer());
    block_.Show(above, block);
  }

  const RunDisplayOptions options_;
  const ProgressEnvironment environment_;
  TerminalBlock block_;
  std::vector<RunRow> sources_;
  std::vector<DisplayRow> rows_;
  // By row.
  std::map<int, Running> running_;
  std::set<int> scrolled_up_;
  bool header_scrolled_up_ = false;
  double start_ = 0;
  double last_drawn_ = 0;
};

}  // namespace

std::unique_ptr<RunDisplay> MakeLiveDisplay(const RunDisplayOptions& options,
                                            ProgressEnvironment environment) {
  return std::make_unique<LiveDisplay>(options, std::move(environment));
}

}  // namespace requant
