#ifndef REQUANT_RUNTIME_DATASETS_PROGRESS_H_
#define REQUANT_RUNTIME_DATASETS_PROGRESS_H_

// How far long work has come: one line that changes on a terminal, else a line
// now and then. Goes to stderr.

#include <chrono>
#include <cstdint>
#include <string>

namespace requant {

class Progress {
 public:
  // `what` such as "writing train.csv"; `unit` such as "rows". `total` 0: not
  // known.
  Progress(std::string what, std::string unit, int64_t total);
  // Clears the line.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Tells that `done` of the total are done; cheap enough for every one.
  // `units`: what to count in, where that is not `done` (rows of a file whose
  // progress is known in bytes).
  void Update(int64_t done, int64_t units) {
    if ((++calls_ & 0xfff) == 0) Show(done, units);
  }
  void Update(int64_t done) { Update(done, done); }

  double Seconds() const;

 private:
  using Clock = std::chrono::steady_clock;

  void Show(int64_t done, int64_t units);

  const std::string what_;
  const std::string unit_;
  const int64_t total_;
  const bool terminal_;
  const Clock::time_point start_;
  Clock::time_point next_;
  uint32_t calls_ = 0;
  bool shown_ = false;
};

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_PROGRESS_H_
