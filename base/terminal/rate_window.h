#ifndef REQUANT_BASE_TERMINAL_RATE_WINDOW_H_
#define REQUANT_BASE_TERMINAL_RATE_WINDOW_H_

#include <cstdint>
#include <deque>

namespace requant {

// How fast something that is counted grows: over the last ten seconds or so, or
// since its start if that is sooner.
class RateWindow {
 public:
  // At `start`, a time in seconds, `done` were there already.
  explicit RateWindow(double start, int64_t done = 0)
      : samples_({{start, done}}) {}

  void Add(double now, int64_t done);
  // Per second, given the count at this time.
  double Rate(double now, int64_t done) const;

 private:
  struct Sample {
    double time = 0;
    int64_t done = 0;
  };

  std::deque<Sample> samples_;
};

}  // namespace requant

#endif  // REQUANT_BASE_TERMINAL_RATE_WINDOW_H_
