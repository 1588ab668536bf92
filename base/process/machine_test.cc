#include "base/process/machine.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace requant::machine_test {
namespace {

namespace fs = std::filesystem;

TEST(MeminfoBytes, FindsTheFieldByItsWholeName) {
  const char kText[] =
      "MemTotal:       24682416 kB\nMemFree:        21676900 kB\n"
      "MemAvailable:   23213924 kB\n";
  EXPECT_EQ(MeminfoBytes(kText, "MemAvailable"), int64_t{23213924} * 1024);
  EXPECT_EQ(MeminfoBytes(kText, "Mem"), std::nullopt);
  EXPECT_EQ(MeminfoBytes(kText, "SwapFree"), std::nullopt);
}

TEST(MeminfoBytes, RefusesWhatIsNotANumberOfKilobytes) {
  EXPECT_EQ(MeminfoBytes("MemTotal: many kB\n", "MemTotal"), std::nullopt);
  EXPECT_EQ(MeminfoBytes("MemTotal: 12 MB\n", "MemTotal"), std::nullopt);
  EXPECT_EQ(MeminfoBytes("MemTotal: 9223372036854775807 kB", "MemTotal"),
            std::nullopt);
}

TEST(ParseCpuMax, IsQuotaOverPeriod) {
  EXPECT_EQ(ParseCpuMax("150000 100000\n"), 1.5);
  EXPECT_EQ(ParseCpuMax("max 100000\n"), std::nullopt);
  EXPECT_EQ(ParseCpuMax("100000 0\n"), std::nullopt);
  EXPECT_EQ(ParseCpuMax(""), std::nullopt);
}

TEST(CoreLimits, TheSmallerOfMaskAndQuotaIsUsable) {
  EXPECT_EQ((CoreLimits{8, std::nullopt}.usable()), 8);
  EXPECT_EQ((CoreLimits{8, 2.0}.usable()), 2);
  EXPECT_EQ((CoreLimits{2, 16.0}.usable()), 2);
  EXPECT_EQ((CoreLimits{8, 0.2}.usable()), 1);
  EXPECT_EQ((CoreLimits{8, 1e300}.usable()), 8);
}

TEST(MemoryLimits, TheSmallerOfMachineAndGroupIsUsable) {
  MemoryLimits limits;
  EXPECT_EQ(limits.usable(), std::nullopt);
  limits.available = 100;
  EXPECT_EQ(limits.usable(), 100);
  limits.group_available = 40;
  EXPECT_EQ(limits.usable(), 40);
  limits.available = 30;
  EXPECT_EQ(limits.usable(), 30);
}

// Folders that stand for /proc and /sys/fs/cgroup.
class ReadLimits : public testing::Test {
 protected:
  ReadLimits() {
    root_ = fs::path(testing::TempDir()) /
            testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(root_);
    sources_ = {root_ / "proc", root_ / "cgroup"};
  }
  ~ReadLimits() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& contents) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << contents;
  }

  fs::path root_;
  MachineSources sources_;
};

TEST_F(ReadLimits, WithoutAnyFileNothingIsLimited) {
  EXPECT_EQ(ReadCoreLimits(sources_).quota, std::nullopt);
  EXPECT_GE(ReadCoreLimits(sources_).allowed, 1);
  EXPECT_EQ(ReadMemoryLimits(sources_).usable(), std::nullopt);
}

TEST_F(ReadLimits, Version2TakesTheTightestGroupOnTheWayUp) {
  Write("proc/self/cgroup", "0::/a/b\n");
  Write("cgroup/a/b/cpu.max", "max 100000\n");
  Write("cgroup/a/cpu.max", "50000 100000\n");
  Write("cgroup/cpu.max", "300000 100000\n");
  Write("cgroup/a/b/memory.max", "4000\n");
  Write("cgroup/a/b/memory.current", "1000\n");
  Write("cgroup/a/b/memory.stat", "anon 7\ninactive_file 300\n");
  Write("cgroup/a/memory.max", "5000\n");
  Write("cgroup/a/memory.current", "4500\n");
  Write("cgroup/memory.max", "max\n");
  EXPECT_EQ(ReadCoreLimits(sources_).quota, 0.5);
  const MemoryLimits memory = ReadMemoryLimits(sources_);
  EXPECT_EQ(memory.group_limit, 4000);
  EXPECT_EQ(memory.group_available, 500);
}

TEST_F(ReadLimits, Version2InsideAContainerReadsTheMount) {
  Write("proc/self/cgroup", "0::/docker/0123456789\n");
  Write("cgroup/memory.max", "2000\n");
  Write("cgroup/memory.current", "500\n");
  Write("cgroup/memory.stat", "inactive_file 100\n");
  EXPECT_EQ(ReadMemoryLimits(sources_).group_available, 1600);
}

TEST_F(ReadLimits, Version1ReadsEachControllersOwnHierarchy) {
  Write("proc/self/cgroup", "4:memory:/job\n1:cpu,cpuacct:/job\n0::/\n");
  Write("cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "250000\n");
  Write("cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  Write("cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
  Write("cgroup/memory/memory.limit_in_bytes", "8000\n");
  Write("cgroup/memory/memory.usage_in_bytes", "6000\n");
  Write("cgroup/memory/memory.stat",
        "inactive_file 1\ntotal_inactive_file 1000\n");
  EXPECT_EQ(ReadCoreLimits(sources_).quota, 2.5);
  const MemoryLimits memory = ReadMemoryLimits(sources_);
  EXPECT_EQ(memory.group_limit, 8000);
  EXPECT_EQ(memory.group_available, 3000);
}

TEST_F(ReadLimits, Version1WithoutAQuotaIsNoLimit) {
  Write("proc/self/cgroup", "1:cpu:/\n");
  Write("cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  Write("cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(ReadCoreLimits(sources_).quota, std::nullopt);
}

TEST_F(ReadLimits, MalformedFilesLimitNothing) {
  Write("proc/self/cgroup", "nonsense\n::\n0::relative\n0::/\n");
  Write("proc/meminfo", "MemAvailable: 1000 kB\n");
  Write("cgroup/cpu.max", "fast\n");
  Write("cgroup/memory.max", "-5\n");
  EXPECT_EQ(ReadCoreLimits(sources_).quota, std::nullopt);
  EXPECT_EQ(ReadMemoryLimits(sources_).usable(), 1024000);
}

}  // namespace
}  // namespace requant::machine_test
