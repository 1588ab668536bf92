#include "workflows/run/task_space.h"

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace requant {
namespace {

// Of the largest format that there is of synthesized data.
constexpr int64_t kBytesPerRow = 800;
constexpr int64_t kReservedBytes = 64 << 20;

// Of what is not negative.
int64_t SaturatedProduct(int64_t a, int64_t b) {
  int64_t result;
  return __builtin_mul_overflow(a, b, &result) ? INT64_MAX : result;
}
int64_t SaturatedSum(int64_t a, int64_t b) {
  int64_t result;
  return __builtin_add_overflow(a, b, &result) ? INT64_MAX : result;
}

// What a task will write, by what it wrote last, or by how much of a kind of
// data there will be; 0 when nothing is known.
int64_t ExpectedBytes(const Plan& plan, const Task& task,
                      const StageStore& store) {
  int64_t bytes = 0;
  const std::optional<CachedTask> last = store.LastOf(task.name);
  if (last.has_value()) {
    for (const FileRecord& output : last->work().output()) {
      bytes += output.bytes();
    }
    return bytes;
  }
  if (task.kind != Task::Kind::kMake) return 0;
  int64_t rows = 0;
  if (absl::SimpleAtoi(
          plan.file.workflow.stage(task.stage).dataset().synthesize().rows(),
          &rows)) {
    bytes = SaturatedProduct(rows, kBytesPerRow);
  }
  return bytes;
}

}  // namespace

absl::Status CheckSpace(const Plan& plan, const std::vector<int>& tasks,
                        const StageStore& store) {
  // Besides room for whatever else is written.
  int64_t needed = kReservedBytes;
  for (const int task : tasks) {
    needed = SaturatedSum(needed, ExpectedBytes(plan, plan.tasks[task], store));
  }
  const std::optional<int64_t> free = store.FreeBytes();
  if (tasks.empty() || !free.has_value() || *free >= needed) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "the disk of ", store.folder(), " has ", *free / 1'000'000,
      " MB free and about ", needed / 1'000'000,
      " MB are needed: free some, or name a folder on another disk with "
      "--work_dir"));
}

}  // namespace requant
