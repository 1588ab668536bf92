#include "workflows/commands/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/process/machine.h"

namespace requant::doctor_test {
namespace {

using testing::HasSubstr;

constexpr InstructionSet kWorks = {true, true};
constexpr InstructionSet kTraps = {true, false};
constexpr int64_t kGiB = int64_t{1} << 30;

CpuFeatures Avx2Only() {
  CpuFeatures features;
  features.vendor = "AuthenticAMD";
  features.model = "AMD EPYC";
  features.avx2 = kWorks;
  return features;
}

CpuFeatures WithTrappingAmx() {
  CpuFeatures features = Avx2Only();
  features.avx512 = features.avx512_vnni = kWorks;
  features.amx_int8 = kTraps;
  return features;
}

Check Find(const std::vector<Check>& checks, const std::string& name) {
  for (const Check& check : checks) {
    if (check.name == name) return check;
  }
  ADD_FAILURE() << "no check " << name;
  return {};
}

TEST(CheckCpu, WarnsOfASetThatIsAdvertisedAndFails) {
  const auto checks = CheckCpu(WithTrappingAmx());
  EXPECT_EQ(Find(checks, "amx_int8").status, CheckStatus::kWarning);
  EXPECT_THAT(Find(checks, "amx_int8").found, HasSubstr("CPUID leaf 0x1D"));
  EXPECT_EQ(Find(checks, "avx512_vnni").status, CheckStatus::kOk);
  CpuFeatures traps = WithTrappingAmx();
  traps.tile_palettes = true;
  EXPECT_THAT(Find(CheckCpu(traps), "amx_int8").found,
              HasSubstr("failed when tried"));
  // A set that the CPU does not have is no warning; another architecture is.
  EXPECT_EQ(Find(CheckCpu(Avx2Only()), "avx512").status, CheckStatus::kOk);
  EXPECT_EQ(Find(CheckCpu(CpuFeatures()), "cpu").status, CheckStatus::kWarning);
}

TEST(CheckCpu, NamesTheTargetsToQuantizeFor) {
  const Check avx2 = Find(CheckCpu(Avx2Only()), "int8");
  EXPECT_EQ(avx2.status, CheckStatus::kOk);
  EXPECT_THAT(avx2.found,
              HasSubstr("target=any, the default, or target=avx2, never"));
  const Check vnni = Find(CheckCpu(WithTrappingAmx()), "int8");
  EXPECT_EQ(vnni.status, CheckStatus::kOk);
  EXPECT_THAT(vnni.found, HasSubstr("target=vnni for CPUs like this one"));
}

TEST(CheckIsaCap, SaysTheCapAndWarnsOfOneThatAllowsTheTrap) {
  EXPECT_THAT(CheckIsaCap("", "").found, HasSubstr("none needed"));
  EXPECT_THAT(CheckIsaCap("AVX512_CORE_VNNI", "").found,
              HasSubstr("ONEDNN_MAX_CPU_ISA=AVX512_CORE_VNNI"));
  const Check check = CheckIsaCap("AVX512_CORE_VNNI", "AVX512_CORE_AMX");
  EXPECT_EQ(check.status, CheckStatus::kWarning);
  EXPECT_THAT(check.advice, HasSubstr("AVX512_CORE_VNNI"));
  // A tighter one is fine, in either case.
  EXPECT_EQ(CheckIsaCap("AVX512_CORE_VNNI", "avx2").status, CheckStatus::kOk);
  EXPECT_EQ(CheckIsaCap("", "ALL").status, CheckStatus::kOk);
}

TEST(CheckCores, SaysTheQuotaAndWarnsOfLessThanOneCore) {
  EXPECT_EQ(CheckCores({4, std::nullopt}).found, "4 usable");
  EXPECT_EQ(CheckCores({4, 2.5}).found,
            "3 usable (4 allowed, control group's quota 2.5)");
  EXPECT_EQ(CheckCores({4, 0.5}).status, CheckStatus::kWarning);
  EXPECT_EQ(CheckCores({4, 1.0}).status, CheckStatus::kOk);
}

TEST(CheckMemory, TellsMachineAndGroup) {
  MemoryLimits limits;
  limits.total = 16 * kGiB;
  limits.available = 12 * kGiB;
  EXPECT_EQ(CheckMemory(limits).found, "12.0 GiB available of 16.0 GiB");
  limits.group_limit = 8 * kGiB;
  limits.group_available = 3 * kGiB;
  EXPECT_EQ(CheckMemory(limits).found,
            "3.0 GiB available of 16.0 GiB, control group's limit 8.0 GiB");
  EXPECT_EQ(CheckMemory(limits).status, CheckStatus::kOk);
}

TEST(CheckMemory, WarnsWhenLittleOrUnknown) {
  MemoryLimits limits;
  EXPECT_EQ(CheckMemory(limits).status, CheckStatus::kWarning);
  limits.available = 2 * kGiB - 1;
  EXPECT_EQ(CheckMemory(limits).status, CheckStatus::kWarning);
  limits.available = 2 * kGiB;
  EXPECT_EQ(CheckMemory(limits).status, CheckStatus::kOk);
}

TEST(CheckDisk, WarnsWhenFullOrReadOnly) {
  EXPECT_EQ(CheckDisk({kGiB, true}).status, CheckStatus::kOk);
  EXPECT_EQ(CheckDisk({std::nullopt, true}).status, CheckStatus::kOk);
  EXPECT_EQ(CheckDisk({kGiB - 1, true}).status, CheckStatus::kWarning);
  EXPECT_EQ(CheckDisk({kGiB, false}).status, CheckStatus::kWarning);
}

TensorFlowProbe Runs() {
  TensorFlowProbe probe;
  probe.version = "2.21.0";
  probe.int8 = TensorFlowProbe::kExact;
  return probe;
}

TEST(CheckTensorFlow, IsOkWhereTheLayerRuns) {
  const auto checks = CheckTensorFlow(Runs(), "2.21.0", WithTrappingAmx());
  EXPECT_EQ(WorstStatus(checks), CheckStatus::kOk);
  EXPECT_EQ(checks.size(), 2u);
}

TEST(CheckTensorFlow, ALibraryThatDoesNotLoadIsOneError) {
  TensorFlowProbe probe;
  probe.failure = "no such file";
  const auto checks = CheckTensorFlow(probe, "2.21.0", Avx2Only());
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_EQ(checks[0].status, CheckStatus::kError);
  EXPECT_THAT(checks[0].found, HasSubstr("no such file"));
}

TEST(CheckTensorFlow, WhatKeepsTheLayerFromRunningIsAnErrorWithItsCause) {
  EXPECT_EQ(
      Find(CheckTensorFlow(Runs(), "2.22.0", Avx2Only()), "tensorflow").status,
      CheckStatus::kError);
  TensorFlowProbe died = Runs();
  died.int8 = TensorFlowProbe::kDidNotRun;
  died.failure = "the process was ended by SIGILL";
  TensorFlowProbe off = died;
  off.one_dnn_is_off = true;
  for (const auto& [probe, cause] :
       {std::pair(died, "SIGILL"), std::pair(off, "TF_ENABLE_ONEDNN_OPTS=0")}) {
    const Check check =
        Find(CheckTensorFlow(probe, "2.21.0", Avx2Only()), "int8_matmul");
    EXPECT_EQ(check.status, CheckStatus::kError);
    EXPECT_THAT(check.found, HasSubstr(cause));
  }
}

TEST(CheckStock, NamesTheVariableThatServersNeed) {
  EXPECT_EQ(CheckStock(Runs(), Avx2Only(), "X=1").status, CheckStatus::kOk);
  TensorFlowProbe died;
  died.failure = "the process was ended by SIGILL";
  const Check amx = CheckStock(died, WithTrappingAmx(),
                               "ONEDNN_MAX_CPU_ISA=AVX512_CORE_VNNI");
  EXPECT_EQ(amx.status, CheckStatus::kWarning);
  EXPECT_THAT(amx.found, HasSubstr("CPUID leaf 0x1D"));
  EXPECT_THAT(amx.advice, HasSubstr("set ONEDNN_MAX_CPU_ISA=AVX512_CORE_VNNI"));
  TensorFlowProbe failed;
  failed.failure = "Missing 0-th output";
  const Check no_vnni =
      CheckStock(failed, Avx2Only(), "TF_ENABLE_ONEDNN_OPTS=1");
  EXPECT_THAT(no_vnni.found, HasSubstr("on CPUs without VNNI"));
  EXPECT_THAT(no_vnni.advice, HasSubstr("set TF_ENABLE_ONEDNN_OPTS=1 before"));
}

TEST(CheckTensorFlow, SaturationIsAWarningOnlyWhereTheCpuPromisesMore) {
  TensorFlowProbe probe = Runs();
  probe.int8 = TensorFlowProbe::kSaturating;
  EXPECT_EQ(WorstStatus(CheckTensorFlow(probe, "2.21.0", Avx2Only())),
            CheckStatus::kOk);
  EXPECT_EQ(WorstStatus(CheckTensorFlow(probe, "2.21.0", WithTrappingAmx())),
            CheckStatus::kWarning);
}

TEST(CheckDocker, AMissingEngineIsOnlyAWarning) {
  EXPECT_EQ(CheckDocker({}).status, CheckStatus::kWarning);
  const Check silent = CheckDocker({true, "", "cannot connect"});
  EXPECT_EQ(silent.status, CheckStatus::kWarning);
  EXPECT_THAT(silent.found, HasSubstr("cannot connect"));
  const Check answers = CheckDocker({true, "20.10.24", ""});
  EXPECT_EQ(answers.status, CheckStatus::kOk);
  EXPECT_THAT(answers.found, HasSubstr("20.10.24"));
}

std::vector<Check> OneOfEach() {
  return {{"a", CheckStatus::kOk, "fine", ""},
          {"b", CheckStatus::kError, "\"odd\"\n\\\xff", "mend it"},
          {"c", CheckStatus::kWarning, "so so", "look at it"}};
}

TEST(RenderText, IsALinePerCheckAndACount) {
  EXPECT_EQ(RenderText(OneOfEach(), false),
            "ok       a            fine\n"
            "error    b            \"odd\"\\x0a\\\\xff -> mend it\n"
            "warning  c            so so -> look at it\n"
            "1 error, 1 warning\n");
}

TEST(RenderText, ColorsOnlyTheStatus) {
  EXPECT_EQ(RenderText({{"a", CheckStatus::kOk, "fine", ""}}, true),
            "\033[32mok     \033[0m  a            fine\n"
            "0 errors, 0 warnings\n");
}

TEST(WorstStatus, IsTheWorstOfAll) {
  EXPECT_EQ(WorstStatus({}), CheckStatus::kOk);
  EXPECT_EQ(WorstStatus(OneOfEach()), CheckStatus::kError);
}

}  // namespace
}  // namespace requant::doctor_test
