// A run that is killed at any instant goes on where it was: what was finished
// is neither lost nor done again, and all graphs and range tables are as if
// nothing had happened.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/fuzz_rounds.h"
#include "graph/testing/program.h"
#include "tests/support/workflow_runs.h"

namespace requant::workflow_kill_test {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Everything but the benchmark, whose figures are never the same.
std::vector<std::string> Arguments(const TestFolder& folder) {
  return SmallRun(folder.Path("work"), folder.Path("out"), {"--only=fuse"});
}

// Starts a run in a process group of its own.
pid_t Start(const TestFolder& folder) {
  std::vector<std::string> line = CommandLine(kRequant, Arguments(folder));
  std::vector<char*> argv;
  for (std::string& word : line) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    setpgid(0, 0);
    execv(argv[0], argv.data());
    _exit(127);
  }
  setpgid(pid, pid);
  return pid;
}

// When each finished task was published, by its key.
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

// Kills a run after `seconds`, unless it ends before; returns whether it did.
bool RunAndKill(const TestFolder& folder, double seconds) {
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  const pid_t pid = Start(folder);
  int status = 0;
  while (Clock::now() < end) {
    if (waitpid(pid, &status, WNOHANG) == pid) {
      EXPECT_TRUE(WIFEXITED(status));
      EXPECT_EQ(WEXITSTATUS(status), 0);
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  kill(-pid, SIGKILL);
  waitpid(pid, &status, 0);
  return false;
}

void ExpectSame(const TestFolder& clean, const TestFolder& killed) {
  const auto want = GraphsAndRanges(clean.Path("out"));
  const auto got = GraphsAndRanges(killed.Path("out"));
  EXPECT_EQ(got.size(), want.size());
  for (const auto& [name, content] : want) {
    const auto other = got.find(name);
    ASSERT_NE(other, got.end()) << name;
    EXPECT_TRUE(other->second == content) << name << " differs";
  }
  EXPECT_TRUE(fs::is_empty(killed.Path("work/tmp")));
  EXPECT_EQ(killed.Names(), (std::vector<std::string>{"out", "work"}));
}

TEST(KilledRun, GoesOnAsIfNothingHadHappened) {
  const TestFolder clean;
  const auto start = Clock::now();
  const ProgramRun run = RunProgram(kRequant, Arguments(clean));
  ASSERT_EQ(run.exit_code, 0) << run.error;
  const double whole =
      std::chrono::duration<double>(Clock::now() - start).count();

  const TestFolder killed;
  std::mt19937 random(20);
  const int rounds = FuzzRounds(2);
  for (int kills = 0; kills < rounds;) {
    const auto before = Published(killed);
    const double seconds = std::uniform_real_distribution<>(0, whole)(random);
    const bool ended = RunAndKill(killed, seconds);
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
    ExpectSame(clean, killed);
    fs::remove_all(killed.Path("out"));
    fs::remove_all(killed.Path("work"));
  }
  EXPECT_EQ(RunProgram(kRequant, Arguments(killed)).exit_code, 0);
  ExpectSame(clean, killed);
}

}  // namespace
}  // namespace requant::workflow_kill_test
