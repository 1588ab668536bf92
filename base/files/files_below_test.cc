#include "base/files/files_below.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/files/content_hash.h"
#include "base/files/file.h"
#include "base/files/sha256.h"

namespace requant::files_below_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

class FilesBelowTest : public testing::Test {
 protected:
  FilesBelowTest() : folder_(testing::TempDir() + "/files_below") {
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "assets/empty");
    EXPECT_TRUE(WriteFileAtomically(folder_ / "b", "four").ok());
    EXPECT_TRUE(WriteFileAtomically(folder_ / "assets/a", "seven..").ok());
  }
  ~FilesBelowTest() override { fs::remove_all(folder_); }

  std::string Problem() const {
    return std::string(FilesBelow(folder_).status().message());
  }
  // What those who only look at the files see.
  void ExpectTheSameFiles() const {
    const auto files = FilesBelow(folder_, nullptr, OtherEntries::kLeaveOut);
    ASSERT_TRUE(files.ok()) << files.status();
    EXPECT_THAT(*files, ElementsAre("assets/a", "b"));
    const auto bytes = BytesOf(folder_);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_EQ(*bytes, 11);
    const auto digest = DigestOfPath(folder_);
    ASSERT_TRUE(digest.ok()) << digest.status();
    EXPECT_EQ(digest->bytes, 11);
    ContentHash hash;
    EXPECT_TRUE(hash.AddFile(folder_).ok());
  }

  const fs::path folder_;
};

TEST_F(FilesBelowTest, HasFilesAndFolders) {
  std::vector<std::string> folders;
  const auto files = FilesBelow(folder_, &folders);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(*files, ElementsAre("assets/a", "b"));
  EXPECT_THAT(folders, ElementsAre("assets", "assets/empty"));
  ExpectTheSameFiles();
}

TEST_F(FilesBelowTest, FollowsLinks) {
  fs::create_symlink("b", folder_ / "c");
  const auto files = FilesBelow(folder_);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(*files, ElementsAre("assets/a", "b", "c"));
}

TEST_F(FilesBelowTest, RefusesALinkToNothing) {
  fs::create_symlink("gone", folder_ / "assets/vocabulary");
  EXPECT_THAT(Problem(), HasSubstr("assets/vocabulary is a link to nothing"));
  ExpectTheSameFiles();
}

TEST_F(FilesBelowTest, RefusesLinksToEachOther) {
  fs::create_symlink("two", folder_ / "one");
  fs::create_symlink("one", folder_ / "two");
  EXPECT_THAT(Problem(), HasSubstr(" is a link to nothing"));
  ExpectTheSameFiles();
}

TEST_F(FilesBelowTest, RefusesAPipe) {
  ASSERT_EQ(mkfifo((folder_ / "assets/pipe").c_str(), 0600), 0);
  EXPECT_THAT(
      Problem(),
      EndsWith("assets/pipe is neither a file nor a folder; remove it"));
  ExpectTheSameFiles();
}

TEST_F(FilesBelowTest, RefusesALinkToAFolderAroundIt) {
  fs::create_directory_symlink("..", folder_ / "assets/up");
  EXPECT_THAT(Problem(), HasSubstr("is a link to a folder that it is in"));
}

TEST_F(FilesBelowTest, BytesAreOfAFileToo) {
  EXPECT_EQ(BytesOf(folder_ / "b").value_or(0), 4);
  EXPECT_FALSE(BytesOf(folder_ / "gone").ok());
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_FALSE(BytesOf(folder_ / "pipe").ok());
}

}  // namespace
}  // namespace requant::files_below_test
