#ifndef REQUANT_RUNTIME_BENCHMARK_OP_PROFILE_H_
#define REQUANT_RUNTIME_BENCHMARK_OP_PROFILE_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/session/job.pb.h"
#include "tensorflow/core/framework/step_stats.pb.h"

namespace requant {

// Where the time of a graph goes, by type of operation and by node.
class OpProfile {
 public:
  // Adds what TensorFlow recorded of one batch, run with FULL_TRACE.
  void Add(const tensorflow::StepStats& stats);

  // Returns averages over the batches: all types and the `max_nodes` costliest
  // nodes. The caller knows `batch_microseconds` and sets it.
  ProfileMessage Result(int max_nodes) const;

 private:
  struct Cost {
    int64_t calls = 0;
    int64_t nanoseconds = 0;
  };
  // By operation and node; the node is empty in a type's key.
  using Costs = std::map<std::pair<std::string, std::string>, Cost>;

  // Returns the costs as messages, the costliest first.
  std::vector<OperationTime> Sorted(const Costs& costs) const;

  int64_t batches_ = 0;
  int64_t nanoseconds_ = 0;
  Costs types_;
  Costs nodes_;
};

}  // namespace requant

#endif  // REQUANT_RUNTIME_BENCHMARK_OP_PROFILE_H_
