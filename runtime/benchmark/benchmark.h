#ifndef REQUANT_RUNTIME_BENCHMARK_BENCHMARK_H_
#define REQUANT_RUNTIME_BENCHMARK_BENCHMARK_H_

// Measures the speed of graphs relative to each other.

#include <string>

#include "absl/status/statusor.h"
#include "runtime/session/job.pb.h"

namespace requant {

// Preloads records, finds how many streams and threads suit the machine, warms
// the graphs up and measures them in turn. Reports activities, progress and
// warnings (base/program/isolation.h).
absl::StatusOr<BenchmarkResult> Benchmark(const BenchmarkJob& job);

}  // namespace requant

#endif  // REQUANT_RUNTIME_BENCHMARK_BENCHMARK_H_
