#include "workflows/report/run_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <random>
#include <set>

#include "absl/strings/str_join.h"
#include "base/files/file.h"
#include "base/files/sha256.h"
#include "base/json.h"
#include "base/testing/fuzz_rounds.h"
#include "graph/testing/program.h"
#include "workflows/plan/plan.h"
#include "workflows/report/results.h"
#include "workflows/run/run_record.pb.h"
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
  // A run's file that was changed is replaced.
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
                       "with --output"));
}

TEST_F(RunFolder, WithOtherFilesBesideARunIsRefusedAndThoseAreKept) {
  ASSERT_OK(Fill());
  Write(folder_ / "thesis.txt");
  EXPECT_THAT(ProblemOf(folder_),
              HasSubstr("holds files that are no run's, such as thesis.txt"));
  // Files of others may have appeared during the run.
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
    EXPECT_THAT(ProblemOf(folder),
                EndsWith("name another folder with --output"))
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

FileRecord FileOf(const std::string& path, const std::string& content,
                  const std::string& stage = "") {
  FileRecord file;
  file.set_path(path);
  file.set_sha256(Sha256(content));
  file.set_bytes(content.size());
  file.set_stage(stage);
  return file;
}

// Returns a manifest in the current format, with these members.
std::string Manifest(const std::string& members = "") {
  return absl::StrCat("{\"format\": \"requant manifest 1\"", members, "}");
}

std::string Entry(const std::string& member, const std::string& path,
                  const std::string& content) {
  return absl::StrCat(", \"", member, "\": [{\"path\": \"", path,
                      "\", \"sha256\": \"", Sha256(content), "\"}]");
}

// A run that read input.txt and made output.pb, and its folder.
class ManifestTest : public testing::Test {
 protected:
  ManifestTest() {
    folder_.Write("input.txt", "read");
    folder_.Write("output.pb", "made");
    *work().add_input() = FileOf(Path("input.txt"), "read");
    *work().add_output() = FileOf("output.pb", "made");
  }

  TaskRecord& work() { return *stage_.mutable_work(); }
  std::string Path(const std::string& name) const { return folder_.Path(name); }
  absl::StatusOr<std::vector<FileCheck>> Check(const std::string& manifest) {
    return CheckManifest(folder_.Write("manifest.json", manifest));
  }
  std::vector<FileCheck> Verify() {
    const auto checks = Check(ManifestJson(record_, {}, {}));
    EXPECT_OK(checks);
    return checks.value_or(std::vector<FileCheck>());
  }
  // Returns the states of the input and the output, and whether all is well.
  std::string States() {
    const std::vector<FileCheck> checks = Verify();
    return absl::StrCat(
        absl::StrJoin(checks, ", ",
                      [](std::string* out, const FileCheck& check) {
                        absl::StrAppend(out, FileStateName(check.state));
                      }),
        AllWell(checks) ? "" : ": bad");
  }
  // Returns why a manifest with a correct digest of its own is refused.
  std::string ErrorOf(const std::string& manifest) {
    return std::string(Check(WithOwnDigest(manifest)).status().message());
  }

  TestFolder folder_;
  RunRecord record_;
  StageRecord& stage_ = *record_.add_stage();
};

TEST_F(ManifestTest, ChangesAreFound) {
  EXPECT_EQ(States(), "ok, ok");
  folder_.Write("output.pb", "mane");
  EXPECT_EQ(States(), "ok, changed: bad") << "of the same size";
  folder_.Write("output.pb", "edited");
  EXPECT_EQ(States(), "ok, changed: bad");
  EXPECT_EQ(Verify()[1].message, "6 bytes, were 4");
  folder_.Write("output.pb", "made");
  folder_.Write("input.txt", "edited");
  EXPECT_EQ(States(), "changed, ok: bad");
}

TEST_F(ManifestTest, OnlyAMissingOutputIsAFault) {
  fs::remove(Path("input.txt"));
  EXPECT_EQ(States(), "gone, ok");
  fs::remove(Path("output.pb"));
  EXPECT_EQ(States(), "gone, missing: bad");
}

TEST_F(ManifestTest, APipeIsNotOpened) {
  fs::remove(Path("output.pb"));
  ASSERT_EQ(mkfifo(Path("output.pb").c_str(), 0600), 0);
  EXPECT_EQ(States(), "ok, unreadable: bad");
}

TEST_F(ManifestTest, FoldersAreDigestedWhole) {
  fs::create_directories(Path("model/variables"));
  folder_.Write("model/variables/data", "x");
  work().mutable_input(0)->set_path(Path("model"));
  work().mutable_input(0)->set_sha256(DigestOfPath(Path("model"))->sha256);
  EXPECT_EQ(States(), "ok, ok");
  folder_.Write("model/variables/more", "y");
  EXPECT_EQ(States(), "changed, ok: bad");
}

TEST_F(ManifestTest, PathsNeedNotBeUtf8) {
  folder_.Write("out\xff", "made");
  work().mutable_output(0)->set_path("out\xff");
  EXPECT_EQ(States(), "ok, ok");
}

TEST_F(ManifestTest, WhatAStageMadeIsNoInputOfTheRun) {
  TaskRecord* verification = stage_.mutable_verification()->mutable_work();
  *verification->add_input() = FileOf("output.pb", "made", "stage");
  *verification->add_input() = FileOf(Path("input.txt"), "read");
  EXPECT_EQ(States(), "ok, ok");
}

TEST_F(ManifestTest, FilesWithoutADigestAreLeftOut) {
  work().add_output()->set_path("half.pb");
  EXPECT_EQ(States(), "ok, ok");
}

TEST_F(ManifestTest, InputsAreFoundFromAnotherFolder) {
  const fs::path here = fs::current_path();
  work().mutable_input(0)->set_path("input.txt");
  fs::current_path(Path(""));
  const std::string manifest = ManifestJson(record_, {}, {});
  fs::current_path(here);
  ASSERT_OK_AND_ASSIGN(const auto checks, Check(manifest));
  EXPECT_EQ(checks[0].state, FileState::kOk);
  EXPECT_EQ(checks[0].path, "input.txt");
}

TEST_F(ManifestTest, RelativeInputsAreFromTheManifestsFolderOn) {
  ASSERT_OK_AND_ASSIGN(
      const auto checks,
      Check(WithOwnDigest(Manifest(Entry("inputs", "input.txt", "read") +
                                   Entry("outputs", "output.pb", "made")))));
  EXPECT_EQ(checks[0].state, FileState::kOk);
}

TEST(ManifestJson, HasFilesCommandsVersionsAndMetrics) {
  const auto json = ParseJson(ManifestJson(PassedRun(), {}, {}));
  EXPECT_EQ(At(json, "inputs/0/path").string_value(),
            (fs::current_path() / "model").string());
  EXPECT_EQ(At(json, "inputs/0/given").string_value(), "model");
  EXPECT_EQ(At(json, "outputs/1/path").string_value(),
            "wide_deep_frozen_fp32_graph.pb");
  EXPECT_EQ(At(json, "outputs/1/bytes").number_value(), 9618423);
  EXPECT_EQ(At(json, "tool/tensorflow").string_value(), "2.21.0");
  EXPECT_EQ(At(json, "variables/1/value").string_value(), "200000");
  EXPECT_THAT(At(json, "tasks/2/commands/0").string_value(),
              HasSubstr("requant freeze"));
  EXPECT_EQ(At(json, "metrics/11/figures/accuracy").number_value(), 0.75946);
}

TEST_F(ManifestTest, AMalformedManifestIsOneSentence) {
  for (const std::string& text : std::vector<std::string>{
           "", "{", "[]", "null", "{\"format\": 3}", "{\"outputs\": [{]}",
           std::string(1000000, '['), "{\"x\": " + std::string(1000000, '[')}) {
    const std::string error = ErrorOf(text);
    EXPECT_THAT(error, HasSubstr("manifest.json: not a manifest of a run"));
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
    EXPECT_EQ(error.find("  "), std::string::npos) << error;
  }
}

TEST_F(ManifestTest, WhatIsNoManifestOfARunIsRefused) {
  EXPECT_THAT(ErrorOf("{\"format\": \"requant results 1\"}"),
              HasSubstr("\"format\" is \"requant results 1\", not \"requant "
                        "manifest 1\""));
  EXPECT_THAT(ErrorOf(Manifest()),
              HasSubstr("not a manifest of a run: it has no \"outputs\""));
  for (const std::string path : {"/etc/passwd", "../x", "a/../../x"}) {
    EXPECT_THAT(ErrorOf(Manifest(Entry("outputs", path, ""))),
                HasSubstr(absl::StrCat("the output \"", path,
                                       "\" is not in the manifest's folder")));
  }
}

TEST_F(ManifestTest, AnyBitThatChangedInItIsFound) {
  const std::string manifest = ManifestJson(record_, {}, {"output.pb"});
  for (size_t i = 0; i < manifest.size() * 8; i += 37) {
    std::string changed = manifest;
    changed[i / 8] ^= 1 << (i % 8);
    EXPECT_FALSE(Check(changed).ok()) << "bit " << i;
  }
  EXPECT_THAT(Check(Manifest()),
              FailsWith(HasSubstr("manifest.json lacks its own digest")));
}

TEST_F(ManifestTest, AMissingManifestIsNamed) {
  EXPECT_THAT(CheckManifest(Path("none.json")),
              FailsWith(HasSubstr("none.json")));
}

// Whatever a manifest holds, the result is a list or a sentence.
TEST_F(ManifestTest, SurvivesAnyChange) {
  const std::string manifest = ManifestJson(record_, {}, {});
  std::mt19937 random(1);
  for (int round = 0; round < FuzzRounds(300); ++round) {
    const absl::Status status =
        Check(MutatedText(manifest, {"{", "}", "[", "]", "\"", ",", ":", "\\"},
                          &random))
            .status();
    EXPECT_EQ(status.message().find('\n'), std::string::npos) << status;
  }
}

}  // namespace
}  // namespace requant::run_folder_test
