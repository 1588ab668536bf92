// requant cache as people use it, beside runs that use the same folder.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/testing/program.h"
#include "tests/support/tiny_workflow.h"
#include "workflows/testing/json_value.h"

namespace requant::cache_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;

constexpr char kRequant[] = "workflows/requant";

std::set<std::string> Keys(const TestFolder& folder) {
  std::set<std::string> keys;
  std::error_code error;
  for (const auto& entry :
       fs::directory_iterator(folder.Path("work/cache"), error)) {
    keys.insert(entry.path().filename());
  }
  return keys;
}

ProgramRun Cache(const TestFolder& folder, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "cache");
  arguments.push_back(folder.Path("work"));
  return RunProgram(kRequant, arguments);
}

TEST(Cache, IsListedAndPrunedAndMadeAgain) {
  const TinyWorkflow workflow;
  const TestFolder& folder = workflow.folder;
  ASSERT_EQ(workflow.Run().exit_code, 3);
  const size_t results = Keys(folder).size();
  EXPECT_THAT(Cache(folder, {}).out,
              HasSubstr(absl::StrCat(": ", results, " results, ")));
  const ProgramRun list = Cache(folder, {"list"});
  for (const char* task : {"trim", "trim/verify", "rows/baseline", "model"}) {
    EXPECT_THAT(list.out, HasSubstr(absl::StrCat("  ", task, "\n")));
  }
  const auto json = ParseJson(Cache(folder, {"list", "--format=json"}).out);
  EXPECT_EQ(At(json, "work_dirs/0/results").list_value().values_size(),
            static_cast<int>(results));
  EXPECT_GT(At(json, "work_dirs/0/bytes").number_value(), 100000);

  EXPECT_THAT(Cache(folder, {"prune", "--unused_days=1"}).out,
              HasSubstr("removed 0 results"));
  EXPECT_EQ(Keys(folder).size(), results);
  EXPECT_THAT(Cache(folder, {"prune", "--max_gb=0.0001"}).out,
              HasSubstr("of former runs"));
  EXPECT_LT(Keys(folder).size(), results);
  EXPECT_EQ(Cache(folder, {"prune", "--max_gb=0"}).exit_code, 0);
  EXPECT_TRUE(Keys(folder).empty());
  EXPECT_EQ(RunProgram(kRequant, {"verify", folder.Path("out")}).exit_code, 0)
      << "the run's folder needs nothing of the cache";
  EXPECT_EQ(workflow.Run().exit_code, 3);
  EXPECT_EQ(Keys(folder).size(), results);
}

TEST(Cache, AboveTheLimitARunRemovesWhatOnlyFormerRunsUsed) {
  const TinyWorkflow workflow;
  const TestFolder& folder = workflow.folder;
  ASSERT_EQ(workflow.Run().exit_code, 3);
  const std::set<std::string> before = Keys(folder);
  folder.Write("data.csv",
               absl::StrCat(folder.Read("data.csv"), "1 1 1 1,1\n"));
  ProgramRun run = workflow.Run();
  EXPECT_THAT(run.error, Not(HasSubstr("removed")));
  EXPECT_THAT(Keys(folder), IsSupersetOf(before));
  run = workflow.Run({"--cache_gb=1e-9"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_THAT(run.error, HasSubstr("of former runs ("));
  EXPECT_THAT(run.error, HasSubstr("keeps at most 1e-09 GB (--cache_gb)"));
  EXPECT_EQ(Keys(folder).size(), before.size());
  EXPECT_THAT(workflow.Run().out, HasSubstr("Nothing had to run"));
}

// Starts a run in a process group of its own.
pid_t Start(const TinyWorkflow& workflow) {
  std::vector<std::string> line = CommandLine(kRequant, workflow.Arguments());
  std::vector<char*> argv;
  for (std::string& word : line) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    setpgid(0, 0);
    const int null = open("/dev/null", O_WRONLY);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  setpgid(pid, pid);
  return pid;
}

TEST(Cache, KeepsWhatARunningAndAStoppedRunNeed) {
  const TinyWorkflow workflow;
  const TestFolder& folder = workflow.folder;
  const pid_t pid = Start(workflow);
  while (Keys(folder).empty()) {
    ASSERT_EQ(waitpid(pid, nullptr, WNOHANG), 0) << "the run ended early";
  }
  kill(-pid, SIGSTOP);
  const ProgramRun refused = Cache(folder, {"prune", "--max_gb=0"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.error,
              HasSubstr(absl::StrCat("is in use by process ", pid)));
  EXPECT_EQ(Cache(folder, {"list"}).exit_code, 0);
  kill(-pid, SIGKILL);
  waitpid(pid, nullptr, 0);

  const std::set<std::string> needed = Keys(folder);
  const ProgramRun pruned = Cache(folder, {"prune", "--max_gb=0"});
  EXPECT_EQ(pruned.exit_code, 0) << pruned.error;
  EXPECT_THAT(pruned.out, HasSubstr("runs that were stopped need"));
  EXPECT_EQ(Keys(folder), needed);
  EXPECT_THAT(Cache(folder, {"list"}).out,
              HasSubstr("(needed by: requant run"));

  // Once it went on to its end, under whatever options, nothing is needed.
  EXPECT_EQ(workflow.Run({"--jobs=1"}).exit_code, 3);
  EXPECT_THAT(Keys(folder), IsSupersetOf(needed));
  EXPECT_EQ(Cache(folder, {"prune", "--max_gb=0"}).exit_code, 0);
  EXPECT_TRUE(Keys(folder).empty());
}

TEST(Cache, TellsWrongUsage) {
  const TestFolder folder;
  folder.Write("file", "");
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{
           {"cache", "prune", folder.Path("")},
           {"cache", "list", "--max_gb=1"},
           {"cache", "prune", "--max_gb=nan"},
           {"cache", "--format=dot"}}) {
    EXPECT_EQ(RunProgram(kRequant, arguments).exit_code, 2) << arguments[1];
  }
  const ProgramRun none =
      RunProgram(kRequant, {"cache", "prune", "--max_gb=0", folder.Path("")});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.error, HasSubstr("is not a run's work folder"));
  EXPECT_EQ(folder.Names(), std::vector<std::string>{"file"});
}

}  // namespace
}  // namespace requant::cache_test
