#ifndef REQUANT_RUNTIME_BENCHMARK_PUBLISHED_BENCHMARK_H_
#define REQUANT_RUNTIME_BENCHMARK_PUBLISHED_BENCHMARK_H_

#include <string>

#include "runtime/session/worker.pb.h"

namespace requant {

// The lines that the published GPT-J example prints of a model and its
// converted form, letter by letter, then what they lack: the cosine similarity,
// top-1 agreement and largest difference of the outputs, and what the figures
// mean. Latency is the median time of a batch, and throughput the batch size
// divided by it. Of several converted models each has its path behind its name.
std::string PublishedBenchmarkText(const BenchmarkJob& job,
                                   const BenchmarkResult& result);

}  // namespace requant

#endif  // REQUANT_RUNTIME_BENCHMARK_PUBLISHED_BENCHMARK_H_
