#include "workflows/display/live_display.h"

#include <algorithm>
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
#include "workflows/display/run_figures.h"
#include "workflows/run/run_record.pb.h"

namespace requant {
namespace {

// A little less, so that a clock of ten ticks a second misses none.
constexpr double kSecondsBetweenDraws = 0.095;

}  // namespace

LiveDisplay::LiveDisplay(const RunDisplayOptions& options,
                         ProgressEnvironment environment)
    : options_(options),
      environment_(std::move(environment)),
      block_(environment_, options.color) {}

void LiveDisplay::RunStarted(const RunRecord& record) {
  start_ = environment_.now();
  Refresh(record);
  Draw({});
}

void LiveDisplay::TaskStarted(const RunRecord& record, const TaskPlace& place) {
  Refresh(record);
  const int row = RowIndex(place);
  if (row < 0) return;
  running_.insert_or_assign(row, Running{TaskClock(environment_.now()),
                                         place.verifies || place.stage < 0});
  scrolled_up_.erase(row);
  Tick();
}

void LiveDisplay::TaskProgressed(const RunRecord&, const TaskPlace& place,
                                 const TaskProgress& progress) {
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

void LiveDisplay::TaskEnded(const RunRecord& record, const TaskPlace& place) {
  running_.erase(RowIndex(place));
  Refresh(record);
  Tick();
}

void LiveDisplay::Said(std::string_view text) {
  std::vector<StyledLine> lines;
  for (std::string_view line : absl::StrSplit(text, '\n')) {
    const std::string printable = PrintableLine(line, options_.utf8);
    constexpr std::string_view kWarning = "warning:";
    const size_t found = printable.find(kWarning);
    const size_t begin = found == std::string::npos ? printable.size() : found;
    lines.push_back(
        {{printable.substr(0, begin)},
         {printable.substr(begin, kWarning.size()), Style::kDoubtful},
         {printable.substr(
             std::min(printable.size(), begin + kWarning.size()))}});
  }
  Draw(std::move(lines));
}

void LiveDisplay::RunEnded(const RunRecord& record) {
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

void LiveDisplay::Tick() {
  if (environment_.now() - last_drawn_ < kSecondsBetweenDraws) return;
  Draw({});
}

void LiveDisplay::Refresh(const RunRecord& record) {
  const int rows = record.stage_size() + record.baseline_size();
  if (static_cast<int>(sources_.size()) != rows) sources_ = RowsOf(record);
  rows_.clear();
  for (const RunRow& source : sources_) {
    rows_.push_back(source.is_baseline
                        ? RowOf(record.baseline(source.index), options_.utf8)
                        : RowOf(record.stage(source.index), options_.utf8));
  }
}

int LiveDisplay::RowIndex(const TaskPlace& place) const {
  const bool is_baseline = place.stage < 0;
  const int index = is_baseline ? place.baseline : place.stage;
  for (size_t i = 0; i < sources_.size(); ++i) {
    if (sources_[i].is_baseline == is_baseline && sources_[i].index == index) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

bool LiveDisplay::IsOver(int row) const {
  return running_.count(row) == 0 && requant::IsOver(rows_[row].state);
}

std::vector<int> LiveDisplay::RowsLeft() const {
  std::vector<int> left;
  for (int row = 0; row < static_cast<int>(rows_.size()); ++row) {
    if (scrolled_up_.count(row) == 0) left.push_back(row);
  }
  return left;
}

StyledLine LiveDisplay::RowLine(const DisplayLayout& layout, int row) const {
  const auto found = running_.find(row);
  if (found == running_.end()) return layout.Line(rows_[row], nullptr);
  const TaskClock& clock = found->second.clock;
  const double now = environment_.now();
  const RunningTask task = {rows_[row].seconds + clock.Seconds(now),
                            found->second.verifies, clock.progress(),
                            clock.Rate(now)};
  return layout.Line(rows_[row], &task);
}

std::vector<StyledLine> LiveDisplay::TakeLinesThatGo(
    const DisplayLayout& layout, int room) {
  std::vector<StyledLine> lines;
  std::vector<int> left = RowsLeft();
  const bool has_header = !header_scrolled_up_ && !layout.Header().empty();
  int too_many = static_cast<int>(left.size()) + has_header - room;
  if (too_many <= 0) return lines;
  if (has_header) {
    lines.push_back(layout.Header());
    header_scrolled_up_ = true;
    --too_many;
  }
  for (int row : left) {
    if (too_many <= 0) break;
    if (!IsOver(row)) continue;
    lines.push_back(RowLine(layout, row));
    scrolled_up_.insert(row);
    --too_many;
  }
  return lines;
}

std::vector<StyledLine> LiveDisplay::Block(const DisplayLayout& layout,
                                           int room) const {
  std::vector<StyledLine> lines;
  if (!header_scrolled_up_ && !layout.Header().empty()) {
    lines.push_back(layout.Header());
  }
  std::vector<int> left = RowsLeft();
  room -= static_cast<int>(lines.size());
  if (static_cast<int>(left.size()) > room) {
    // What runs comes first; the rest is in the footer's count.
    std::stable_partition(left.begin(), left.end(),
                          [this](int row) { return running_.count(row) > 0; });
    left.resize(std::max(0, room));
    std::sort(left.begin(), left.end());
  }
  for (int row : left) lines.push_back(RowLine(layout, row));
  return lines;
}

StyledLine LiveDisplay::Footer() const {
  int over = 0, waiting = 0;
  for (int row = 0; row < static_cast<int>(rows_.size()); ++row) {
    if (IsOver(row)) ++over;
    if (!IsOver(row) && running_.count(row) == 0) ++waiting;
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

void LiveDisplay::Draw(std::vector<StyledLine> above) {
  last_drawn_ = environment_.now();
  const DisplayLayout layout(environment_.columns(), rows_, options_.utf8);
  // The cursor has a row of its own.
  int room = std::max(0, environment_.rows() - 1);
  const bool has_footer = room >= 2;
  room -= has_footer;
  const int needed =
      static_cast<int>(rows_.size()) + (layout.Header().empty() ? 0 : 1);
  if (needed > room) {
    // What is finished is of more interest than all that waits.
    room =
        std::min(room, std::max(static_cast<int>(running_.size()), room / 2));
  }
  for (StyledLine& line : TakeLinesThatGo(layout, room)) {
    above.push_back(std::move(line));
  }
  std::vector<StyledLine> block = Block(layout, room);
  if (has_footer) block.push_back(Footer());
  block_.Show(above, block);
}

}  // namespace requant
