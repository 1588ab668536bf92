#include "runtime/datasets/progress.h"

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"

namespace requant {
namespace {

constexpr auto kTerminalInterval = std::chrono::milliseconds(200);
constexpr auto kLineInterval = std::chrono::seconds(10);

}  // namespace

Progress::Progress(std::string what, std::string unit, int64_t total)
    : what_(std::move(what)),
      unit_(std::move(unit)),
      total_(total),
      terminal_(isatty(STDERR_FILENO) != 0),
      start_(Clock::now()) {
  if (terminal_) {
    next_ = start_ + kTerminalInterval;
  } else {
    next_ = start_ + kLineInterval;
  }
}

Progress::~Progress() {
  if (terminal_ && shown_) std::fputs("\r\033[K", stderr);
}

double Progress::Seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

void Progress::Show(int64_t done, int64_t units) {
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  if (terminal_) {
    next_ = now + kTerminalInterval;
  } else {
    next_ = now + kLineInterval;
  }
  const double seconds = Seconds();
  std::string line = absl::StrFormat("%s: %d %s, %.0f %s/s", what_, units,
                                     unit_, units / seconds, unit_);
  if (total_ > 0 && done > 0) {
    const double share = static_cast<double>(done) / total_;
    absl::StrAppendFormat(&line, ", %.0f %%, %.0f s left", 100 * share,
                          seconds * (1 - share) / share);
  }
  std::fprintf(stderr, terminal_ ? "\r%s\033[K" : "%s\n", line.c_str());
  shown_ = true;
}

}  // namespace requant
