#include "base/files/staged_folder.h"

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/files/file.h"
#include "base/testing/testing.h"

namespace requant::staged_folder_test {
namespace {

namespace fs = std::filesystem;

class Staged : public testing::Test {
 protected:
  std::unique_ptr<StagedFolder> Create(bool replace = false) {
    auto folder = StagedFolder::Create(target_, replace);
    EXPECT_OK(folder);
    return folder.ok() ? *std::move(folder) : nullptr;
  }
  static void Fill(const std::string& folder, const std::string& content) {
    fs::create_directories(folder + "/inner");
    ASSERT_OK(WriteFileAtomically(folder + "/inner/file", content));
  }
  // Fills a new folder, commits it and destroys the object.
  void FillAndCommit(bool replace = false) {
    const auto folder = Create(replace);
    Fill(folder->path(), "new");
    ASSERT_OK(folder->Commit());
  }
  std::string Content() const {
    return ReadFile(target_ + "/inner/file").value_or("");
  }

  ScratchFolder home_;
  const std::string target_ = home_.Path("model");
};

TEST_F(Staged, IsThereOnlyAfterCommit) {
  auto folder = Create();
  Fill(folder->path(), "new");
  EXPECT_FALSE(fs::exists(target_));
  ASSERT_OK(folder->Commit());
  folder.reset();
  EXPECT_EQ(Content(), "new");
  EXPECT_THAT(home_.Names(), ElementsAre("model"));
}

TEST_F(Staged, MayBeNamedFromTheWorkingFolder) {
  const fs::path before = fs::current_path();
  fs::current_path(home_.path());
  ASSERT_OK_AND_ASSIGN(const auto folder,
                       StagedFolder::Create("model", /*replace=*/false));
  Fill(folder->path(), "new");
  EXPECT_OK(folder->Commit());
  fs::current_path(before);
  EXPECT_EQ(Content(), "new");
}

TEST_F(Staged, LeavesNothingWithoutCommit) {
  Fill(Create()->path(), "new");
  EXPECT_THAT(home_.Names(), IsEmpty());
}

TEST_F(Staged, FillsAnEmptyFolderAndKeepsItsPermissions) {
  fs::create_directory(target_);
  fs::permissions(target_, fs::perms(0700));
  FillAndCommit();
  EXPECT_EQ(Content(), "new");
  EXPECT_EQ(fs::status(target_).permissions(), fs::perms(0700));
}

TEST_F(Staged, RefusesAFolderThatExists) {
  Fill(target_, "old");
  EXPECT_TRUE(absl::IsAlreadyExists(
      StagedFolder::Create(target_, /*replace=*/false).status()));
  EXPECT_EQ(Content(), "old");
}

TEST_F(Staged, RefusesAFileEvenWhenReplacing) {
  home_.Write("model", "a file");
  EXPECT_FALSE(StagedFolder::Create(target_, /*replace=*/true).ok());
  EXPECT_EQ(home_.Read("model"), "a file");
}

TEST_F(Staged, ReplacesAFolderAtOnce) {
  Fill(target_, "old");
  auto folder = Create(/*replace=*/true);
  Fill(folder->path(), "new");
  EXPECT_EQ(Content(), "old");
  ASSERT_OK(folder->Commit());
  folder.reset();
  EXPECT_EQ(Content(), "new");
  EXPECT_THAT(home_.Names(), ElementsAre("model"));
}

TEST_F(Staged, DoesNotReplaceWhatCameMeanwhile) {
  auto folder = Create();
  Fill(folder->path(), "new");
  Fill(target_, "of somebody else");
  const absl::Status status = folder->Commit();
  EXPECT_TRUE(absl::IsAlreadyExists(status));
  EXPECT_THAT(status, FailsWith(HasSubstr("it exists")));
  folder.reset();
  EXPECT_EQ(Content(), "of somebody else");
  EXPECT_THAT(home_.Names(), ElementsAre("model"));
}

TEST_F(Staged, FollowsALinkToTheFolder) {
  Fill(home_.Path("real"), "old");
  fs::create_symlink("real", target_);
  FillAndCommit(/*replace=*/true);
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
  ASSERT_THAT(home_.Names(), ElementsAre(left));
  auto folder = Create();
  EXPECT_FALSE(fs::exists(home_.Path(left)));
}

TEST_F(Staged, RemovesFormerFoldersOnceThereIsANewOne) {
  Fill(home_.Path(".model.old.1"), "former");
  Create();
  EXPECT_THAT(home_.Names(), ElementsAre(".model.old.1"));
  FillAndCommit();
  Create(/*replace=*/true);
  EXPECT_THAT(home_.Names(), ElementsAre("model"));
}

TEST_F(Staged, KeepsWhatOnlyLooksLikeALeftover) {
  for (const char* name : {".model.tmp.x", ".other.tmp.1", "model.tmp.1"}) {
    Fill(home_.Path(name), "of somebody else");
  }
  Create();
  EXPECT_EQ(home_.Names().size(), 3);
}

TEST_F(Staged, IsNotPutInPlaceWhenTheLastCheckFails) {
  Fill(target_, "old");
  const auto folder = Create(/*replace=*/true);
  EXPECT_THAT(folder->Commit([] { return absl::AbortedError("no"); }),
              FailsWith(HasSubstr("no")));
  EXPECT_EQ(Content(), "old");
}

TEST_F(Staged, LeavesTheFolderOfALivingProcessAlone) {
  // Only the lock matters: the number in the name is another process's.
  auto folder = Create();
  const std::string other = home_.Path(".model.tmp.1");
  fs::rename(folder->path(), other);
  EXPECT_OK(StagedFolder::Create(target_, false));
  EXPECT_TRUE(fs::exists(other));
}

TEST_F(Staged, NamesAMissingParentAndALinkThatLeadsInACircle) {
  EXPECT_TRUE(absl::IsNotFound(
      StagedFolder::Create(home_.Path("no/model"), false).status()));
  fs::create_symlink("model", target_);
  EXPECT_FALSE(StagedFolder::Create(target_, false).ok());
}

}  // namespace
}  // namespace requant::staged_folder_test
