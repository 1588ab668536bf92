#ifndef REQUANT_RUNTIME_SESSION_WORKER_DEATH_H_
#define REQUANT_RUNTIME_SESSION_WORKER_DEATH_H_

// One sentence on why a worker process died.

#include <functional>
#include <string>
#include <string_view>

#include "base/process/machine.h"
#include "base/process/subprocess.h"

namespace requant {

struct WorkerDeath {
  ChildResult result;
  // The limits it had.
  ChildOptions options;
  // What it was doing, such as "running model.pb".
  std::string activity;
  // The end of what it wrote to stderr, and where all of it is, if there is
  // anything.
  std::string log_tail;
  std::string log_path;
};

// `probe` tells what the CPU can do; it is asked about illegal instructions
// only.
std::string ExplainDeath(const WorkerDeath& death,
                         const std::function<CpuFeatures()>& probe = ProbeCpu);

// The line of a log that says most: what a failed check said, or else the last
// line that is not TensorFlow's usual talk.
std::string LastWords(std::string_view log_tail);

}  // namespace requant

#endif  // REQUANT_RUNTIME_SESSION_WORKER_DEATH_H_
