#include "base/process/forked_work.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>

namespace requant::forked_work_test {
namespace {

using SetStep = std::function<void(int64_t)>;

TEST(RunForked, ReturnsWhatTheWorkReturns) {
  const std::string large(1 << 20, 'x');
  const ForkedResult result = *RunForked([&](const SetStep& set_step) {
    set_step(3);
    return large;
  });
  EXPECT_EQ(result.output, large);
  EXPECT_EQ(result.failure, "");
  EXPECT_EQ(result.step, 3);
}

TEST(RunForked, WorkChangesNothingHere) {
  int value = 1;
  ASSERT_TRUE(RunForked([&](const SetStep& set_step) {
                value = 2;
                return std::string();
              }).ok());
  EXPECT_EQ(value, 1);
}

TEST(RunForked, TellsTheStepOfACrash) {
  const ForkedResult result =
      *RunForked([](const SetStep& set_step) -> std::string {
        set_step(7);
        std::raise(SIGSEGV);
        return "";
      });
  EXPECT_EQ(result.failure, "crashed (signal 11)");
  EXPECT_EQ(result.step, 7);
}

TEST(RunForked, EndsWorkThatStandsStill) {
  ForkedLimits limits;
  limits.stalled_seconds = 0.3;
  const ForkedResult result = *RunForked(
      [](const SetStep& set_step) -> std::string {
        set_step(5);
        while (true) pause();
      },
      limits);
  EXPECT_EQ(result.failure, "did not end");
  EXPECT_EQ(result.step, 5);
}

TEST(RunForked, MemoryIsLimited) {
  ForkedLimits limits;
  limits.more_bytes = int64_t{64} << 20;
  const ForkedResult result = *RunForked(
      [](const SetStep& set_step) {
        void* memory = mmap(nullptr, size_t{1} << 30, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return std::string(memory == MAP_FAILED ? "refused" : "given");
      },
      limits);
  EXPECT_EQ(result.output, "refused");
}

TEST(RunForked, NeedsNoExitStatus) {
  // waitpid fails in a daemon that ignores SIGCHLD.
  const auto previous = signal(SIGCHLD, SIG_IGN);
  EXPECT_EQ(RunForked([](const SetStep&) { return "done"; })->output, "done");
  signal(SIGCHLD, previous);
}

TEST(RunForked, TakesSignalHandlersAway) {
  // With this handler the process would survive the trap.
  const auto previous = signal(SIGTRAP, [](int) {});
  EXPECT_EQ(RunForked([](const SetStep&) {
              raise(SIGTRAP);
              return "survived";
            })->failure,
            "crashed (signal 5)");
  signal(SIGTRAP, previous);
}

}  // namespace
}  // namespace requant::forked_work_test
