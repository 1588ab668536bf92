#ifndef REQUANT_RUNTIME_BENCHMARK_BENCHMARK_REPORT_H_
#define REQUANT_RUNTIME_BENCHMARK_BENCHMARK_REPORT_H_

// What `requant benchmark` prints.

#include <string>

#include "runtime/session/worker.pb.h"

namespace requant {

// For people: the setting, a table with a line per graph, a sentence per graph
// on its speed against the first, and profiles if there are any.
std::string BenchmarkText(const BenchmarkJob& job,
                          const BenchmarkResult& result);

// Everything, as one JSON object and a newline. What is not known is null.
std::string BenchmarkJson(const BenchmarkJob& job,
                          const BenchmarkResult& result);

}  // namespace requant

#endif  // REQUANT_RUNTIME_BENCHMARK_BENCHMARK_REPORT_H_
