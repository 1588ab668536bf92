// Tests `requant compare_runs` as people run it.

#include <filesystem>

#include "graph/testing/program.h"
#include "workflows/report/run_folder.h"
#include "workflows/testing/example_runs.h"

namespace requant::compare_runs_command_test {
namespace {

class CompareRunsCommand : public testing::Test {
 protected:
  CompareRunsCommand() {
    for (const auto& [name, record] :
         {std::pair("passed", PassedRun()), std::pair("one", OneStageRun())}) {
      std::filesystem::create_directory(folder_.Path(name));
      EXPECT_OK(WriteRunFiles(record, folder_.Path(name)));
    }
  }

  ProgramRun Compare(std::vector<std::string> args) const {
    args.insert(args.begin(), "compare_runs");
    return RunProgram("workflows/requant", args);
  }

  const TestFolder folder_;
  const std::string passed_ = folder_.Path("passed");
  const std::string one_ = folder_.Path("one");
};

TEST_F(CompareRunsCommand, ShowsRunsOfDifferentWorkflows) {
  const std::string page = folder_.Path("compare.html");
  const ProgramRun run = Compare({passed_, one_, "--output=" + page});
  EXPECT_THAT(run, Exits(0));
  EXPECT_THAT(run.out, AllOf(HasSubstr("Run 2: stage freeze failed: model: no "
                                       "SavedModel there"),
                             HasSubstr("What differs:\n"),
                             HasSubstr("stage summarize")));
  const std::string html = folder_.Read("compare.html");
  EXPECT_THAT(html, HasSubstr("<h1>2 runs side by side</h1>"));
  EXPECT_THAT(Compare({passed_, one_, "--output=" + page}), Exits(0));
  EXPECT_EQ(folder_.Read("compare.html"), html);
}

TEST_F(CompareRunsCommand, RefusesInASentenceForEachFolderAndWritesNothing) {
  const std::string page = folder_.Path("compare.html");
  const ProgramRun run = Compare(
      {passed_, folder_.Path("none"), folder_.Path(""), "--output=" + page});
  EXPECT_THAT(run, Exits(1));
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(std::count(run.error.begin(), run.error.end(), '\n'), 2);
  EXPECT_FALSE(std::filesystem::exists(page));
  EXPECT_THAT(Compare({passed_}), Exits(2));
}

TEST_F(CompareRunsCommand, ReplacesNoFileThatIsNoPage) {
  folder_.Write("model.py", "mine");
  const ProgramRun run =
      Compare({passed_, one_, "--output=" + folder_.Path("model.py")});
  EXPECT_THAT(run, Exits(1));
  EXPECT_THAT(run.error, HasSubstr("model.py exists and is not named"));
  EXPECT_EQ(folder_.Read("model.py"), "mine");
}

TEST_F(CompareRunsCommand, DoesNotOverwriteTheFilesThatItReads) {
  for (const std::string file : {"results.json", "manifest.json"}) {
    const std::string before = folder_.Read("one/" + file);
    EXPECT_THAT(Compare({passed_, one_, "--output=" + one_ + "/" + file}),
                Exits(1));
    EXPECT_EQ(folder_.Read("one/" + file), before);
  }
}

}  // namespace
}  // namespace requant::compare_runs_command_test
