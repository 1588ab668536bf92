#include "base/process/subprocess.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "base/testing/testing.h"

namespace requant::subprocess_test {
namespace {

ChildOptions Shell(const std::string& script) {
  ChildOptions options;
  options.argv = {"/bin/sh", "-c", script};
  return options;
}

TEST(RunChild, ReturnsTheExitCode) {
  EXPECT_EQ(RunChild(Shell("exit 7"))->exit_code, 7);
}

TEST(RunChild, DeliversLinesOfEveryPipeAndAnUnfinishedLastLine) {
  std::vector<std::string> out, err, report;
  ChildOptions options = Shell("echo a; echo b >&2; echo c >&3; printf d");
  options.on_stdout = [&](std::string_view line) { out.emplace_back(line); };
  options.on_stderr = [&](std::string_view line) { err.emplace_back(line); };
  options.on_report = [&](std::string_view line) { report.emplace_back(line); };
  EXPECT_EQ(RunChild(options)->exit_code, 0);
  EXPECT_THAT(out, ElementsAre("a", "d"));
  EXPECT_THAT(err, ElementsAre("b"));
  EXPECT_THAT(report, ElementsAre("c"));
}

TEST(RunChild, ReportsTheSignalThatEndedTheChild) {
  const auto result = RunChild(Shell("kill -SEGV $$"));
  EXPECT_EQ(result->signal, SIGSEGV);
  EXPECT_EQ(DescribeEnd(*result, {}),
            "was ended by SIGSEGV (invalid memory access)");
}

TEST(RunChild, KillsTheChildAtTheTimeLimit) {
  ChildOptions options = Shell("while :; do :; done");
  options.timeout_seconds = 0.2;
  const auto result = RunChild(options);
  EXPECT_TRUE(result->timed_out);
  EXPECT_EQ(DescribeEnd(*result, options), "was stopped after 0.2 s");
}

TEST(RunChild, KillsAChildThatReportsNothingForTooLong) {
  ChildOptions options = Shell("echo going >&3; while :; do :; done");
  options.on_report = [](std::string_view) {};
  options.stall_seconds = 0.2;
  const auto result = RunChild(options);
  EXPECT_TRUE(result->stalled);
  EXPECT_FALSE(result->timed_out);
  EXPECT_EQ(DescribeEnd(*result, options),
            "was stopped after 0.2 s without progress");
}

// Runs in a process of its own, which its child stops and continues.
TEST(RunChild, TimeInWhichTheParentWasStoppedDoesNotCount) {
  const pid_t parent = fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    ChildOptions options =
        Shell("kill -STOP $PPID; sleep 3; kill -CONT $PPID; sleep 0.5; exit 7");
    options.on_report = [](std::string_view) {};
    options.stall_seconds = options.timeout_seconds = 2.5;
    _exit(RunChild(options)->exit_code);
  }
  int status = 0;
  ASSERT_EQ(waitpid(parent, &status, 0), parent);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(RunChild, KillsAChildThatHoldsTooMuchMemory) {
  // The shell doubles a string.
  ChildOptions options = Shell("a=0123456789abcdef; while :; do a=$a$a; done");
  options.on_stderr = [](std::string_view) {};
  options.memory_bytes = 100'000'000;
  const auto result = RunChild(options);
  EXPECT_TRUE(result->over_memory);
  EXPECT_EQ(DescribeEnd(*result, options),
            "was stopped because it used more than 0.1 GB of memory");
  EXPECT_GT(result->peak_memory_bytes, 100'000'000);
}

TEST(RunChild, GivesTheChildItsInput) {
  // The text does not fit into a pipe.
  const std::string text(1 << 20, 'x');
  ChildOptions options = Shell("wc -c");
  options.input = text;
  std::string counted;
  options.on_stdout = [&](std::string_view line) { counted = line; };
  EXPECT_EQ(RunChild(options)->exit_code, 0);
  EXPECT_EQ(counted, "1048576");
}

TEST(RunChild, WritesToDescriptors) {
  for (const bool is_stderr : {false, true}) {
    std::FILE* file = std::tmpfile();
    ChildOptions options =
        Shell(is_stderr ? "echo to the file >&2" : "echo to the file");
    (is_stderr ? options.stderr_fd : options.stdout_fd) = fileno(file);
    EXPECT_EQ(RunChild(options)->exit_code, 0);
    std::rewind(file);
    char line[32] = "";
    EXPECT_NE(std::fgets(line, sizeof(line), file), nullptr);
    EXPECT_STREQ(line, "to the file\n");
    std::fclose(file);
  }
}

TEST(RunChild, DoesNotWaitForAGrandchildThatHoldsThePipe) {
  ChildOptions options = Shell("sleep 1000 & echo started");
  std::vector<std::string> out;
  options.on_stdout = [&](std::string_view line) { out.emplace_back(line); };
  EXPECT_EQ(RunChild(options)->exit_code, 0);
  EXPECT_THAT(out, ElementsAre("started"));
}

TEST(RunChild, PassesAnInterruptOnAndLivesOn) {
  const auto result = RunChild(Shell("kill -INT $PPID; while :; do :; done"));
  EXPECT_EQ(result->interrupted_by, SIGINT);
  EXPECT_EQ(result->signal, SIGINT);
}

TEST(RunChild, PassesAnInterruptOnToAllChildrenThatRun) {
  int signals[2] = {0, 0};
  std::atomic<int> started{0};
  std::vector<std::thread> threads;
  for (int& signal : signals) {
    threads.emplace_back([&] {
      ChildOptions options = Shell("echo up; while :; do sleep 1000; done");
      options.on_stdout = [&](std::string_view) {
        if (++started == 2) raise(SIGTERM);
      };
      signal = RunChild(options)->signal;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(signals[0], SIGTERM);
  EXPECT_EQ(signals[1], SIGTERM);
}

TEST(RunChild, LeavesTheHandlersOfOthersInPlaceAfterTheLastChild) {
  struct sigaction before, after;
  sigaction(SIGINT, nullptr, &before);
  std::thread other([] { (void)RunChild(Shell("exit 0")); });
  (void)RunChild(Shell("exit 0"));
  other.join();
  sigaction(SIGINT, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

TEST(RunChild, LeavesAnIgnoredSignalIgnored) {
  signal(SIGHUP, SIG_IGN);
  const auto result = RunChild(Shell("kill -HUP $PPID; kill -HUP $$; exit 5"));
  signal(SIGHUP, SIG_DFL);
  EXPECT_EQ(result->exit_code, 5);
  EXPECT_EQ(result->interrupted_by, 0);
}

TEST(RunChild, StopsTheChildWhenAsked) {
  std::atomic<bool> stop{false};
  ChildOptions options = Shell("echo up; while :; do :; done");
  options.on_stdout = [&](std::string_view) { stop = true; };
  options.stop = &stop;
  const auto result = RunChild(options);
  EXPECT_TRUE(result->stopped);
  EXPECT_EQ(result->signal, SIGTERM);
  EXPECT_EQ(DescribeEnd(*result, options), "was stopped");
}

// A grandchild would otherwise write its progress among the reports.
TEST(RunChild, TakesTheProgressVariableFromAChildThatReports) {
  setenv(kProgressVariable, "3", 1);
  ChildOptions options = Shell("test -z \"$REQUANT_PROGRESS_FD\"");
  options.on_report = [](std::string_view) {};
  const int exit_code = RunChild(options)->exit_code;
  unsetenv(kProgressVariable);
  EXPECT_EQ(exit_code, 0);
}

TEST(SignalForwarding, NotesASignalBetweenChildren) {
  const SignalForwarding forwarding;
  EXPECT_EQ(SignalForwarding::Received(), 0);
  raise(SIGINT);
  EXPECT_EQ(SignalForwarding::Received(), SIGINT);
  // A child that starts now receives the signal too.
  EXPECT_EQ(RunChild(Shell("while :; do :; done"))->signal, SIGINT);
}

TEST(RunChild, SetsVariablesOnTopOfTheEnvironment) {
  ChildOptions options = Shell("test \"$REQUANT_X\" = y && test -n \"$PATH\"");
  options.environment = {{"REQUANT_X", "y"}};
  EXPECT_EQ(RunChild(options)->exit_code, 0);
}

TEST(RunChild, AMissingProgramIsExitCode127) {
  ChildOptions options;
  options.argv = {"/no/such/program"};
  EXPECT_EQ(RunChild(options)->exit_code, 127);
}

}  // namespace
}  // namespace requant::subprocess_test
