#ifndef REQUANT_RUNTIME_BENCHMARK_BENCHMARK_FIGURES_H_
#define REQUANT_RUNTIME_BENCHMARK_BENCHMARK_FIGURES_H_

// What a benchmark's rounds say about each graph, and about each graph against
// the first.

#include <optional>
#include <vector>

#include "runtime/evaluation.pb.h"
#include "runtime/session/worker.pb.h"

namespace requant {

// A graph's figure divided by the first graph's of the same round, so that what
// slows the whole machine for a while falls out: the median over the rounds,
// with its interval where there are rounds enough for one.
struct PairedRatio {
  double median = 1;
  std::optional<Interval> interval;
};

enum class SpeedVerdict {
  kFaster,
  kSlower,
  // The interval holds 1.
  kNoDifference,
  // Too few rounds.
  kUnknown,
};

struct GraphFigures {
  // Medians over the rounds; the spread is that of RelativeSpread.
  double records_per_second = 0;
  double spread = 0;
  double cpu_microseconds_per_record = 0;
  // Of single batches.
  double milliseconds_per_batch = 0;
  double milliseconds_per_batch_p99 = 0;
  // The share of its time that the graph waited for a core; unset if unknown.
  std::optional<double> waited_share;
  // Against the first graph: above 1 is faster, below 1 is less CPU time. Both
  // are 1, without an interval, for the first graph itself.
  PairedRatio speed;
  PairedRatio cpu_time;
};

// One per graph. Every graph must have the same number of rounds, at least one.
std::vector<GraphFigures> FiguresOf(const BenchmarkResult& result);

SpeedVerdict JudgeSpeed(const PairedRatio& speed);

}  // namespace requant

#endif  // REQUANT_RUNTIME_BENCHMARK_BENCHMARK_FIGURES_H_
