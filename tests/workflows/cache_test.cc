// Tests requant cache as people use it, beside runs that use the same folder.

#include <signal.h>
#include <sys/wait.h>

#include <filesystem>
#include <set>

#include "tests/support/workflow_runs.h"
#include "workflows/testing/json_value.h"

namespace requant::cache_test {
namespace {

namespace fs = std::filesystem;
using testing::IsSupersetOf;

std::set<std::string> Keys(const TestFolder& folder) {
  std::set<std::string> keys;
  std::error_code error;
  for (const auto& entry :
       fs::directory_iterator(folder.Path("work/cache"), error)) {
    keys.insert(entry.path().filename());
  }
  return keys;
}

ProgramRun Cache(const TestFolder& folder, Words arguments) {
  arguments.insert(arguments.begin(), "cache");
  arguments.push_back(folder.Path("work"));
  return RunProgram(kRequant, arguments);
}

TEST(Cache, IsListedAndPrunedAndMadeAgain) {
  const TinyWorkflow workflow;
  const TestFolder& folder = workflow.folder;
  ASSERT_THAT(workflow.Run(), Exits(3));
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
  EXPECT_THAT(Cache(folder, {"prune", "--max_gb=0"}), Exits(0));
  EXPECT_TRUE(Keys(folder).empty());
  EXPECT_EQ(RunProgram(kRequant, {"verify", folder.Path("out")}).exit_code, 0)
      << "the run's folder needs nothing of the cache";
  EXPECT_THAT(workflow.Run(), Exits(3));
  EXPECT_EQ(Keys(folder).size(), results);
}

TEST(Cache, AboveTheLimitARunRemovesWhatOnlyFormerRunsUsed) {
  const TinyWorkflow workflow;
  const TestFolder& folder = workflow.folder;
  ASSERT_THAT(workflow.Run(), Exits(3));
  const std::set<std::string> before = Keys(folder);
  folder.Write("data.csv",
               absl::StrCat(folder.Read("data.csv"), "1 1 1 1,1\n"));
  ProgramRun run = workflow.Run();
  EXPECT_THAT(run.error, Not(HasSubstr("removed")));
  EXPECT_THAT(Keys(folder), IsSupersetOf(before));
  run = workflow.Run({"--cache_gb=1e-9"});
  EXPECT_THAT(
      run, Exits(3, AllOf(HasSubstr("of former runs ("),
                          HasSubstr("keeps at most 1e-09 GB (--cache_gb)"))));
  EXPECT_EQ(Keys(folder).size(), before.size());
  EXPECT_THAT(workflow.Run().out, HasSubstr("Nothing had to run"));
}

TEST(Cache, KeepsWhatARunningAndAStoppedRunNeed) {
  const TinyWorkflow workflow;
  const TestFolder& folder = workflow.folder;
  const pid_t pid = StartProgram(kRequant, workflow.Arguments());
  while (Keys(folder).empty()) {
    ASSERT_EQ(waitpid(pid, nullptr, WNOHANG), 0) << "the run ended early";
  }
  kill(-pid, SIGSTOP);
  EXPECT_THAT(Cache(folder, {"prune", "--max_gb=0"}),
              Fails(absl::StrCat("is in use by process ", pid)));
  EXPECT_THAT(Cache(folder, {"list"}), Exits(0));
  kill(-pid, SIGKILL);
  waitpid(pid, nullptr, 0);

  const std::set<std::string> needed = Keys(folder);
  EXPECT_THAT(Cache(folder, {"prune", "--max_gb=0"}),
              Prints("runs that were stopped need"));
  EXPECT_EQ(Keys(folder), needed);
  EXPECT_THAT(Cache(folder, {"list"}).out,
              HasSubstr("(needed by: requant run"));

  // Once the run has been completed, with whatever options, nothing is needed.
  EXPECT_THAT(workflow.Run({"--jobs=1"}), Exits(3));
  EXPECT_THAT(Keys(folder), IsSupersetOf(needed));
  EXPECT_THAT(Cache(folder, {"prune", "--max_gb=0"}), Exits(0));
  EXPECT_TRUE(Keys(folder).empty());
}

TEST(Cache, TellsWrongUsage) {
  const TestFolder folder;
  folder.Write("file", "");
  for (const Words& arguments : std::vector<std::vector<std::string>>{
           {"cache", "prune", folder.Path("")},
           {"cache", "list", "--max_gb=1"},
           {"cache", "prune", "--max_gb=nan"},
           {"cache", "--format=dot"}}) {
    EXPECT_EQ(RunProgram(kRequant, arguments).exit_code, 2) << arguments[1];
  }
  EXPECT_THAT(
      RunProgram(kRequant, {"cache", "prune", "--max_gb=0", folder.Path("")}),
      Fails("is not a run's work folder"));
  EXPECT_EQ(folder.Names(), std::vector<std::string>{"file"});
}

}  // namespace
}  // namespace requant::cache_test
