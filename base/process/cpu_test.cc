#include "base/process/cpu.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdint>
#include <string>
#include <vector>

namespace requant::cpu_test {
namespace {

constexpr InstructionSet kAbsent = {false, false};
constexpr InstructionSet kWorks = {true, true};
constexpr InstructionSet kTraps = {true, false};
constexpr int kAmpleMs = 60000;

CpuFeatures Avx2Only() {
  CpuFeatures features;
  features.avx2 = kWorks;
  return features;
}

CpuFeatures SapphireRapids() {
  CpuFeatures features;
  features.avx2 = features.avx_vnni = features.avx512 = features.avx512_vnni =
      features.amx_int8 = kWorks;
  return features;
}

TEST(SucceedsInChild, ReturnsWhatTheActionReturns) {
  EXPECT_TRUE(SucceedsInChild([] { return true; }, kAmpleMs));
  EXPECT_FALSE(SucceedsInChild([] { return false; }, kAmpleMs));
}

TEST(SucceedsInChild, SurvivesATrap) {
  EXPECT_FALSE(SucceedsInChild(
      [] {
        __builtin_trap();
        return true;
      },
      kAmpleMs));
}

TEST(SucceedsInChild, EndsAHangingActionAtTheLimit) {
  EXPECT_FALSE(SucceedsInChild(
      [] {
        for (volatile int i = 0;; i = i + 1) {
        }
        return true;
      },
      50));
}

TEST(SucceedsInChild, NeedsNoExitStatus) {
  // A daemon that ignores SIGCHLD gets none from waitpid.
  const auto previous = signal(SIGCHLD, SIG_IGN);
  EXPECT_TRUE(SucceedsInChild([] { return true; }, kAmpleMs));
  signal(SIGCHLD, previous);
}

TEST(SucceedsInChild, TakesSignalHandlersAway) {
  // With the handler in place the trap would be survived.
  const auto previous = signal(SIGTRAP, [](int) {});
  EXPECT_FALSE(SucceedsInChild(
      [] {
        raise(SIGTRAP);
        return true;
      },
      kAmpleMs));
  signal(SIGTRAP, previous);
}

TEST(ProbeCpu, TriesOnlyWhatIsAdvertised) {
  const CpuFeatures features = ProbeCpu();
  for (const InstructionSet& set :
       {features.avx2, features.avx_vnni, features.avx512, features.avx512_vnni,
        features.amx_int8}) {
    EXPECT_LE(set.works, set.advertised);
  }
}

#ifdef __x86_64__
TEST(ProbeCpu, AgreesWithTheCompilersView) {
  const CpuFeatures features = ProbeCpu();
  EXPECT_EQ(features.avx2.advertised, !!__builtin_cpu_supports("avx2"));
  EXPECT_EQ(features.avx2.works, features.avx2.advertised);
  EXPECT_EQ(features.avx512_vnni.advertised,
            features.avx512.advertised && __builtin_cpu_supports("avx512vnni"));
  EXPECT_EQ(features.vendor.size(), 12u) << features.vendor;
  EXPECT_FALSE(features.model.empty());
}
#endif

TEST(OneDnnIsaCap, IsEmptyWhereEverythingAdvertisedWorks) {
  EXPECT_EQ(OneDnnIsaCap(CpuFeatures()), "");
  EXPECT_EQ(OneDnnIsaCap(Avx2Only()), "");
  EXPECT_EQ(OneDnnIsaCap(SapphireRapids()), "");
}

TEST(OneDnnIsaCap, StaysBelowATrappingAmx) {
  CpuFeatures features = SapphireRapids();
  features.amx_int8 = kTraps;
  EXPECT_EQ(OneDnnIsaCap(features), "AVX512_CORE_VNNI");
  features.avx512_vnni = kAbsent;
  EXPECT_EQ(OneDnnIsaCap(features), "AVX512_CORE");
  features.avx512 = features.avx_vnni = kAbsent;
  EXPECT_EQ(OneDnnIsaCap(features), "AVX2");
}

TEST(OneDnnIsaCap, StaysBelowATrappingAvx512) {
  CpuFeatures features = SapphireRapids();
  features.avx512_vnni = kTraps;
  EXPECT_EQ(OneDnnIsaCap(features), "AVX512_CORE");
  features.avx512 = kTraps;
  EXPECT_EQ(OneDnnIsaCap(features), "AVX2_VNNI");
  features.avx_vnni = kAbsent;
  EXPECT_EQ(OneDnnIsaCap(features), "AVX2");
}

TEST(OneDnnIsaCap, StaysBelowATrappingAvxVnni) {
  CpuFeatures features = Avx2Only();
  features.avx_vnni = kTraps;
  EXPECT_EQ(OneDnnIsaCap(features), "AVX2");
  features = SapphireRapids();
  features.avx_vnni = kTraps;
  EXPECT_EQ(OneDnnIsaCap(features), "AVX512_CORE_VNNI");
}

TEST(OneDnnIsaCap, StaysBelowATrappingAvx2) {
  CpuFeatures features = SapphireRapids();
  features.avx2 = kTraps;
  EXPECT_EQ(OneDnnIsaCap(features), "SSE41");
}

TEST(QuantizationTarget, IsVnniWhereAnExactDotProductWorks) {
  EXPECT_EQ(QuantizationTarget(SapphireRapids()), "vnni");
  CpuFeatures alder_lake = Avx2Only();
  alder_lake.avx_vnni = kWorks;
  EXPECT_EQ(QuantizationTarget(alder_lake), "vnni");
}

TEST(QuantizationTarget, IsAvx2WithoutOne) {
  CpuFeatures skylake = Avx2Only();
  skylake.avx512 = kWorks;
  EXPECT_EQ(QuantizationTarget(skylake), "avx2");
  skylake.avx512_vnni = kTraps;
  EXPECT_EQ(QuantizationTarget(skylake), "avx2");
}

TEST(QuantizationTarget, IsAvx2WhereACapKeepsFromTheDotProduct) {
  for (const char* cap : {"AVX2", "avx2", "AVX512_CORE"}) {
    EXPECT_EQ(QuantizationTarget(SapphireRapids(), cap), "avx2") << cap;
  }
  CpuFeatures ice_lake = SapphireRapids();
  ice_lake.avx_vnni = ice_lake.amx_int8 = {};
  EXPECT_EQ(QuantizationTarget(ice_lake, "AVX2_VNNI"), "avx2");
  for (const char* cap : {"", "AVX512_CORE_VNNI", "AVX512_CORE_AMX", "ALL"}) {
    EXPECT_EQ(QuantizationTarget(SapphireRapids(), cap), "vnni") << cap;
  }
}

// What a kind of machine answers: the highest leaf, leaf 7's ebx, ecx and edx,
// its second part's eax, leaf 0x1D's eax, leaf 0x1E's ebx, XCR0.
struct Machine {
  std::string name;
  uint32_t highest, ebx, ecx, edx, eax_1, palettes, tiles;
  uint64_t xcr0;
  // What follows: AMX advertised and usable, the cap, the one below it, the
  // target, and whether a stock TensorFlow leaves oneDNN off.
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
        // CPUs answer for the highest leaf when asked beyond it.
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

// Every instruction that is advertised works by itself on these, tile
// instructions too: what oneDNN asks decides.
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
  CpuFeatures features = SapphireRapids();
  features.vendor = "GenuineIntel";
  features.beyond_vnni = true;
  std::vector<std::string> caps;
  for (std::string cap; caps.empty() || !cap.empty();) {
    cap = LowerIsaCap(features, cap);
    caps.push_back(cap);
  }
  EXPECT_EQ(caps, (std::vector<std::string>{"AVX512_CORE_VNNI", "AVX512_CORE",
                                            "AVX2_VNNI", "AVX2", "SSE41", ""}));
}

}  // namespace
}  // namespace requant::cpu_test
