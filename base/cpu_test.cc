#include "base/cpu.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <string>
#include <utility>
#include <vector>

namespace requant {
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

TEST(CachedOneDnnIsaCap, KeepsWhatTheEnvironmentSays) {
  setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
  EXPECT_EQ(CachedOneDnnIsaCap(), "AVX2");
  unsetenv("ONEDNN_MAX_CPU_ISA");
  setenv("DNNL_MAX_CPU_ISA", "AVX", 1);
  EXPECT_EQ(CachedOneDnnIsaCap(), "AVX");
  unsetenv("DNNL_MAX_CPU_ISA");
}

TEST(CachedOneDnnIsaCap, IsOtherwiseTheCapOfAFullProbe) {
  unsetenv("ONEDNN_MAX_CPU_ISA");
  unsetenv("DNNL_MAX_CPU_ISA");
  EXPECT_EQ(CachedOneDnnIsaCap(), OneDnnIsaCap(ProbeCpu()));
}

TEST(TensorFlowEnvironment, PassesTheCapAndTurnsOneDnnOn) {
  setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
  unsetenv("TF_ENABLE_ONEDNN_OPTS");
  using Environment = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(TensorFlowEnvironment(),
            (Environment{{"ONEDNN_MAX_CPU_ISA", "AVX2"},
                         {"TF_ENABLE_ONEDNN_OPTS", "1"}}));
  setenv("TF_ENABLE_ONEDNN_OPTS", "0", 1);
  EXPECT_EQ(TensorFlowEnvironment(),
            (Environment{{"ONEDNN_MAX_CPU_ISA", "AVX2"}}));
  unsetenv("ONEDNN_MAX_CPU_ISA");
  unsetenv("TF_ENABLE_ONEDNN_OPTS");
}

}  // namespace
}  // namespace requant
