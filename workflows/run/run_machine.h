#ifndef REQUANT_WORKFLOWS_RUN_RUN_MACHINE_H_
#define REQUANT_WORKFLOWS_RUN_RUN_MACHINE_H_

// What a run needs to know of the machine and the installation.

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "workflows/run/run_record.pb.h"

namespace requant {

struct RunMachine {
  // The real path of the running program, beside which the others are.
  std::string own_path;
  // Threads that can run at once.
  int cores = 1;
  // What quantization's target "host" means.
  std::string target;
  // For children that load TensorFlow (base/process/machine.h).
  std::vector<std::pair<std::string, std::string>> environment;
  // Instruction sets that work, such as "avx2".
  std::vector<std::string> features;
  ToolRecord tool;
};

absl::StatusOr<RunMachine> ThisMachine();

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_RUN_RUN_MACHINE_H_
