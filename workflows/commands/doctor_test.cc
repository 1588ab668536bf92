#include "workflows/commands/doctor.h"

#include <optional>

#include "base/process/machine.h"
#include "graph/testing/testing.h"

namespace requant::doctor_test {
namespace {

using testing::ContainsRegex;

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

// Returns what is printed, such as "warning amx_int8 found -> advice\n".
std::string Text(const std::vector<Check>& checks) {
  return RenderText(checks, false);
}
std::string Text(const Check& check) { return Text(std::vector{check}); }

TEST(CheckCpu, WarnsOfASetThatIsAdvertisedAndFails) {
  EXPECT_THAT(Text(CheckCpu(WithTrappingAmx())),
              AllOf(HasSubstr("ok       avx512_vnni  works\n"),
                    ContainsRegex("warning  amx_int8 .*CPUID leaf 0x1D")));
  CpuFeatures traps = WithTrappingAmx();
  traps.tile_palettes = true;
  EXPECT_THAT(Text(CheckCpu(traps)),
              ContainsRegex("warning  amx_int8 .*failed when tried"));
  // A missing instruction set causes no warning; another architecture does.
  EXPECT_THAT(Text(CheckCpu(Avx2Only())), HasSubstr("ok       avx512  "));
  EXPECT_THAT(Text(CheckCpu(CpuFeatures())), HasSubstr("warning  cpu  "));
}

TEST(CheckCpu, NamesTheTargetsToQuantizeFor) {
  EXPECT_THAT(
      Text(CheckCpu(Avx2Only())),
      ContainsRegex(
          "ok       int8 .*target=any, the default, or target=avx2, never"));
  EXPECT_THAT(
      Text(CheckCpu(WithTrappingAmx())),
      ContainsRegex("ok       int8 .*target=vnni for CPUs like this one"));
}

TEST(CheckIsaCap, SaysTheCapAndWarnsOfOneThatAllowsTheTrap) {
  EXPECT_THAT(Text(CheckIsaCap("", "")), HasSubstr("none needed"));
  EXPECT_THAT(Text(CheckIsaCap("AVX512_CORE_VNNI", "")),
              HasSubstr("ONEDNN_MAX_CPU_ISA=AVX512_CORE_VNNI"));
  EXPECT_THAT(Text(CheckIsaCap("AVX512_CORE_VNNI", "AVX512_CORE_AMX")),
              ContainsRegex("^warning .* -> .*AVX512_CORE_VNNI"));
  // A tighter cap is fine, in upper or lower case.
  EXPECT_THAT(Text(CheckIsaCap("AVX512_CORE_VNNI", "avx2")), StartsWith("ok"));
  EXPECT_THAT(Text(CheckIsaCap("", "ALL")), StartsWith("ok"));
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
  const auto status = [](std::optional<int64_t> available) {
    MemoryLimits limits;
    limits.available = available;
    return CheckMemory(limits).status;
  };
  EXPECT_EQ(status(std::nullopt), CheckStatus::kWarning);
  EXPECT_EQ(status(2 * kGiB - 1), CheckStatus::kWarning);
  EXPECT_EQ(status(2 * kGiB), CheckStatus::kOk);
}

TEST(CheckDisk, WarnsWhenFullOrReadOnly) {
  EXPECT_EQ(CheckDisk(kGiB, true).status, CheckStatus::kOk);
  EXPECT_EQ(CheckDisk(std::nullopt, true).status, CheckStatus::kOk);
  EXPECT_EQ(CheckDisk(kGiB - 1, true).status, CheckStatus::kWarning);
  EXPECT_EQ(CheckDisk(kGiB, false).status, CheckStatus::kWarning);
}

TensorFlowProbe Runs() {
  return {"2.21.0", TensorFlowProbe::kExact, "", false};
}
TensorFlowProbe Dies(const std::string& version = "2.21.0") {
  return {version, TensorFlowProbe::kDidNotRun, "it was ended by SIGILL",
          false};
}

TEST(CheckTensorFlow, IsOkWhereTheLayerRuns) {
  EXPECT_THAT(Text(CheckTensorFlow(Runs(), "2.21.0", WithTrappingAmx())),
              ContainsRegex("^ok       tensorflow .*\nok       int8_matmul "));
}

TEST(CheckTensorFlow, ALibraryThatDoesNotLoadIsOneError) {
  EXPECT_THAT(Text(CheckTensorFlow(Dies(""), "2.21.0", Avx2Only())),
              ContainsRegex("^error    tensorflow .*SIGILL.*\n1 error"));
}

TEST(CheckTensorFlow, WhatKeepsTheLayerFromRunningIsAnErrorWithItsCause) {
  EXPECT_THAT(Text(CheckTensorFlow(Runs(), "2.22.0", Avx2Only())),
              HasSubstr("error    tensorflow "));
  EXPECT_THAT(Text(CheckTensorFlow(Dies(), "2.21.0", Avx2Only())),
              ContainsRegex("error    int8_matmul .*SIGILL"));
  TensorFlowProbe off = Dies();
  off.one_dnn_is_off = true;
  EXPECT_THAT(Text(CheckTensorFlow(off, "2.21.0", Avx2Only())),
              ContainsRegex("error    int8_matmul .*TF_ENABLE_ONEDNN_OPTS=0"));
}

TEST(CheckTensorFlow, SaturationIsAWarningOnlyWhereTheCpuPromisesMore) {
  TensorFlowProbe probe = Runs();
  probe.int8 = TensorFlowProbe::kSaturating;
  EXPECT_EQ(WorstStatus(CheckTensorFlow(probe, "2.21.0", Avx2Only())),
            CheckStatus::kOk);
  EXPECT_EQ(WorstStatus(CheckTensorFlow(probe, "2.21.0", WithTrappingAmx())),
            CheckStatus::kWarning);
}

TEST(CheckStock, NamesTheVariableThatServersNeed) {
  EXPECT_THAT(Text(CheckStock(Runs(), Avx2Only(), "X=1")), StartsWith("ok"));
  EXPECT_THAT(Text(CheckStock(Dies(), WithTrappingAmx(), "X=1")),
              ContainsRegex("^warning .*CPUID leaf 0x1D.* -> .*set X=1 "));
  EXPECT_THAT(
      Text(CheckStock(Dies(), Avx2Only(), "X=1")),
      ContainsRegex("^warning .*on CPUs without VNNI.* set X=1 before"));
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
