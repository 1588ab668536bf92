#ifndef REQUANT_WORKFLOWS_COMMANDS_DOCTOR_H_
#define REQUANT_WORKFLOWS_COMMANDS_DOCTOR_H_

// What `requant doctor` (commands.h) says about a machine. Facts come in as
// values and leave as checks: nothing here looks at the machine itself.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/process/machine.h"

namespace requant {

enum class CheckStatus { kOk, kWarning, kError };

struct Check {
  // One word, the same on every machine, such as "memory".
  std::string name;
  CheckStatus status = CheckStatus::kOk;
  // What was found.
  std::string found;
  // What to do about it; empty when the status is kOk.
  std::string advice;
};

// Returns the CPU's model, a check per instruction set, and what they mean for
// int8.
std::vector<Check> CheckCpu(const CpuFeatures& features);

// Checks the cap that programs set for oneDNN. `needed` is this machine's, and
// `from_environment` the user's own ONEDNN_MAX_CPU_ISA; "" means none.
Check CheckIsaCap(const std::string& needed,
                  const std::string& from_environment);

Check CheckCores(const CoreLimits& limits);
Check CheckMemory(const MemoryLimits& limits);

// `available_bytes` is unset when the file system does not say.
Check CheckDisk(std::optional<int64_t> available_bytes, bool writable);

// What a child process that loaded TensorFlow and ran int8 layers reported.
struct TensorFlowProbe {
  // Empty when the library did not load.
  std::string version;
  enum { kDidNotRun, kExact, kSaturating } int8 = kDidNotRun;
  // Why something is missing above, as a clause: "it was ended by SIGILL".
  std::string failure;
  // Whether TF_ENABLE_ONEDNN_OPTS is 0, so that there are no int8 kernels.
  bool one_dnn_is_off = false;
};
// Checks the library and how its int8 kernels ran. `built_for` is the version
// that this program was compiled with.
std::vector<Check> CheckTensorFlow(const TensorFlowProbe& probe,
                                   const std::string& built_for,
                                   const CpuFeatures& features);

// Checks whether int8 graphs run in a stock TensorFlow process, that is,
// without the variables that requant sets for its own. `needed` has those to
// set, as "NAME=value".
Check CheckStock(const TensorFlowProbe& stock, const CpuFeatures& features,
                 const std::string& needed);

// Returns a line per check and one that counts them.
std::string RenderText(const std::vector<Check>& checks, bool color);

// Returns the worst status; kOk without checks.
CheckStatus WorstStatus(const std::vector<Check>& checks);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_COMMANDS_DOCTOR_H_
