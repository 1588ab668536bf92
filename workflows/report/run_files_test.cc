#include "workflows/report/run_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "base/files/file.h"
#include "base/files/sha256.h"
#include "base/json.h"
#include "workflows/report/results.h"
#include "workflows/testing/example_runs.h"
#include "workflows/testing/json_value.h"

namespace requant::run_files_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class RunFiles : public testing::Test {
 protected:
  RunFiles() : folder_(testing::TempDir() + "/run_files") {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~RunFiles() override { fs::remove_all(folder_); }

  std::set<std::string> Names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      names.insert(entry.path().filename());
    }
    return names;
  }

  fs::path folder_;
};

TEST_F(RunFiles, AreTheseAndNoOthers) {
  ASSERT_TRUE(WriteRunFiles(PassedRun(), folder_).ok());
  EXPECT_THAT(Names(), ElementsAre("commands.sh",
                                   "events.out.tfevents.1794845400.requant",
                                   "manifest.json", "report.html",
                                   "results.csv", "results.json"));
}

TEST_F(RunFiles, ResultsAreIndented) {
  ASSERT_TRUE(WriteRunFiles(PassedRun(), folder_).ok());
  EXPECT_EQ(*ReadFile(folder_ / "results.json"),
            IndentedJson(ResultsJson(PassedRun())));
}

TEST_F(RunFiles, TheManifestHasTheReportsDigest) {
  ASSERT_TRUE(WriteRunFiles(OneStageRun(), folder_).ok());
  const auto manifest = ParseJson(*ReadFile(folder_ / "manifest.json"));
  EXPECT_EQ(At(manifest, "outputs/1/path").string_value(), "report.html");
  EXPECT_EQ(At(manifest, "outputs/1/sha256").string_value(),
            DigestOfFile(folder_ / "report.html")->sha256);
  EXPECT_EQ(At(manifest, "files/1").string_value(), "report.html");
}

TEST_F(RunFiles, AMissingFolderIsAnError) {
  const absl::Status status = WriteRunFiles(OneStageRun(), folder_ / "none");
  EXPECT_THAT(std::string(status.message()), HasSubstr("none/commands.sh"));
}

}  // namespace
}  // namespace requant::run_files_test
