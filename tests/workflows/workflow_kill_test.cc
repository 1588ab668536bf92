// Tests that a run killed at any instant continues where it was: finished work
// is neither lost nor repeated, and all graphs and range tables are as if
// nothing had happened.

#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <random>
#include <thread>

#include "base/program/flags.h"
#include "base/testing/fuzz_rounds.h"
#include "tests/support/workflow_runs.h"

namespace requant::workflow_kill_test {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Returns arguments for the published recipe in the long test, without the
// benchmark, whose figures always differ; otherwise, for `workflow`.
Words Arguments(const TinyWorkflow& workflow) {
  if (FuzzRounds(1) == 1) return workflow.Arguments();
  const TestFolder& folder = workflow.folder;
  return SmallRun(folder.Path("work"), folder.Path("out"), {"--only=fuse"});
}
int ExitCode() { return FuzzRounds(1) == 1 ? kExitAccuracyGate : kExitOk; }

// Returns the time when each finished task was published, by its key.
std::map<std::string, fs::file_time_type> Published(const TestFolder& folder) {
  std::map<std::string, fs::file_time_type> times;
  std::error_code error;
  for (const auto& entry :
       fs::directory_iterator(folder.Path("work/cache"), error)) {
    times[entry.path().filename().string()] =
        fs::last_write_time(entry.path() / "result.pb");
  }
  return times;
}

// Kills a run after `seconds` unless it ends before. Returns whether it did.
bool RunAndKill(const TinyWorkflow& workflow, double seconds) {
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  const pid_t pid = StartProgram(kRequant, Arguments(workflow));
  int status = 0;
  while (Clock::now() < end) {
    if (waitpid(pid, &status, WNOHANG) == pid) {
      EXPECT_TRUE(WIFEXITED(status));
      EXPECT_EQ(WEXITSTATUS(status), ExitCode());
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  kill(-pid, SIGKILL);
  waitpid(pid, &status, 0);
  return false;
}

void ExpectSame(const TestFolder& clean, const TestFolder& killed) {
  ExpectSameGraphsAndRanges(clean.Path("out"), killed.Path("out"));
  EXPECT_TRUE(fs::is_empty(killed.Path("work/tmp")));
  EXPECT_EQ(killed.Names(), clean.Names());
}

TEST(KilledRun, GoesOnAsIfNothingHadHappened) {
  const TinyWorkflow clean;
  const auto start = Clock::now();
  ASSERT_THAT(RunProgram(kRequant, Arguments(clean)), Exits(ExitCode()));
  const double whole =
      std::chrono::duration<double>(Clock::now() - start).count();

  const TinyWorkflow workflow;
  const TestFolder& killed = workflow.folder;
  std::mt19937 random(20);
  const int rounds = FuzzRounds(2);
  for (int kills = 0; kills < rounds;) {
    const auto before = Published(killed);
    const double seconds = std::uniform_real_distribution<>(0, whole)(random);
    const bool ended = RunAndKill(workflow, seconds);
    SCOPED_TRACE(absl::StrCat("kill ", kills, " after ", seconds, " s"));
    const auto after = Published(killed);
    for (const auto& [key, time] : before) {
      const auto still = after.find(key);
      ASSERT_NE(still, after.end()) << key << " is lost";
      EXPECT_EQ(still->second, time) << key << " was done again";
    }
    if (!ended) {
      ++kills;
      continue;
    }
    ExpectSame(clean.folder, killed);
    fs::remove_all(killed.Path("out"));
    fs::remove_all(killed.Path("work"));
  }
  EXPECT_THAT(RunProgram(kRequant, Arguments(workflow)), Exits(ExitCode()));
  ExpectSame(clean.folder, killed);
}

}  // namespace
}  // namespace requant::workflow_kill_test
