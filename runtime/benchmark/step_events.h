#ifndef REQUANT_RUNTIME_BENCHMARK_STEP_EVENTS_H_
#define REQUANT_RUNTIME_BENCHMARK_STEP_EVENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tensorflow/core/framework/step_stats.pb.h"

namespace requant {

// One node's turn in a traced run of a graph.
struct StepEvent {
  std::string node;
  // "MatMul"; empty when TensorFlow does not say.
  std::string op;
  // "CPU:0".
  std::string device;
  int64_t start_nanoseconds = 0;
  int64_t nanoseconds = 0;
};

// What TensorFlow recorded in a run with FULL_TRACE, by start time.
std::vector<StepEvent> StepEvents(const tensorflow::StepStats& stats);

}  // namespace requant

#endif  // REQUANT_RUNTIME_BENCHMARK_STEP_EVENTS_H_
