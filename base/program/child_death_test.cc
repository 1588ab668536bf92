#include "base/program/child_death.h"

#include <signal.h>

#include "base/testing/testing.h"

namespace requant::child_death_test {
namespace {

ChildDeath DeathBy(int signal) {
  ChildDeath death;
  death.result.signal = signal;
  death.activity = "running model.pb";
  death.log_path = "worker.log";
  return death;
}

TEST(ExplainDeath, NamesTheInstructionSetThatTheCpuOnlyClaims) {
  CpuFeatures cpu;
  cpu.avx512 = cpu.avx512_vnni = {true, true};
  cpu.amx_int8 = {true, false};
  EXPECT_EQ(ExplainDeath(DeathBy(SIGILL), [&] { return cpu; }),
            "running model.pb failed: the worker process was ended by SIGILL "
            "(an instruction this CPU does not run): this CPU advertises AMX "
            "and does not run it; ONEDNN_MAX_CPU_ISA=AVX512_CORE_VNNI keeps "
            "oneDNN away from it; its log: worker.log");
}

TEST(ExplainDeath, BlamesTheGraphWhereTheCpuDoesWhatItClaims) {
  CpuFeatures cpu;
  cpu.avx2 = {true, true};
  EXPECT_THAT(ExplainDeath(DeathBy(SIGILL), [&] { return cpu; }),
              HasSubstr("an operation was compiled for another CPU"));
}

TEST(ExplainDeath, TellsHowMuchMemoryAKilledWorkerHeld) {
  ChildDeath death = DeathBy(SIGKILL);
  death.result.peak_memory_bytes = 7'200'000'000;
  EXPECT_THAT(ExplainDeath(death),
              AllOf(HasSubstr("SIGKILL (often: out of memory)"),
                    HasSubstr("it held 7200 MB at most")));
}

TEST(ExplainDeath, NamesTheFlagOfTheLimitThatWasHit) {
  ChildDeath death = DeathBy(SIGKILL);
  death.options.memory_bytes = 2'000'000'000;
  death.result.over_memory = true;
  EXPECT_THAT(ExplainDeath(death),
              AllOf(HasSubstr("used more than 2.0 GB of memory "
                              "(--memory_limit sets the limit)"),
                    Not(HasSubstr("it held"))));
  death.result.over_memory = false;
  death.result.stalled = true;
  death.options.stall_seconds = 5;
  EXPECT_THAT(ExplainDeath(death),
              HasSubstr("after 5 s without progress (--stall_timeout"));
}

TEST(ExplainDeath, KnowsThatAWorkerWasRefusedMemory) {
  ChildDeath death = DeathBy(SIGABRT);
  death.log_tail =
      "terminate called after throwing an instance of 'std::bad_alloc'\n";
  death.options.memory_bytes = 2'000'000'000;
  EXPECT_THAT(ExplainDeath(death),
              AllOf(HasSubstr("used more than 2.0 GB of memory"),
                    Not(HasSubstr("last words"))));
  death.options.memory_bytes = 0;
  EXPECT_THAT(ExplainDeath(death), HasSubstr("std::bad_alloc"));
}

TEST(LastWord, IsAFailedCheckAFatalMessageOrAnUncaughtException) {
  std::string reason;
  EXPECT_TRUE(IsLastWord(
      "F0000 00:00:1 7 tensor.cc:12] Check failed: a == b (1 vs. 2)", &reason));
  EXPECT_EQ(reason, "Check failed: a == b (1 vs. 2)");
  EXPECT_TRUE(IsLastWord("F1116 main.cc:3] out of luck \n", &reason));
  EXPECT_EQ(reason, "out of luck");
  EXPECT_TRUE(IsLastWord("terminate called after 'std::bad_alloc'", &reason));
  EXPECT_EQ(reason, "terminate called after 'std::bad_alloc'");
}

TEST(LastWord, LeavesOtherLinesAlone) {
  std::string reason = "untouched";
  EXPECT_FALSE(IsLastWord("Fine so far", &reason));
  EXPECT_FALSE(IsLastWord("W1116 x.cc:1] Careful", &reason));
  EXPECT_EQ(reason, "untouched");
}

TEST(LastWord, KnowsWhatTensorFlowAlwaysSays) {
  EXPECT_TRUE(IsTensorFlowNoise(
      "I0000 port.cc:153] oneDNN custom operations are on. You may see"));
  EXPECT_FALSE(IsTensorFlowNoise(";node__print__;__min:[-1]"));
}

TEST(ExplainDeath, QuotesAFailedCheckOrElseTheLastLineThatMeansSomething) {
  ChildDeath death = DeathBy(SIGABRT);
  death.log_tail = "hello\nF0 x.cc:1] Check failed: a == b\n*** trace\n";
  EXPECT_THAT(ExplainDeath(death),
              HasSubstr("its last words: Check failed: a == b; its log"));
  death.log_tail = "first\nsecond  \nI0 oneDNN custom operations are on.\n";
  EXPECT_THAT(ExplainDeath(death),
              HasSubstr("its last words: second; its log"));
}

}  // namespace
}  // namespace requant::child_death_test
