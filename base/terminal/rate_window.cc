#include "base/terminal/rate_window.h"

#include <algorithm>
#include <cstdint>

namespace requant {
namespace {

// Samples are taken in steps of a twentieth of it.
constexpr double kWindow = 10;
constexpr double kSecondsBetweenSamples = kWindow / 20;

}  // namespace

void RateWindow::Add(double now, int64_t done) {
  if (now - samples_.back().time < kSecondsBetweenSamples) return;
  samples_.push_back({now, done});
  // Two must stay: a rate needs them, however far apart they are.
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

}  // namespace requant
