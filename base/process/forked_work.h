#ifndef REQUANT_BASE_PROCESS_FORKED_WORK_H_
#define REQUANT_BASE_PROCESS_FORKED_WORK_H_

// Does work that may crash or never end in a copy of this process.

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace requant {

struct ForkedLimits {
  // The copy is killed when its step does not change for this long.
  double stalled_seconds = 60;
  // How much more memory than this process now has the copy may take.
  int64_t more_bytes = int64_t{4} << 30;
};

struct ForkedResult {
  // What the work returned, or "" if it failed.
  std::string output;
  // How the work failed: "crashed (signal 11)" or "did not end". It is "" on
  // success.
  std::string failure;
  // The last step that was set, or -1.
  int64_t step = -1;
};

// Forks, does `work` in the copy and returns the result. The copy sees all
// memory of this process as it is now but has only the calling thread (locks
// that others hold stay locked) and no signal handlers. Its stderr is
// discarded, it leaves no core file, and it dies with this process. `work`
// reports its progress by calling `set_step` before each step. Fails when no
// process can be started.
absl::StatusOr<ForkedResult> RunForked(
    const std::function<
        std::string(const std::function<void(int64_t)>& set_step)>& work,
    const ForkedLimits& limits = {});

}  // namespace requant

#endif  // REQUANT_BASE_PROCESS_FORKED_WORK_H_
