#include "workflows/report/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/files/sha256.h"
#include "base/json.h"
#include "workflows/plan/plan.h"
#include "workflows/report/results.h"
#include "workflows/run/runner.h"
#include "workflows/run/stage_store.h"
#include "workflows/testing/example_runs.h"
#include "workflows/testing/json_value.h"

namespace requant::run_folder_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

// Returns the number of a process that has ended.
pid_t GonePid() {
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  waitpid(pid, nullptr, 0);
  return pid;
}

class RunFolder : public testing::Test {
 protected:
  RunFolder()
      : home_(testing::TempDir() + "/run_folder"), folder_(home_ / "run") {
    fs::remove_all(home_);
    fs::create_directories(home_);
  }
  ~RunFolder() override { fs::remove_all(home_); }

  std::string ProblemOf(const fs::path& folder) const {
    return std::string(PrepareRunFolder(folder, home_ / "work").message());
  }
  // Fills the folder for a run of a workflow without stages.
  void Fill() const {
    RunResult result;
    result.record.set_workflow("nothing");
    ASSERT_TRUE(FillRunFolder({}, result,
                              *StageStore::OpenToLook(home_ / "work"),
                              "requant", folder_)
                    .ok());
  }
  static void Write(const fs::path& path, const std::string& text = "mine") {
    fs::create_directories(path.parent_path());
    ASSERT_TRUE(WriteFileAtomically(path, text).ok());
  }
  std::set<std::string> NamesIn(const fs::path& folder) const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) {
      names.insert(entry.path().filename());
    }
    return names;
  }
  // Makes what a run that was killed while it filled its folder leaves.
  fs::path Leftover(const std::string& name) const {
    Fill();
    const fs::path leftover =
        home_ / absl::StrCat(name, ".partial.", GonePid());
    fs::rename(folder_, leftover);
    return leftover;
  }
  std::string MarkOf(const fs::path& folder) const {
    return folder / ".requant_unfinished";
  }

  const fs::path home_;
  const fs::path folder_;
};

TEST_F(RunFolder, HasTheseFilesAndNoOthers) {
  ASSERT_TRUE(WriteRunFiles(OneStageRun(), home_).ok());
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
  const absl::Status status = WriteRunFiles(OneStageRun(), home_ / "none");
  EXPECT_THAT(std::string(status.message()), HasSubstr("none/commands.sh"));
}

TEST_F(RunFolder, MayBeNewOrEmpty) {
  EXPECT_EQ(ProblemOf(folder_), "");
  fs::create_directories(folder_);
  EXPECT_EQ(ProblemOf(folder_), "");
  Fill();
  EXPECT_TRUE(fs::exists(folder_ / "report.html"));
  EXPECT_EQ(NamesIn(home_), std::set<std::string>{"run"});
}

TEST_F(RunFolder, ReplacesAFormerRunAndLeavesNothingBesideIt) {
  Fill();
  EXPECT_EQ(ProblemOf(folder_), "");
  const std::set<std::string> names = NamesIn(folder_);
  Fill();
  EXPECT_EQ(NamesIn(folder_), names);
  EXPECT_EQ(names.count(".requant_unfinished"), 0);
  EXPECT_EQ(NamesIn(home_), std::set<std::string>{"run"});
}

TEST_F(RunFolder, HasSavedModelsWholeAndReplacesThemUnlessAFileIsAdded) {
  const auto store = StageStore::OpenForRun(home_ / "work", "test");
  ASSERT_TRUE(store.ok());
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
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(ProblemOf(folder_), "");
    const absl::Status filled =
        FillRunFolder(plan, result, **store, "requant", folder_);
    ASSERT_TRUE(filled.ok()) << filled;
    EXPECT_EQ(*ReadFile(folder_ / "model/variables/data"), "values");
  }
  EXPECT_EQ(NamesIn(folder_ / "model"),
            (std::set<std::string>{"assets", "saved_model.pb", "variables"}));

  for (const std::string name :
       {"model/note.txt", "model/variables/note.txt", "model/assets/note.txt",
        "model/notes/note.txt"}) {
    Write(folder_ / name);
    EXPECT_THAT(ProblemOf(folder_), HasSubstr("no run's, such as model/"));
    EXPECT_FALSE(FillRunFolder(plan, result, **store, "requant", folder_).ok());
    EXPECT_EQ(*ReadFile(folder_ / name), "mine");
    fs::remove(folder_ / name);
  }
  fs::remove(folder_ / "model/notes");
  // What was changed in a file of the run is replaced.
  Write(folder_ / "model/variables/data");
  EXPECT_EQ(ProblemOf(folder_), "");
  EXPECT_TRUE(FillRunFolder(plan, result, **store, "requant", folder_).ok());
  EXPECT_EQ(*ReadFile(folder_ / "model/variables/data"), "values");
}

TEST_F(RunFolder, OfWhichAFileBecameAFolderIsRefused) {
  Fill();
  fs::remove(folder_ / "results.csv");
  Write(folder_ / "results.csv/note.txt");
  EXPECT_THAT(ProblemOf(folder_), HasSubstr("such as results.csv/"));
}

TEST_F(RunFolder, WithADamagedManifestIsRefused) {
  Fill();
  std::string manifest = *ReadFile(folder_ / "manifest.json");
  manifest[manifest.find("nothing")] = 'N';
  Write(folder_ / "manifest.json", manifest);
  EXPECT_THAT(ProblemOf(folder_), HasSubstr("was changed since"));
}

TEST_F(RunFolder, LatestReplacesNothingButALink) {
  const std::string link = home_ / "latest";
  EXPECT_TRUE(LinkLatest(link, folder_).ok());
  EXPECT_TRUE(LinkLatest(link, folder_).ok());
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
  Fill();
  Write(folder_ / "thesis.txt");
  EXPECT_THAT(ProblemOf(folder_),
              HasSubstr("holds files that are no run's, such as thesis.txt"));
  // They may have come during the run.
  EXPECT_FALSE(FillRunFolder({}, {}, *StageStore::OpenToLook(home_ / "work"),
                             "requant", folder_)
                   .ok());
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
  const fs::path leftover = Leftover("run");
  Write(MarkOf(leftover), "");
  const fs::path empty = home_ / absl::StrCat("run.partial.", GonePid());
  fs::create_directories(empty);
  EXPECT_EQ(ProblemOf(folder_), "");
  EXPECT_FALSE(fs::exists(leftover));
  EXPECT_FALSE(fs::exists(empty));
}

TEST_F(RunFolder, KeepsWhatOnlyLooksLikeALeftover) {
  const fs::path unmarked = Leftover("run");
  const fs::path others = Leftover("other");
  Write(MarkOf(others), "");
  EXPECT_EQ(ProblemOf(folder_), "");
  EXPECT_TRUE(fs::exists(unmarked));
  EXPECT_TRUE(fs::exists(others));
}

TEST(CommandScript, ItsCommentsStayComments) {
  RunRecord record;
  record.set_workflow("x\ntouch /tmp/owned\n");
  EXPECT_THAT(CommandScript({}, record, "requant"), Not(HasSubstr("\ntouch")));
}

}  // namespace
}  // namespace requant::run_folder_test
