#ifndef REQUANT_BASE_PROCESS_MACHINE_H_
#define REQUANT_BASE_PROCESS_MACHINE_H_

// How much of the machine this process may use: a container or a job scheduler
// often gives it less than the machine has.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace requant {

// Where to look; tests use folders of their own.
struct MachineSources {
  std::string proc = "/proc";
  std::string cgroup = "/sys/fs/cgroup";
};

struct CoreLimits {
  // Cores that the affinity mask allows.
  int allowed = 1;
  // CPU seconds per second that the control group grants, if it limits them.
  std::optional<double> quota;

  // How many threads can run at once: at least 1.
  int usable() const;
};

struct MemoryLimits {
  // Of the machine, in bytes; unset when /proc/meminfo cannot be read.
  std::optional<int64_t> total;
  std::optional<int64_t> available;
  // The control group's limit and what of it is still free (page cache that can
  // be dropped counts as free), if it limits memory.
  std::optional<int64_t> group_limit;
  std::optional<int64_t> group_available;

  // The smaller of what the machine and the group have left.
  std::optional<int64_t> usable() const;
};

// A group's limits hold for the groups below it: the tightest one on the way
// from this process's group to the root counts. Control groups of both versions
// are read, and files that are missing or malformed limit nothing.
CoreLimits ReadCoreLimits(const MachineSources& sources = {});
MemoryLimits ReadMemoryLimits(const MachineSources& sources = {});

// The bytes in a line such as "MemAvailable:   23213924 kB" of /proc/meminfo.
std::optional<int64_t> MeminfoBytes(std::string_view meminfo,
                                    std::string_view field);

// "200000 100000" (version 2's cpu.max) is 2 cores; "max 100000" is no limit.
std::optional<double> ParseCpuMax(std::string_view text);

}  // namespace requant

#endif  // REQUANT_BASE_PROCESS_MACHINE_H_
