#ifndef REQUANT_RUNTIME_BENCHMARK_BENCHMARK_H_
#define REQUANT_RUNTIME_BENCHMARK_BENCHMARK_H_

// The measurement of graphs against each other, as worker processes do it.

#include <functional>

#include "absl/status/statusor.h"
#include "runtime/session/worker.pb.h"

namespace requant {

// Preloads records, finds out how many streams and threads suit the machine,
// warms the graphs up and measures them in turns. Sends activities, progress
// and warnings.
absl::StatusOr<BenchmarkResult> Benchmark(
    const BenchmarkJob& job,
    const std::function<void(const WorkerEvent&)>& send);

}  // namespace requant

#endif  // REQUANT_RUNTIME_BENCHMARK_BENCHMARK_H_
