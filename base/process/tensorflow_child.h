#ifndef REQUANT_BASE_PROCESS_TENSORFLOW_CHILD_H_
#define REQUANT_BASE_PROCESS_TENSORFLOW_CHILD_H_

// Child processes that load TensorFlow: the variables that they need on this
// machine, and a second try for those which die of an instruction that the CPU
// does not run.

#include <ctime>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/process/machine.h"
#include "base/process/subprocess.h"

namespace requant {

// Returns the environment's ONEDNN_MAX_CPU_ISA (or its old name
// DNNL_MAX_CPU_ISA), unless it is one that a program of ours set for this
// process; "": none.
std::string UsersIsaCap();

// Returns the cap under which children of this process run: the user's own if
// there is one, else what was remembered for this machine, else what the probe
// of base/process/machine.h finds; "": none. Only AVX-512 and AMX, where
// advertised, are tried, once per process. Thread-safe.
std::string CachedOneDnnIsaCap();

// Returns the variables that a child which loads TensorFlow needs on top of
// this process's environment: the cap above, if there is one, and
// TF_ENABLE_ONEDNN_OPTS=1, because TensorFlow turns oneDNN off by itself on
// CPUs without VNNI, and its int8 ops have no other kernels. What the user sets
// is left as it is.
std::vector<std::pair<std::string, std::string>> TensorFlowEnvironment();

// Returns the variables to set before a stock TensorFlow loads that serves an
// int8 graph on this machine, as "NAME=value NAME=value"; "" when it runs as it
// is. The second is a sentence about that.
std::string ServingVariables();
std::string ServingHint();

// Runs a child in TensorFlowEnvironment(). If SIGILL ends it, and the user set
// no cap, it is run once more under the next lower cap. Before that
// `start_over` is called with a sentence for the user and the child that died,
// to drop what came of it. A cap that helped is remembered for 30 days.
absl::StatusOr<ChildResult> RunTensorFlowChild(
    ChildOptions options,
    const std::function<void(const std::string& sentence,
                             const ChildResult& died)>& start_over);

// Where the cap is remembered that a machine needs beyond what the probe finds.
class IsaCapMemory {
 public:
  // `folder` is made when something is remembered; "": nothing is. `cpu` and
  // `tensorflow`, a version, are what a remembered cap holds for.
  IsaCapMemory(const std::string& folder, const CpuFeatures& cpu,
               const std::string& tensorflow);

  // Returns "" when nothing is remembered, or is too old, or cannot be read.
  std::string Recall(std::time_t now) const;
  void Remember(const std::string& cap, std::time_t now) const;

 private:
  std::string folder_, path_;
};

// Starts this program again in TensorFlowEnvironment() where a variable of it
// is missing: TensorFlow's library reads them before main. Returns when none
// is.
void EnterTensorFlowEnvironment(char** argv);

}  // namespace requant

#endif  // REQUANT_BASE_PROCESS_TENSORFLOW_CHILD_H_
