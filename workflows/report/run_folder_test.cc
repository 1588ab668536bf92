#include "workflows/report/run_folder.h"

#include <unistd.h>

#include <filesystem>
#include <set>

#include "base/files/file.h"
#include "base/files/sha256.h"
#include "base/json.h"
#include "graph/testing/program.h"
#include "workflows/plan/plan.h"
#include "workflows/report/results.h"
#include "workflows/run/runner.h"
#include "workflows/run/stage_store.h"
#include "workflows/testing/example_runs.h"
#include "workflows/testing/json_value.h"

namespace requant::run_folder_test {
namespace {

namespace fs = std::filesystem;

class RunFolder : public testing::Test {
 protected:
  std::string ProblemOf(const fs::path& folder) const {
    return std::string(PrepareRunFolder(folder, home_ / "work").message());
  }
  // Fills the folder for a run of a workflow without stages.
  absl::Status Fill() const {
    RunResult result;
    result.record.set_workflow("nothing");
    return FillRunFolder({}, result, *StageStore::OpenToLook(home_ / "work"),
                         "requant", folder_);
  }
  static void Write(const fs::path& path, const std::string& text = "mine") {
    fs::create_directories(path.parent_path());
    ASSERT_OK(WriteFileAtomically(path, text));
  }
  std::set<std::string> NamesIn(const fs::path& folder) const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) {
      names.insert(entry.path().filename());
    }
    return names;
  }

  const TestFolder test_folder_;
  const fs::path home_ = test_folder_.path();
  const fs::path folder_ = home_ / "run";
};

TEST_F(RunFolder, HasTheseFilesAndNoOthers) {
  ASSERT_OK(WriteRunFiles(OneStageRun(), home_));
  EXPECT_THAT(
      NamesIn(home_),
      ElementsAre("commands.sh", EventFileName(OneStageRun()), "manifest.json",
                  "report.html", "results.csv", "results.json"));
  EXPECT_EQ(*ReadFile(home_ / "results.json"),
            IndentedJson(ResultsJson(OneStageRun())));
  const auto manifest = ParseJson(*ReadFile(home_ / "manifest.json"));
  EXPECT_EQ(At(manifest, "outputs/1/path").string_value(), "report.html");
  EXPECT_EQ(At(manifest, "outputs/1/sha256").string_value(),
            DigestOfFile(home_ / "report.html")->sha256);
  EXPECT_EQ(At(manifest, "files/1").string_value(), "report.html");
  EXPECT_THAT(WriteRunFiles(OneStageRun(), home_ / "none"),
              FailsWith(HasSubstr("none/commands.sh")));
}

TEST_F(RunFolder, MayBeNewOrEmpty) {
  EXPECT_EQ(ProblemOf(folder_), "");
  fs::create_directories(folder_);
  EXPECT_EQ(ProblemOf(folder_), "");
  ASSERT_OK(Fill());
  EXPECT_TRUE(fs::exists(folder_ / "report.html"));
  EXPECT_EQ(NamesIn(home_), std::set<std::string>{"run"});
}

TEST_F(RunFolder, ReplacesAFormerRunAndLeavesNothingBesideIt) {
  ASSERT_OK(Fill());
  EXPECT_EQ(ProblemOf(folder_), "");
  const std::set<std::string> names = NamesIn(folder_);
  ASSERT_OK(Fill());
  EXPECT_EQ(NamesIn(folder_), names);
  EXPECT_EQ(NamesIn(home_), std::set<std::string>{"run"});
}

TEST_F(RunFolder, HasSavedModelsWholeAndReplacesThemUnlessAFileIsAdded) {
  const auto store = StageStore::OpenForRun(home_ / "work", "test");
  ASSERT_OK(store);
  Write((*store)->PathOf("k", "model/saved_model.pb"), "graph");
  Write((*store)->PathOf("k", "model/variables/data"), "values");
  fs::create_directories((*store)->PathOf("k", "model/assets"));
  Plan plan;
  plan.tasks.emplace_back();
  plan.tasks[0].outputs = {{"graph", "model"}};
  RunResult result;
  result.keys = {"k"};
  FileRecord& output = *result.record.add_stage()->mutable_work()->add_output();
  output.set_path("model");
  output.set_sha256(DigestOfPath((*store)->PathOf("k", "model"))->sha256);
  plan.file.workflow.add_stage()->set_name("s");
  plan.tasks[0].stage = 0;
  plan.make_task = {0};
  plan.verify_task = {-1};
  const auto fill = [&] {
    return FillRunFolder(plan, result, **store, "requant", folder_);
  };
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(ProblemOf(folder_), "");
    ASSERT_OK(fill());
    EXPECT_EQ(*ReadFile(folder_ / "model/variables/data"), "values");
  }
  EXPECT_EQ(NamesIn(folder_ / "model"),
            (std::set<std::string>{"assets", "saved_model.pb", "variables"}));

  for (const std::string name :
       {"model/note.txt", "model/variables/note.txt", "model/assets/note.txt",
        "model/notes/note.txt"}) {
    Write(folder_ / name);
    EXPECT_THAT(ProblemOf(folder_), HasSubstr("no run's, such as model/"));
    EXPECT_FALSE(fill().ok());
    EXPECT_EQ(*ReadFile(folder_ / name), "mine");
    fs::remove(folder_ / name);
  }
  fs::remove(folder_ / "model/notes");
  // What was changed in a file of the run is replaced.
  Write(folder_ / "model/variables/data");
  EXPECT_EQ(ProblemOf(folder_), "");
  EXPECT_OK(fill());
  EXPECT_EQ(*ReadFile(folder_ / "model/variables/data"), "values");
}

TEST_F(RunFolder, OfWhichAFileBecameAFolderIsRefused) {
  ASSERT_OK(Fill());
  fs::remove(folder_ / "results.csv");
  Write(folder_ / "results.csv/note.txt");
  EXPECT_THAT(ProblemOf(folder_), HasSubstr("such as results.csv/"));
}

TEST_F(RunFolder, WithADamagedManifestIsRefused) {
  ASSERT_OK(Fill());
  std::string manifest = *ReadFile(folder_ / "manifest.json");
  manifest[manifest.find("nothing")] = 'N';
  Write(folder_ / "manifest.json", manifest);
  EXPECT_THAT(ProblemOf(folder_), HasSubstr("was changed since"));
}

TEST_F(RunFolder, LatestReplacesNothingButALink) {
  const std::string link = home_ / "latest";
  EXPECT_OK(LinkLatest(link, folder_));
  EXPECT_OK(LinkLatest(link, folder_));
  fs::remove(link);
  Write(link);
  EXPECT_FALSE(LinkLatest(link, folder_).ok());
  EXPECT_EQ(*ReadFile(link), "mine");
}

TEST_F(RunFolder, WithOtherFilesIsRefused) {
  Write(folder_ / "commands.sh");
  EXPECT_THAT(ProblemOf(folder_),
              EndsWith("run holds files that are no run's: name another folder "
                       "with --out"));
}

TEST_F(RunFolder, WithOtherFilesBesideARunIsRefusedAndThoseAreKept) {
  ASSERT_OK(Fill());
  Write(folder_ / "thesis.txt");
  EXPECT_THAT(ProblemOf(folder_),
              HasSubstr("holds files that are no run's, such as thesis.txt"));
  // They may have come during the run.
  EXPECT_FALSE(Fill().ok());
  EXPECT_TRUE(fs::exists(folder_ / "thesis.txt"));
  EXPECT_EQ(NamesIn(home_), std::set<std::string>{"run"});
}

TEST_F(RunFolder, IsNoFileAndNoLink) {
  Write(folder_);
  EXPECT_THAT(ProblemOf(folder_), HasSubstr("run is a file: name another"));
  fs::create_directories(home_ / "real");
  fs::create_directory_symlink("real", home_ / "link");
  EXPECT_THAT(ProblemOf(home_ / "link"), HasSubstr("link is a link: name"));
}

TEST_F(RunFolder, IsNotInsideTheWorkFolderNorAroundIt) {
  EXPECT_THAT(ProblemOf(home_ / "work/run"), HasSubstr("inside the other"));
  EXPECT_THAT(ProblemOf(home_ / "work"), HasSubstr("inside the other"));
  EXPECT_THAT(ProblemOf(home_ / "x/../work/run"),
              HasSubstr("inside the other"));
  EXPECT_THAT(ProblemOf(home_), HasSubstr("inside the other"));
  EXPECT_EQ(ProblemOf(home_ / "work2"), "");
}

TEST_F(RunFolder, InAPlaceThatCannotBeWrittenIsRefused) {
  Write(home_ / "file");
  for (const fs::path& folder :
       {fs::path("/"), fs::path("."), home_ / "file/run", fs::path("/proc/x"),
        fs::current_path()}) {
    EXPECT_THAT(ProblemOf(folder), EndsWith("name another folder with --out"))
        << folder;
  }
}

TEST_F(RunFolder, RemovesWhatKilledRunsLeft) {
  const fs::path leftover = TemporaryName(folder_, getpid());
  Write(leftover / "half");
  EXPECT_EQ(ProblemOf(folder_), "");
  EXPECT_FALSE(fs::exists(leftover));
}

TEST(CommandScript, ItsCommentsStayComments) {
  RunRecord record;
  record.set_workflow("x\ntouch /tmp/owned\n");
  EXPECT_THAT(CommandScript({}, record, "requant"), Not(HasSubstr("\ntouch")));
}

}  // namespace
}  // namespace requant::run_folder_test
