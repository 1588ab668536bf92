#ifndef REQUANT_BASE_PROCESS_FORKED_WORK_H_
#define REQUANT_BASE_PROCESS_FORKED_WORK_H_

// Work that may crash or never end, done in a copy of this process.

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace requant {

struct ForkedLimits {
  // The copy is ended when its step stands still for this long.
  double stalled_seconds = 60;
  // How much memory it may take beyond what this process has now.
  int64_t more_bytes = int64_t{4} << 30;
};

struct ForkedResult {
  // What the work returned; "" unless it ended by itself.
  std::string output;
  // "" when the work ended by itself, else how it did: "crashed (signal 11)",
  // "did not end".
  std::string failure;
  // The last step that it set, or -1.
  int64_t step = -1;
};

// Forks, lets the copy do `work` and returns what it did. The copy sees all
// memory of this process as it is now but has only the calling thread (locks of
// others stay locked) and no signal handlers. What it prints to stderr is
// dropped, it leaves no core file, and it dies with this process. `work`
// reports its progress by calling `set_step` before each step. Fails when no
// process can be started.
absl::StatusOr<ForkedResult> RunForked(
    const std::function<
        std::string(const std::function<void(int64_t)>& set_step)>& work,
    const ForkedLimits& limits = {});

}  // namespace requant

#endif  // REQUANT_BASE_PROCESS_FORKED_WORK_H_
