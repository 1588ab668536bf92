#include "base/files/staged_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/files/file.h"

namespace requant::staged_folder_test {
namespace {

namespace fs = std::filesystem;

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Staged : public testing::Test {
 protected:
  void SetUp() override {
    home_ = testing::TempDir() + "/staged.XXXXXX";
    ASSERT_NE(mkdtemp(home_.data()), nullptr);
    target_ = home_ + "/model";
  }
  void TearDown() override { RemoveTree(home_); }

  std::unique_ptr<StagedFolder> Create(bool replace = false) {
    auto folder = StagedFolder::Create(target_, replace);
    EXPECT_TRUE(folder.ok()) << folder.status();
    return folder.ok() ? *std::move(folder) : nullptr;
  }
  static void Fill(const std::string& folder, const std::string& content) {
    fs::create_directories(folder + "/inner");
    ASSERT_TRUE(WriteFileAtomically(folder + "/inner/file", content).ok());
  }
  std::string Content() const {
    const auto content = ReadFile(target_ + "/inner/file");
    return content.ok() ? *content : "";
  }
  // Returns what is in the home folder, hidden things too.
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(home_)) {
      names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  std::string home_;
  std::string target_;
};

TEST_F(Staged, IsThereOnlyAfterCommit) {
  auto folder = Create();
  Fill(folder->path(), "new");
  EXPECT_FALSE(fs::exists(target_));
  ASSERT_TRUE(folder->Commit().ok());
  folder.reset();
  EXPECT_EQ(Content(), "new");
  EXPECT_THAT(Names(), ElementsAre("model"));
}

TEST_F(Staged, MayBeNamedFromTheWorkingFolder) {
  const fs::path before = fs::current_path();
  fs::current_path(home_);
  auto folder = StagedFolder::Create("model", /*replace=*/false);
  ASSERT_TRUE(folder.ok()) << folder.status();
  Fill((*folder)->path(), "new");
  const absl::Status committed = (*folder)->Commit();
  fs::current_path(before);
  EXPECT_TRUE(committed.ok()) << committed;
  EXPECT_EQ(Content(), "new");
}

TEST_F(Staged, LeavesNothingWithoutCommit) {
  Fill(Create()->path(), "new");
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(Staged, FillsAnEmptyFolderAndKeepsItsPermissions) {
  ASSERT_EQ(mkdir(target_.c_str(), 0700), 0);
  auto folder = Create();
  Fill(folder->path(), "new");
  ASSERT_TRUE(folder->Commit().ok());
  EXPECT_EQ(Content(), "new");
  struct stat info;
  ASSERT_EQ(stat(target_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700);
}

TEST_F(Staged, RefusesAFolderThatExists) {
  Fill(target_, "old");
  EXPECT_TRUE(absl::IsAlreadyExists(
      StagedFolder::Create(target_, /*replace=*/false).status()));
  EXPECT_EQ(Content(), "old");
}

TEST_F(Staged, RefusesAFileEvenWhenReplacing) {
  ASSERT_TRUE(WriteFileAtomically(target_, "a file").ok());
  EXPECT_FALSE(StagedFolder::Create(target_, /*replace=*/true).ok());
  EXPECT_EQ(*ReadFile(target_), "a file");
}

TEST_F(Staged, ReplacesAFolderAtOnce) {
  Fill(target_, "old");
  auto folder = Create(/*replace=*/true);
  Fill(folder->path(), "new");
  EXPECT_EQ(Content(), "old");
  ASSERT_TRUE(folder->Commit().ok());
  folder.reset();
  EXPECT_EQ(Content(), "new");
  EXPECT_THAT(Names(), ElementsAre("model"));
}

TEST_F(Staged, DoesNotReplaceWhatCameMeanwhile) {
  auto folder = Create();
  Fill(folder->path(), "new");
  Fill(target_, "of somebody else");
  const absl::Status status = folder->Commit();
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("it exists"));
  folder.reset();
  EXPECT_EQ(Content(), "of somebody else");
  EXPECT_THAT(Names(), ElementsAre("model"));
}

TEST_F(Staged, FollowsALinkToTheFolder) {
  Fill(home_ + "/real", "old");
  ASSERT_EQ(symlink("real", target_.c_str()), 0);
  auto folder = Create(/*replace=*/true);
  Fill(folder->path(), "new");
  ASSERT_TRUE(folder->Commit().ok());
  EXPECT_TRUE(fs::is_symlink(target_));
  EXPECT_EQ(Content(), "new");
}

TEST_F(Staged, RemovesWhatAKilledProcessLeft) {
  const pid_t child = fork();
  if (child == 0) {
    auto folder = StagedFolder::Create(target_, false);
    if (folder.ok()) Fill((*folder)->path(), "never finished");
    _exit(0);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  const std::string left = absl::StrCat(".model.tmp.", child);
  ASSERT_THAT(Names(), ElementsAre(left));
  auto folder = Create();
  EXPECT_FALSE(fs::exists(home_ + "/" + left));
}

TEST_F(Staged, LeavesTheFolderOfALivingProcessAlone) {
  // The lock is what counts; the number in the name is another's.
  auto folder = Create();
  const std::string other = home_ + "/.model.tmp.1";
  fs::rename(folder->path(), other);
  const auto second = StagedFolder::Create(target_, false);
  EXPECT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(fs::exists(other));
  fs::remove_all(other);
}

TEST_F(Staged, NamesAMissingParentAndALinkThatLeadsInACircle) {
  const auto missing = StagedFolder::Create(home_ + "/no/model", false);
  EXPECT_TRUE(absl::IsNotFound(missing.status())) << missing.status();
  ASSERT_EQ(symlink("model", target_.c_str()), 0);
  EXPECT_FALSE(StagedFolder::Create(target_, false).ok());
}

}  // namespace
}  // namespace requant::staged_folder_test
