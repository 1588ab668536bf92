#ifndef REQUANT_BASE_PROCESS_TENSORFLOW_CHILD_H_
#define REQUANT_BASE_PROCESS_TENSORFLOW_CHILD_H_

// Runs child processes that load TensorFlow with the environment that they need
// on this machine, and retries those that die of an instruction that the CPU
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
// DNNL_MAX_CPU_ISA), or "" if it is unset or one of our programs set it for
// this process.
std::string UsersIsaCap();

// Returns the cap under which children of this process run: the user's own,
// else the one stored for this machine, else the result of probing
// (base/process/machine.h), or "". Only AVX-512 and AMX are probed, if
// advertised, and only once per process. Thread-safe.
std::string CachedOneDnnIsaCap();

// Returns the variables that a child that loads TensorFlow needs in addition to
// this process's environment: the cap above, if there is one, and
// TF_ENABLE_ONEDNN_OPTS=1, because TensorFlow disables oneDNN on CPUs without
// VNNI, and its int8 ops have no other kernels. The user's settings are kept.
std::vector<std::pair<std::string, std::string>> TensorFlowEnvironment();

// Returns the variables to set before stock TensorFlow loads to serve an int8
// graph on this machine, as "NAME=value NAME=value", or "" if none are needed.
// The second function returns a sentence about them.
std::string ServingVariables();
std::string ServingHint();

// Runs a child in TensorFlowEnvironment(). If SIGILL ends it and the user set
// no cap, it is run once more under the next lower cap. Before that,
// `start_over` is called with a sentence for the user and the dead child, to
// discard its results. A cap that helped is remembered for 30 days.
absl::StatusOr<ChildResult> RunTensorFlowChild(
    ChildOptions options,
    const std::function<void(const std::string& sentence,
                             const ChildResult& died)>& start_over);

// Stores the cap that a machine needs beyond what probing finds.
class IsaCapMemory {
 public:
  // `folder` is created when a cap is stored; "" stores nothing. A stored cap
  // is valid for this `cpu` and this version `tensorflow`.
  IsaCapMemory(const std::string& folder, const CpuFeatures& cpu,
               const std::string& tensorflow);

  // Returns "" when no cap is stored or it is too old or unreadable.
  std::string Recall(std::time_t now) const;
  void Remember(const std::string& cap, std::time_t now) const;

 private:
  std::string folder_, path_;
};

// Restarts this program in TensorFlowEnvironment() if a variable of it is
// missing, because TensorFlow's library reads them before main. Returns if none
// is missing.
void EnterTensorFlowEnvironment(char** argv);

}  // namespace requant

#endif  // REQUANT_BASE_PROCESS_TENSORFLOW_CHILD_H_
