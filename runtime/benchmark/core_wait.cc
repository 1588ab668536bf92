#include "runtime/benchmark/core_wait.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>

namespace requant {

std::optional<double> CoreWaitSeconds(const std::string& tasks_folder) {
  std::optional<double> seconds;
  std::error_code error;
  for (std::filesystem::directory_iterator task(tasks_folder, error), end;
       !error && task != end; task.increment(error)) {
    // Nanoseconds on a core, nanoseconds waiting for one, turns. A thread that
    // has just ended has no such file any more.
    std::ifstream file(task->path() / "schedstat");
    double ran, waited;
    if (file >> ran >> waited) seconds = seconds.value_or(0) + 1e-9 * waited;
  }
  return seconds;
}

}  // namespace requant
