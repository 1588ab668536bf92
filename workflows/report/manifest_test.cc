#include "workflows/report/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/sha256.h"
#include "base/json.h"
#include "base/testing/fuzz_rounds.h"
#include "workflows/run/run_record.pb.h"
#include "workflows/testing/example_runs.h"
#include "workflows/testing/json_value.h"

namespace requant::manifest_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

FileRecord FileOf(const std::string& path, const std::string& content,
                  const std::string& stage = "") {
  FileRecord file;
  file.set_path(path);
  file.set_sha256(Sha256(content));
  file.set_bytes(content.size());
  file.set_stage(stage);
  return file;
}

// A run that read input.txt and made output.pb, and its folder.
class ManifestTest : public testing::Test {
 protected:
  ManifestTest() : folder_(testing::TempDir() + "/manifest") {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    Write("input.txt", "read");
    Write("output.pb", "made");
    TaskRecord* work = record_.add_stage()->mutable_work();
    *work->add_input() = FileOf(Path("input.txt"), "read");
    *work->add_output() = FileOf("output.pb", "made");
  }
  ~ManifestTest() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ / name; }
  void Write(const std::string& name, const std::string& content) {
    std::ofstream(Path(name)) << content;
  }
  absl::StatusOr<std::vector<FileCheck>> Verify() {
    Write("manifest.json", ManifestJson(record_, {}, {}));
    return CheckManifest(Path("manifest.json"));
  }
  // The states of the input and the output.
  std::vector<FileState> States() {
    const auto checks = Verify();
    EXPECT_TRUE(checks.ok()) << checks.status();
    std::vector<FileState> states;
    if (checks.ok()) {
      for (const FileCheck& check : *checks) states.push_back(check.state);
    }
    return states;
  }
  std::string ErrorOf(const std::string& manifest) {
    Write("bad.json", WithOwnDigest(manifest));
    return std::string(CheckManifest(Path("bad.json")).status().message());
  }

  fs::path folder_;
  RunRecord record_;
};

TEST_F(ManifestTest, UnchangedFilesAreOk) {
  EXPECT_THAT(States(), testing::ElementsAre(FileState::kOk, FileState::kOk));
  EXPECT_TRUE(AllWell(*Verify()));
}

TEST_F(ManifestTest, AChangedOutputIsFound) {
  Write("output.pb", "edited");
  EXPECT_THAT(States(),
              testing::ElementsAre(FileState::kOk, FileState::kChanged));
  EXPECT_EQ((*Verify())[1].message, "6 bytes, were 4");
  EXPECT_FALSE(AllWell(*Verify()));
}

TEST_F(ManifestTest, AChangeOfTheSameSizeIsFound) {
  Write("output.pb", "mane");
  EXPECT_THAT(States(),
              testing::ElementsAre(FileState::kOk, FileState::kChanged));
}

TEST_F(ManifestTest, AChangedInputIsFound) {
  Write("input.txt", "edited");
  EXPECT_THAT(States(),
              testing::ElementsAre(FileState::kChanged, FileState::kOk));
  EXPECT_FALSE(AllWell(*Verify()));
}

TEST_F(ManifestTest, OnlyAMissingOutputIsAFault) {
  fs::remove(Path("input.txt"));
  EXPECT_THAT(States(), testing::ElementsAre(FileState::kGone, FileState::kOk));
  EXPECT_TRUE(AllWell(*Verify()));
  fs::remove(Path("output.pb"));
  EXPECT_THAT(States(),
              testing::ElementsAre(FileState::kGone, FileState::kMissing));
  EXPECT_FALSE(AllWell(*Verify()));
}

TEST_F(ManifestTest, APipeIsNotOpened) {
  fs::remove(Path("output.pb"));
  ASSERT_EQ(mkfifo(Path("output.pb").c_str(), 0600), 0);
  EXPECT_THAT(States(),
              testing::ElementsAre(FileState::kOk, FileState::kUnreadable));
  EXPECT_FALSE(AllWell(*Verify()));
}

TEST_F(ManifestTest, FoldersAreDigestedWhole) {
  fs::create_directories(Path("model/variables"));
  Write("model/variables/data", "x");
  const auto digest = DigestOfPath(Path("model"));
  ASSERT_TRUE(digest.ok());
  FileRecord* folder =
      record_.mutable_stage(0)->mutable_work()->mutable_input(0);
  folder->set_path(Path("model"));
  folder->set_sha256(digest->sha256);
  EXPECT_THAT(States(), testing::ElementsAre(FileState::kOk, FileState::kOk));
  Write("model/variables/more", "y");
  EXPECT_THAT(States(),
              testing::ElementsAre(FileState::kChanged, FileState::kOk));
}

TEST_F(ManifestTest, PathsNeedNotBeUtf8) {
  Write("out\xff", "made");
  record_.mutable_stage(0)->mutable_work()->mutable_output(0)->set_path(
      "out\xff");
  EXPECT_THAT(States(), testing::ElementsAre(FileState::kOk, FileState::kOk));
}

TEST_F(ManifestTest, WhatAStageMadeIsNoInputOfTheRun) {
  TaskRecord* verification =
      record_.mutable_stage(0)->mutable_verification()->mutable_work();
  *verification->add_input() = FileOf("output.pb", "made", "stage");
  *verification->add_input() = FileOf(Path("input.txt"), "read");
  EXPECT_EQ(States().size(), 2);
}

TEST_F(ManifestTest, InputsAreFoundFromAnotherFolder) {
  const fs::path here = fs::current_path();
  record_.mutable_stage(0)->mutable_work()->mutable_input(0)->set_path(
      "input.txt");
  fs::current_path(folder_);
  Write("manifest.json", ManifestJson(record_, {}, {}));
  fs::current_path(here);
  const auto checks = CheckManifest(Path("manifest.json"));
  ASSERT_TRUE(checks.ok()) << checks.status();
  EXPECT_EQ((*checks)[0].state, FileState::kOk);
  EXPECT_EQ((*checks)[0].path, "input.txt");
}

TEST_F(ManifestTest, RelativeInputsAreFromTheManifestsFolderOn) {
  Write("other.json", WithOwnDigest(absl::StrCat(
                          "{\"format\": \"requant manifest 1\", \"inputs\": "
                          "[{\"path\": \"input.txt\", \"sha256\": \"",
                          Sha256("read"),
                          "\"}], \"outputs\": [{\"path\": \"output.pb\", "
                          "\"sha256\": \"",
                          Sha256("made"), "\"}]}")));
  const auto checks = CheckManifest(Path("other.json"));
  ASSERT_TRUE(checks.ok()) << checks.status();
  EXPECT_EQ((*checks)[0].state, FileState::kOk);
}

TEST_F(ManifestTest, FilesWithoutADigestAreLeftOut) {
  record_.mutable_stage(0)->mutable_work()->add_output()->set_path("half.pb");
  EXPECT_EQ(States().size(), 2);
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
  for (const std::string text :
       {"", "{", "[]", "null", "{\"format\": 3}", "{\"outputs\": [{]}"}) {
    const std::string error = ErrorOf(text);
    EXPECT_THAT(error, HasSubstr("bad.json: not a manifest of a run")) << text;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
    EXPECT_EQ(error.find("  "), std::string::npos) << error;
  }
}

TEST_F(ManifestTest, AnotherJsonFileIsRefused) {
  EXPECT_THAT(ErrorOf("{\"format\": \"requant results 1\"}"),
              HasSubstr("\"format\" is \"requant results 1\", not \"requant "
                        "manifest 1\""));
}

TEST_F(ManifestTest, AnEntryWithoutADigestIsRefused) {
  EXPECT_THAT(ErrorOf("{\"format\": \"requant manifest 1\", \"outputs\": "
                      "[{\"path\": \"x\"}]}"),
              HasSubstr("\"outputs\"[0] lacks a path or a SHA-256"));
}

TEST_F(ManifestTest, WithoutOutputsItIsNone) {
  EXPECT_THAT(ErrorOf("{\"format\": \"requant manifest 1\"}"),
              HasSubstr("not a manifest of a run: it has no \"outputs\""));
}

TEST_F(ManifestTest, OutputsOutsideOfItsFolderAreRefused) {
  for (const std::string path : {"/etc/passwd", "../x", "a/../../x"}) {
    EXPECT_THAT(
        ErrorOf(absl::StrCat("{\"format\": \"requant manifest 1\", "
                             "\"outputs\": [{\"path\": \"",
                             path, "\", \"sha256\": \"", Sha256(""), "\"}]}")),
        HasSubstr(absl::StrCat("the output \"", path,
                               "\" is not in the manifest's folder")));
  }
}

TEST_F(ManifestTest, AnyBitThatChangedInItIsFound) {
  const std::string manifest = ManifestJson(record_, {}, {"output.pb"});
  for (size_t i = 0; i < manifest.size() * 8; i += 37) {
    std::string changed = manifest;
    changed[i / 8] ^= 1 << (i % 8);
    Write("changed.json", changed);
    EXPECT_FALSE(CheckManifest(Path("changed.json")).ok()) << "bit " << i;
  }
}

TEST_F(ManifestTest, WithoutItsOwnDigestItIsRefused) {
  Write("bare.json", "{\"format\": \"requant manifest 1\"}");
  EXPECT_THAT(std::string(CheckManifest(Path("bare.json")).status().message()),
              HasSubstr("bare.json lacks its own digest"));
}

TEST_F(ManifestTest, DeepNestingIsRefused) {
  EXPECT_THAT(ErrorOf(std::string(1000000, '[')), HasSubstr("not a manifest"));
  EXPECT_THAT(ErrorOf(absl::StrCat("{\"x\": ", std::string(1000000, '['))),
              HasSubstr("not a manifest"));
}

TEST_F(ManifestTest, AMissingManifestIsNamed) {
  const auto checks = CheckManifest(Path("none.json"));
  EXPECT_THAT(std::string(checks.status().message()), HasSubstr("none.json"));
}

// Whatever a manifest holds, the answer is a list or a sentence.
TEST_F(ManifestTest, SurvivesAnyChange) {
  const std::string manifest = ManifestJson(record_, {}, {});
  std::mt19937 random(1);
  for (int round = 0; round < FuzzRounds(300); ++round) {
    std::string text = manifest;
    for (int i = random() % 4; i >= 0; --i) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, random() % 8);
          break;
        default:
          text.insert(at, 1, "{}[]\",:\\0"[random() % 9]);
      }
    }
    Write("fuzz.json", text);
    const auto checks = CheckManifest(Path("fuzz.json"));
    if (!checks.ok()) {
      EXPECT_EQ(checks.status().message().find('\n'), std::string::npos)
          << checks.status();
    }
  }
}

}  // namespace
}  // namespace requant::manifest_test
