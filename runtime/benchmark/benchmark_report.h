#ifndef REQUANT_RUNTIME_BENCHMARK_BENCHMARK_REPORT_H_
#define REQUANT_RUNTIME_BENCHMARK_BENCHMARK_REPORT_H_

// Computes figures on each graph, alone and relative to the first, from a
// benchmark's rounds, and formats them as `requant benchmark` prints them.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "runtime/evaluation.pb.h"
#include "runtime/session/job.pb.h"
#include "tensorflow/core/framework/step_stats.pb.h"

namespace requant {

// A graph's figure divided by the first graph's figure in the same round, so
// that temporary slowdowns of the whole machine cancel out. It is the median
// over the rounds, with its interval if there are enough rounds for one.
struct PairedRatio {
  double median = 1;
  std::optional<Interval> interval;
};

struct GraphFigures {
  // Medians over the rounds; the spread is RelativeSpread.
  double records_per_second = 0;
  double spread = 0;
  double cpu_microseconds_per_record = 0;
  // The median and the 99th percentile of single batches.
  double milliseconds_per_batch = 0;
  double milliseconds_per_batch_p99 = 0;
  // The share of its time that the graph waited for a core; unset if unknown.
  std::optional<double> waited_share;
  // Relative to the first graph: a speed above 1 is faster, a CPU time below 1
  // is less. Both are 1, without an interval, for the first graph itself.
  PairedRatio speed;
  PairedRatio cpu_time;
};

// Returns the figures of each graph. Every graph must have the same number of
// rounds, at least one.
std::vector<GraphFigures> FiguresOf(const BenchmarkResult& result);

// Returns where the time of a graph goes, by type of operation and for the
// `max_nodes` costliest nodes, averaged over what TensorFlow recorded for one
// or more batches run with FULL_TRACE. The caller sets `batch_microseconds`.
ProfileMessage ProfileOf(const std::vector<tensorflow::StepStats>& batches,
                         size_t max_nodes);

// Returns readable text: the setting, a table with a line per graph, a sentence
// per graph on its speed relative to the first, and any profiles.
std::string BenchmarkText(const BenchmarkJob& job,
                          const BenchmarkResult& result);

// Returns everything as one JSON object and a newline. Unknown values are null.
std::string BenchmarkJson(const BenchmarkJob& job,
                          const BenchmarkResult& result);

// Returns the exact lines that the published GPT-J example prints for a model
// and its converted form, then what they lack: the cosine similarity, top-1
// agreement and largest difference of the outputs, and what the figures mean.
// Latency is the median time of a batch, and throughput is the batch size
// divided by it. With several converted models, each name is followed by a
// path.
std::string PublishedBenchmarkText(const BenchmarkJob& job,
                                   const BenchmarkResult& result);

}  // namespace requant

#endif  // REQUANT_RUNTIME_BENCHMARK_BENCHMARK_REPORT_H_
