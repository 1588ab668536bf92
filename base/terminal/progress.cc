#include "base/terminal/progress.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/files/file.h"
#include "base/process/subprocess.h"
#include "base/terminal_guard.h"
#include "base/text/printable.h"

namespace requant {
namespace {

constexpr double kSecondsBetweenDraws = 0.1;
constexpr double kSecondsBetweenLines = 10;

// Samples are taken every twentieth of this window, in seconds.
constexpr double kWindow = 10;
constexpr double kSecondsBetweenSamples = kWindow / 20;

constexpr int kMaxBarWidth = 40;
constexpr int kBarStep = 5;

// Returns the size from the environment, or else from the terminal.
int TerminalSize(const char* name, unsigned short winsize::*side,
                 int otherwise) {
  int number = 0;
  const char* variable = std::getenv(name);
  if (variable != nullptr && absl::SimpleAtoi(variable, &number) &&
      number > 0) {
    return number;
  }
  struct winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.*side > 0) {
    return size.*side;
  }
  return otherwise;
}

std::string Bar(int width, double share) {
  const int full = static_cast<int>(share * width);
  std::string bar(width, ' ');
  std::fill_n(bar.begin(), full, '=');
  if (full < width) bar[full] = '>';
  return absl::StrCat("[", bar, "]");
}

// Returns `line` with as many complete figures as fit.
std::string FitFigures(std::string line,
                       const std::vector<std::string>& figures, int room) {
  for (const std::string& figure : figures) {
    if (DisplayWidth(line) + 2 + DisplayWidth(figure) > room) break;
    absl::StrAppend(&line, "  ", figure);
  }
  return std::string(CutToWidth(line, room));
}

// Returns `number`, at least 1000 before rounding, with its unit.
std::string WithUnit(double number) {
  std::string_view units = "kMGTPE";
  number /= 1000;
  // A number that rounds up to 1000 belongs to the next unit.
  while (number >= 999.5 && units.size() > 1) {
    number /= 1000;
    units.remove_prefix(1);
  }
  int decimals = number < 9.995 ? 2 : number < 99.95 ? 1 : 0;
  if (number == std::floor(number)) decimals = 0;
  return absl::StrFormat("%.*f%c", decimals, number, units.front());
}

// Returns the descriptor from which a parent reads progress, or -1.
int ReportDescriptor() {
  const char* variable = std::getenv(kProgressVariable);
  int fd = -1;
  if (variable == nullptr || !absl::SimpleAtoi(variable, &fd)) return -1;
  return fd > STDERR_FILENO && fcntl(fd, F_GETFD) >= 0 ? fd : -1;
}

constexpr char kReportTag[] = "progress";

std::atomic<int> pause_count{0};

void SetHandler(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | SA_NODEFER;
  sigaction(signal, &action, nullptr);
}

// Counts a pause before it begins, so that no thread draws after it unaware,
// and then does the signal's default action.
void CountAndStop(int) {
  const int error = errno;
  ++pause_count;
  SetHandler(SIGTSTP, SIG_DFL);
  raise(SIGTSTP);
  SetHandler(SIGTSTP, CountAndStop);
  errno = error;
}

void StartCountingPauses() {
  // Catches a pause that does not come from the terminal.
  SetHandler(SIGCONT, [](int) { ++pause_count; });
  struct sigaction before = {};
  if (sigaction(SIGTSTP, nullptr, &before) == 0 &&
      before.sa_handler == SIG_DFL) {
    SetHandler(SIGTSTP, CountAndStop);
  }
}

// Returns the sequence to go to the start of the line `rows` above.
std::string Up(int rows) {
  return rows == 0 ? "\r" : absl::StrCat("\r\x1b[", rows, "A");
}

}  // namespace

ProgressEnvironment ProgressEnvironment::Stderr() {
  ProgressEnvironment environment;
  const char* terminal = std::getenv("TERM");
  environment.is_terminal = isatty(STDERR_FILENO) != 0 && terminal != nullptr &&
                            std::string_view(terminal) != "dumb";
  environment.now = [] {
    return std::chrono::duration<double>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
  environment.time_of_day = [] {
    return absl::FormatTime("%H:%M:%S", absl::Now(), absl::LocalTimeZone());
  };
  const int report_fd = ReportDescriptor();
  if (report_fd >= 0) {
    environment.report = [report_fd](std::string_view text) {
      (void)WriteAll(report_fd, text);
    };
  }
  environment.columns = [] {
    return TerminalSize("COLUMNS", &winsize::ws_col, 80);
  };
  environment.rows = [] { return TerminalSize("LINES", &winsize::ws_row, 24); };
  if (environment.is_terminal) {
    static std::once_flag once;
    std::call_once(once, StartCountingPauses);
    environment.pauses = [] { return pause_count.load(); };
  }
  environment.write = [](std::string_view text) { PrintStyled(stderr, text); };
  return environment;
}

std::string FormatProgressReport(const ProgressReport& report) {
  return absl::StrJoin(
      {std::string(kReportTag), absl::StrCat(report.done),
       absl::StrCat(report.total), PrintableLine(report.what, true),
       PrintableLine(report.unit, true), PrintableLine(report.note, true)},
      "\t");
}

std::optional<ProgressReport> ParseProgressReport(std::string_view line) {
  const std::vector<std::string> fields = absl::StrSplit(line, '\t');
  ProgressReport report;
  if (fields.size() != 6 || fields[0] != kReportTag ||
      !absl::SimpleAtoi(fields[1], &report.done) ||
      !absl::SimpleAtoi(fields[2], &report.total)) {
    return std::nullopt;
  }
  report.what = fields[3];
  report.unit = fields[4];
  report.note = fields[5];
  return report;
}

std::string HumanCount(int64_t count) {
  if (count < 1000) return absl::StrCat(count);
  return WithUnit(static_cast<double>(count));
}

std::string HumanRate(double rate) {
  if (rate >= 999.5) return WithUnit(std::max(rate, 1000.0));
  return absl::StrFormat("%.*f", rate < 9.995 ? 2 : rate < 99.95 ? 1 : 0, rate);
}

std::string HumanDuration(double seconds) {
  // The limit is a hundred years, for rates near 0.
  constexpr double kLongest = 3.2e9;
  const int64_t whole = std::llround(std::clamp(seconds, 0.0, kLongest));
  const int64_t minutes = whole / 60;
  if (minutes < 60) return absl::StrFormat("%d:%02d", minutes, whole % 60);
  return absl::StrFormat("%d:%02d:%02d", minutes / 60, minutes % 60,
                         whole % 60);
}

void RateWindow::Add(double now, int64_t done) {
  if (now - samples_.back().time < kSecondsBetweenSamples) return;
  samples_.push_back({now, done});
  // At least two must stay, because a rate needs two.
  while (samples_.size() > 2 && now - samples_[1].time >= kWindow) {
    samples_.pop_front();
  }
}

double RateWindow::Rate(double now, int64_t done) const {
  const Sample& oldest = samples_.front();
  const double seconds = now - oldest.time;
  if (seconds <= 0) return 0;
  return static_cast<double>(std::max<int64_t>(0, done - oldest.done)) /
         seconds;
}

Progress::Progress(ProgressOptions options, ProgressEnvironment environment)
    : options_({Printable(options.what), options.unit, options.total}),
      environment_(std::move(environment)),
      start_(environment_.now()),
      total_(options_.total),
      rate_(start_),
      last_shown_(start_) {}

Progress::~Progress() {
  const absl::MutexLock lock(&mutex_);
  Erase();
}

void Progress::Update(int64_t done, std::string_view note) {
  const absl::MutexLock lock(&mutex_);
  if (finished_) return;
  const double now = environment_.now();
  done_ = done;
  rate_.Add(now, done_);
  const double pause = environment_.is_terminal || environment_.report
                           ? kSecondsBetweenDraws
                           : kSecondsBetweenLines;
  if (environment_.report) note_ = PrintableLine(note, true);
  if (now - last_shown_ < pause) return;
  last_shown_ = now;
  note_ = PrintableLine(note, true);
  if (environment_.report) {
    Report();
  } else if (environment_.is_terminal) {
    environment_.write(absl::StrCat("\r", TerminalLine(now), "\x1b[K"));
    line_is_shown_ = true;
  } else {
    environment_.write(PlainLine(now));
    said_anything_ = true;
  }
}

void Progress::SetTotal(int64_t total) {
  const absl::MutexLock lock(&mutex_);
  total_ = total;
}

void Progress::Say(std::string_view line) {
  const absl::MutexLock lock(&mutex_);
  Erase();
  environment_.write(absl::StrCat(Printable(line), "\n"));
}

void Progress::Finish() {
  const absl::MutexLock lock(&mutex_);
  if (finished_) return;
  finished_ = true;
  // The parent gets the final count even of very short work.
  if (environment_.report) Report();
  Erase();
  if (!said_anything_) return;
  const double seconds = environment_.now() - start_;
  environment_.write(absl::StrCat(
      environment_.time_of_day(), " ", options_.what, ": done, ",
      HumanCount(done_), " ", options_.unit, " in ", HumanDuration(seconds),
      ", ", HumanRate(static_cast<double>(done_) / seconds), "/s\n"));
}

double Progress::Share() const {
  return std::clamp(static_cast<double>(done_) / static_cast<double>(total_),
                    0.0, 1.0);
}

std::vector<std::string> Progress::Figures(double now) const {
  const double rate = rate_.Rate(now, done_);
  const std::string of =
      total_ > 0 ? absl::StrCat("/", HumanCount(total_)) : "";
  std::vector<std::string> figures = {
      absl::StrCat(HumanCount(done_), of, " ", options_.unit),
      absl::StrCat(HumanRate(rate), "/s")};
  const int64_t left = total_ - done_;
  if (total_ <= 0) {
    figures.push_back(HumanDuration(now - start_));
  } else if (left >= 0 && rate > 0) {
    figures.push_back(
        absl::StrCat(HumanDuration(static_cast<double>(left) / rate), " left"));
  }
  if (!note_.empty()) figures.push_back(note_);
  return figures;
}

std::string Progress::TerminalLine(double now) const {
  // A character in the last column would move the cursor to the next line.
  const int room = std::max(0, environment_.columns() - 1);
  const std::vector<std::string> figures = Figures(now);
  if (total_ <= 0) {
    return FitFigures(options_.what, figures, room);
  }
  const double share = Share();
  const std::string percent =
      absl::StrFormat(" %3d %%", static_cast<int>(100 * share));
  const int used = DisplayWidth(absl::StrCat(
      options_.what, " []", percent, "  ", absl::StrJoin(figures, "  ")));
  // Changing the width in steps keeps the bar stable while the figures change.
  const int bar = std::min((room - used) / kBarStep * kBarStep, kMaxBarWidth);
  const std::string begin =
      bar < kBarStep ? options_.what
                     : absl::StrCat(options_.what, " ", Bar(bar, share));
  return FitFigures(absl::StrCat(begin, percent), figures, room);
}

std::string Progress::PlainLine(double now) const {
  std::vector<std::string> figures = Figures(now);
  if (total_ > 0) {
    absl::StrAppendFormat(&figures.front(), " (%d %%)",
                          static_cast<int>(std::min<double>(
                              100, 100.0 * static_cast<double>(done_) /
                                       static_cast<double>(total_))));
  }
  return absl::StrCat(environment_.time_of_day(), " ", options_.what, ": ",
                      absl::StrJoin(figures, ", "), "\n");
}

void Progress::Report() {
  environment_.report(
      absl::StrCat(FormatProgressReport(
                       {done_, total_, options_.what, options_.unit, note_}),
                   "\n"));
}

void Progress::Erase() {
  if (line_is_shown_) environment_.write("\r\x1b[K");
  line_is_shown_ = false;
}

void TerminalBlock::Show(const std::vector<StyledLine>& above,
                         const std::vector<StyledLine>& block) {
  const int columns = std::max(1, environment_.columns());
  if (const int pauses = environment_.pauses ? environment_.pauses() : 0;
      pauses != pauses_) {
    pauses_ = pauses;
    widths_.clear();
    shown_.clear();
  }
  const int rows_up = RowsShown(columns);
  const bool resized = columns != columns_;
  columns_ = columns;
  widths_.clear();
  std::string text;
  for (const StyledLine& line : block) {
    // A character in the last column may move the cursor to the next line.
    const RenderedLine rendered = Render(line, columns - 1, color_);
    absl::StrAppend(&text, rendered.text, "\x1b[K\n");
    widths_.push_back(rendered.width);
  }
  if (text == shown_ && above.empty() && !resized) return;
  std::string frame = Up(rows_up);
  // A terminal treats rows that it wrapped on a resize as one line and joins
  // them when it grows again, unless they are erased. Rows are erased one by
  // one because some terminals keep a copy of what is erased at once.
  const bool shrinks = static_cast<int>(block.size()) < rows_up;
  if (resized || shrinks || !above.empty()) {
    for (int i = 0; i < rows_up; ++i) absl::StrAppend(&frame, "\x1b[K\n");
    absl::StrAppend(&frame, Up(rows_up));
  }
  for (const StyledLine& line : above) {
    absl::StrAppend(&frame,
                    Render(line, std::numeric_limits<int>::max(), color_).text,
                    "\n");
  }
  environment_.write(absl::StrCat(frame, text, "\x1b[K"));
  shown_ = std::move(text);
}

int TerminalBlock::RowsShown(int columns) const {
  int rows = 0;
  for (int width : widths_) {
    rows += std::max(1, (width + columns - 1) / columns);
  }
  // Lines above the screen cannot be reached.
  return std::min(rows, std::max(0, environment_.rows() - 1));
}

}  // namespace requant
