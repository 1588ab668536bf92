#include "base/process/machine.h"

#include "base/testing/testing.h"

namespace requant::machine_test {
namespace {

// Returns a CPU with AVX2, AVX-VNNI, AVX-512, AVX512-VNNI and AMX: "w" works,
// "t" is advertised but traps, "-" is absent.
CpuFeatures Features(const std::string& sets) {
  CpuFeatures features;
  InstructionSet* const all[] = {&features.avx2, &features.avx_vnni,
                                 &features.avx512, &features.avx512_vnni,
                                 &features.amx_int8};
  for (int i = 0; i < 5; ++i) *all[i] = {sets[i] != '-', sets[i] == 'w'};
  return features;
}

TEST(ProbeCpu, TriesOnlyWhatIsAdvertised) {
  const CpuFeatures features = ProbeCpu();
  for (const InstructionSet& set :
       {features.avx2, features.avx_vnni, features.avx512, features.avx512_vnni,
        features.amx_int8}) {
    EXPECT_LE(set.works, set.advertised);
  }
#ifdef __x86_64__
  // The compiler must agree.
  EXPECT_EQ(features.avx2.advertised, !!__builtin_cpu_supports("avx2"));
  EXPECT_EQ(features.avx2.works, features.avx2.advertised);
  EXPECT_EQ(features.avx512_vnni.advertised,
            features.avx512.advertised && __builtin_cpu_supports("avx512vnni"));
  EXPECT_EQ(features.vendor.size(), 12u) << features.vendor;
  EXPECT_FALSE(features.model.empty());
#endif
}

// The cap excludes what traps; products are exact with VNNI or AMX.
TEST(OneDnnIsaCap, StaysBelowWhatTraps) {
  struct SetsCase {
    const char *sets, *cap, *target;
  };
  const SetsCase cases[] = {
      {"-----", "", "avx2"},
      {"w----", "", "avx2"},
      {"ww---", "", "vnni"},
      {"w-w--", "", "avx2"},
      {"wwwww", "", "vnni"},
      {"wwwwt", "AVX512_CORE_VNNI", "vnni"},
      {"www-t", "AVX512_CORE", "vnni"},
      {"w---t", "AVX2", "avx2"},
      {"wwwtw", "AVX512_CORE", "vnni"},
      {"w-wt-", "AVX512_CORE", "avx2"},
      {"wwttw", "AVX2_VNNI", "vnni"},
      {"w-ttw", "AVX2", "vnni"},
      {"wt---", "AVX2", "avx2"},
      {"wtwww", "AVX512_CORE_VNNI", "vnni"},
      {"twwww", "SSE41", "vnni"},
  };
  for (const SetsCase& test : cases) {
    SCOPED_TRACE(test.sets);
    EXPECT_EQ(OneDnnIsaCap(Features(test.sets)), test.cap);
    EXPECT_EQ(QuantizationTarget(Features(test.sets)), test.target);
  }
}

TEST(QuantizationTarget, IsAvx2WhereACapKeepsFromTheDotProduct) {
  for (const char* cap : {"AVX2", "avx2", "AVX512_CORE"}) {
    EXPECT_EQ(QuantizationTarget(Features("wwwww"), cap), "avx2") << cap;
  }
  EXPECT_EQ(QuantizationTarget(Features("w-ww-"), "AVX2_VNNI"), "avx2");
  for (const char* cap : {"", "AVX512_CORE_VNNI", "AVX512_CORE_AMX", "ALL"}) {
    EXPECT_EQ(QuantizationTarget(Features("wwwww"), cap), "vnni") << cap;
  }
}

// What a kind of machine reports: the highest leaf, leaf 7's ebx, ecx and edx,
// its subleaf 1's eax, leaf 0x1D's eax, leaf 0x1E's ebx, and XCR0.
struct Machine {
  std::string name;
  uint32_t highest, ebx, ecx, edx, eax_1, palettes, tiles;
  uint64_t xcr0;
  // What is expected: AMX advertised and working, the cap, the next lower one,
  // the target, and whether stock TensorFlow leaves oneDNN off.
  bool amx_advertised, amx_works;
  std::string cap, lower, target;
  bool one_dnn_is_off;
};

constexpr uint32_t kAvx2 = 1 << 5, kAvx512 = 0xc0030000 | kAvx2;
constexpr uint32_t kVnni = 1 << 11, kAmx = 0x03c00000;
constexpr uint32_t kAvxVnni = 1 << 4, kBf16 = 1 << 5;
constexpr uint64_t kYmm = 0x7, kZmm = 0xe7, kTiles = 0x600e7;

CpuAnswers AnswersOf(const Machine& machine) {
  const auto cpuid = [machine](uint32_t leaf, uint32_t subleaf) -> CpuidWords {
    switch (leaf) {
      case 0:
        return {machine.highest, 0x756e6547, 0x6c65746e, 0x49656e69};
      case 7:
        if (subleaf == 1) return {machine.eax_1};
        return {2, machine.ebx, machine.ecx, machine.edx};
      case 0x1d:
      case 0x1e:
        // CPUs return the highest leaf when asked for a leaf beyond it.
        if (leaf > machine.highest) return {0x4000000b, 7, 7, 0};
        return {machine.palettes, machine.tiles, 0, 0};
      default:
        return {};
    }
  };
  return {cpuid, machine.xcr0};
}

const Machine kMachines[] = {
    {"Sapphire Rapids", 0x20, kAvx512, kVnni, kAmx, kAvxVnni | kBf16, 1, 0x4010,
     kTiles, true, true, "", "AVX512_CORE_VNNI", "vnni", false},
    {"the same below a hypervisor that ends at leaf 0x1C", 0x1c, kAvx512, kVnni,
     kAmx, kAvxVnni | kBf16, 1, 0x4010, kTiles, true, false, "AVX512_CORE_VNNI",
     "AVX512_CORE", "vnni", false},
    {"the same below one that has no leaf 0x1E", 0x1d, kAvx512, kVnni, kAmx,
     kAvxVnni | kBf16, 1, 0x4010, kTiles, true, false, "AVX512_CORE_VNNI",
     "AVX512_CORE", "vnni", false},
    {"the same below one that tells no palette", 0x20, kAvx512, kVnni, kAmx,
     kAvxVnni | kBf16, 0, 0x4010, kTiles, true, false, "AVX512_CORE_VNNI",
     "AVX512_CORE", "vnni", false},
    {"the same below one that saves no tiles", 0x20, kAvx512, kVnni, kAmx,
     kAvxVnni | kBf16, 1, 0x4010, kZmm, false, false, "", "AVX512_CORE_VNNI",
     "vnni", false},
    {"the same below one that saves no long vectors", 0x20, kAvx512, kVnni,
     kAmx, kAvxVnni | kBf16, 1, 0x4010, kYmm, false, false, "", "AVX2", "vnni",
     false},
    {"Zen 4", 0x10, kAvx512, kVnni, 0, kBf16, 0, 0, kZmm, false, false, "",
     "AVX512_CORE_VNNI", "vnni", false},
    {"Cascade Lake", 0x16, kAvx512, kVnni, 0, 0, 0, 0, kZmm, false, false, "",
     "AVX512_CORE", "vnni", false},
    {"Skylake-X", 0x16, kAvx512, 0, 0, 0, 0, 0, kZmm, false, false, "", "AVX2",
     "avx2", true},
    {"Alder Lake", 0x20, kAvx2, 0, 0, kAvxVnni, 0, 0, kYmm, false, false, "",
     "AVX2", "vnni", false},
    {"Zen 3", 0x10, kAvx2, 0, 0, 0, 0, 0, kYmm, false, false, "", "SSE41",
     "avx2", true},
};

// On these machines every advertised instruction works by itself, tile
// instructions too; what decides is whether oneDNN would use it.
TEST(ProbeWith, AsksWhatOneDnnAsks) {
  for (const Machine& machine : kMachines) {
    SCOPED_TRACE(machine.name);
    const CpuFeatures features =
        ProbeWith(AnswersOf(machine), [](bool (*)()) { return true; });
    EXPECT_EQ(features.vendor, "GenuineIntel");
    EXPECT_EQ(features.amx_int8.advertised, machine.amx_advertised);
    EXPECT_EQ(features.amx_int8.works, machine.amx_works);
    EXPECT_EQ(OneDnnIsaCap(features), machine.cap);
    EXPECT_EQ(LowerIsaCap(features, machine.cap), machine.lower);
    EXPECT_EQ(QuantizationTarget(features, machine.cap), machine.target);
    EXPECT_EQ(TensorFlowLeavesOneDnnOff(features), machine.one_dnn_is_off);
  }
}

TEST(ProbeWith, TriesNothingOnACpuThatAdvertisesNothing) {
  const auto fail = [](bool (*)()) {
    ADD_FAILURE() << "tried";
    return true;
  };
  const CpuFeatures features =
      ProbeWith({[](uint32_t, uint32_t) { return CpuidWords(); }, 0}, fail);
  EXPECT_EQ(OneDnnIsaCap(features), "");
  EXPECT_EQ(LowerIsaCap(features, ""), "");
}

TEST(LowerIsaCap, EndsAtTheLowest) {
  CpuFeatures features = Features("wwwww");
  features.vendor = "GenuineIntel";
  features.beyond_vnni = true;
  std::vector<std::string> caps;
  for (std::string cap; caps.empty() || !cap.empty();) {
    cap = LowerIsaCap(features, cap);
    caps.push_back(cap);
  }
  EXPECT_THAT(caps, ElementsAre("AVX512_CORE_VNNI", "AVX512_CORE", "AVX2_VNNI",
                                "AVX2", "SSE41", ""));
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

// Provides folders that stand for /proc and /sys/fs/cgroup.
class ReadLimits : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& content) {
    root_.Write(name, content);
  }

  ScratchFolder root_;
  const MachineSources sources_ = {root_.Path("proc"), root_.Path("cgroup")};
};

TEST_F(ReadLimits, WithoutAnyFileNothingIsLimited) {
  EXPECT_EQ(ReadCoreLimits(sources_).quota, std::nullopt);
  EXPECT_GE(ReadCoreLimits(sources_).allowed, 1);
  EXPECT_EQ(ReadMemoryLimits(sources_).usable(), std::nullopt);
}

TEST_F(ReadLimits, MeminfoHasKilobytesOfAFieldByItsWholeName) {
  const auto total = [&](const std::string& meminfo) {
    Write("proc/meminfo", meminfo);
    return ReadMemoryLimits(sources_).total;
  };
  EXPECT_EQ(total("MemTotalled: 1 kB\nMemTotal:       24682416 kB\n"),
            int64_t{24682416} * 1024);
  for (const char* other :
       {"MemFree: 1 kB\n", "MemTotal: many kB\n", "MemTotal: 12 MB\n",
        "MemTotal: 9223372036854775807 kB"}) {
    EXPECT_EQ(total(other), std::nullopt) << other;
  }
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
  for (const char* quota : {"fast\n", "100000 0\n", ""}) {
    Write("cgroup/cpu.max", quota);
    EXPECT_EQ(ReadCoreLimits(sources_).quota, std::nullopt) << quota;
  }
  Write("cgroup/memory.max", "-5\n");
  EXPECT_EQ(ReadMemoryLimits(sources_).usable(), 1024000);
}

}  // namespace
}  // namespace requant::machine_test
