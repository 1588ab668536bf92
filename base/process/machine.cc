#include "base/process/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/file.h"

namespace requant {
namespace {

std::optional<std::string> Read(const std::string& path) {
  absl::StatusOr<std::string> contents = ReadFile(path, 1 << 20);
  if (!contents.ok()) return std::nullopt;
  return *std::move(contents);
}

std::optional<int64_t> ReadNumber(const std::string& path) {
  const std::optional<std::string> text = Read(path);
  int64_t number;
  if (!text.has_value() || !absl::SimpleAtoi(*text, &number)) {
    return std::nullopt;
  }
  return number;
}

// Folders of the groups that limit this process by `controller`, its own first
// and the root's last. Where the process sees a path from outside of its
// container, which does not exist inside, the root's files are the container's.
struct GroupChain {
  bool version_2 = false;
  std::vector<std::string> folders;
};

GroupChain ChainFrom(bool version_2, const std::string& mount,
                     std::string path) {
  GroupChain chain;
  chain.version_2 = version_2;
  while (!path.empty() && path != "/") {
    chain.folders.push_back(absl::StrCat(mount, path));
    path = path.substr(0, path.rfind('/'));
  }
  chain.folders.push_back(mount);
  return chain;
}

// Lines of /proc/self/cgroup are "0::/path" (version 2) and
// "4:cpu,cpuacct:/path" (version 1, one line per hierarchy).
std::vector<GroupChain> GroupChains(const MachineSources& sources,
                                    std::string_view controller) {
  std::vector<GroupChain> chains;
  const std::string text = Read(sources.proc + "/self/cgroup").value_or("");
  for (std::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<std::string> fields =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3 || !absl::StartsWith(fields[2], "/")) continue;
    if (fields[1].empty()) {
      chains.push_back(ChainFrom(true, sources.cgroup, fields[2]));
      continue;
    }
    const std::vector<std::string> controllers = absl::StrSplit(fields[1], ',');
    if (std::find(controllers.begin(), controllers.end(), controller) ==
        controllers.end()) {
      continue;
    }
    // Systems mount by the controller's name, by all names, or link one to the
    // other.
    const std::string by_all = absl::StrCat(sources.cgroup, "/", fields[1]);
    const std::string by_one = absl::StrCat(sources.cgroup, "/", controller);
    const bool joint = access(by_all.c_str(), F_OK) == 0;
    chains.push_back(ChainFrom(false, joint ? by_all : by_one, fields[2]));
  }
  return chains;
}

std::optional<double> ReadQuota(const std::string& folder, bool version_2) {
  if (version_2) {
    const std::optional<std::string> text = Read(folder + "/cpu.max");
    return text.has_value() ? ParseCpuMax(*text) : std::nullopt;
  }
  const auto quota = ReadNumber(folder + "/cpu.cfs_quota_us");
  const auto period = ReadNumber(folder + "/cpu.cfs_period_us");
  // -1 is version 1's word for no limit.
  if (!quota.has_value() || !period.has_value() || *quota <= 0 ||
      *period <= 0) {
    return std::nullopt;
  }
  return static_cast<double>(*quota) / *period;
}

// The number behind `field` in memory.stat's lines "field number".
int64_t StatField(const std::string& folder, std::string_view field) {
  const std::string text = Read(folder + "/memory.stat").value_or("");
  for (std::string_view line : absl::StrSplit(text, '\n')) {
    int64_t number;
    if (absl::ConsumePrefix(&line, field) && absl::ConsumePrefix(&line, " ") &&
        absl::SimpleAtoi(line, &number)) {
      return number;
    }
  }
  return 0;
}

void TightenMemory(const std::string& folder, bool version_2,
                   MemoryLimits* limits) {
  // Version 1 writes "no limit" as the largest number of pages, and version 2
  // as "max", which is no number.
  constexpr int64_t kUnlimited = int64_t{1} << 60;
  const auto limit = ReadNumber(
      folder + (version_2 ? "/memory.max" : "/memory.limit_in_bytes"));
  if (!limit.has_value() || *limit <= 0 || *limit >= kUnlimited) return;
  const auto usage = ReadNumber(
      folder + (version_2 ? "/memory.current" : "/memory.usage_in_bytes"));
  const int64_t droppable =
      StatField(folder, version_2 ? "inactive_file" : "total_inactive_file");
  const int64_t free =
      std::clamp<int64_t>(*limit - usage.value_or(0) + droppable, 0, *limit);
  limits->group_limit = std::min(limits->group_limit.value_or(*limit), *limit);
  limits->group_available =
      std::min(limits->group_available.value_or(free), free);
}

int AllowedCores() {
  // The mask's size is the kernel's choice; the call fails while it is too
  // small.
  for (int cores = 1024; cores <= 1 << 20; cores *= 2) {
    cpu_set_t* mask = CPU_ALLOC(cores);
    if (mask == nullptr) break;
    const size_t size = CPU_ALLOC_SIZE(cores);
    const bool done = sched_getaffinity(0, size, mask) == 0;
    const int count = done ? CPU_COUNT_S(size, mask) : 0;
    CPU_FREE(mask);
    if (done) return std::max(1, count);
  }
  return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace

int CoreLimits::usable() const {
  if (!quota.has_value()) return std::max(1, allowed);
  // Half a core more is worth a thread; a tenth is not.
  const double threads = std::min<double>(std::floor(*quota + 0.5), allowed);
  return std::max(1, static_cast<int>(threads));
}

std::optional<int64_t> MemoryLimits::usable() const {
  if (!available.has_value()) return group_available;
  return std::min(*available, group_available.value_or(*available));
}

CoreLimits ReadCoreLimits(const MachineSources& sources) {
  CoreLimits limits;
  limits.allowed = AllowedCores();
  for (const GroupChain& chain : GroupChains(sources, "cpu")) {
    for (const std::string& folder : chain.folders) {
      const std::optional<double> quota = ReadQuota(folder, chain.version_2);
      if (!quota.has_value()) continue;
      limits.quota = std::min(limits.quota.value_or(*quota), *quota);
    }
  }
  return limits;
}

MemoryLimits ReadMemoryLimits(const MachineSources& sources) {
  MemoryLimits limits;
  const std::string meminfo = Read(sources.proc + "/meminfo").value_or("");
  limits.total = MeminfoBytes(meminfo, "MemTotal");
  limits.available = MeminfoBytes(meminfo, "MemAvailable");
  for (const GroupChain& chain : GroupChains(sources, "memory")) {
    for (const std::string& folder : chain.folders) {
      TightenMemory(folder, chain.version_2, &limits);
    }
  }
  return limits;
}

std::optional<int64_t> MeminfoBytes(std::string_view meminfo,
                                    std::string_view field) {
  for (std::string_view line : absl::StrSplit(meminfo, '\n')) {
    if (!absl::ConsumePrefix(&line, field) ||
        !absl::ConsumePrefix(&line, ":")) {
      continue;
    }
    int64_t kilobytes;
    if (!absl::ConsumeSuffix(&line, " kB") ||
        !absl::SimpleAtoi(line, &kilobytes) || kilobytes < 0 ||
        kilobytes > INT64_MAX / 1024) {
      return std::nullopt;
    }
    return kilobytes * 1024;
  }
  return std::nullopt;
}

std::optional<double> ParseCpuMax(std::string_view text) {
  const std::vector<std::string_view> words =
      absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  int64_t quota, period;
  if (words.size() != 2 || !absl::SimpleAtoi(words[0], &quota) ||
      !absl::SimpleAtoi(words[1], &period) || quota <= 0 || period <= 0) {
    return std::nullopt;
  }
  return static_cast<double>(quota) / period;
}

}  // namespace requant
