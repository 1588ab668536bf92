#include "base/files/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/files/file.h"
#include "base/files/sha256.h"

namespace requant::files_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

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
  // Checks what callers that only look at the files see.
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

TEST(MatchingFiles, AreSortedByName) {
  const std::string folder = testing::TempDir() + "matching/";
  fs::create_directories(folder);
  for (const char* name : {"b.x", "a.x", "B.x", "c.y"}) {
    std::ofstream(folder + name) << "";
  }
  EXPECT_THAT(MatchingFiles(folder + "*.x"),
              ElementsAre(folder + "B.x", folder + "a.x", folder + "b.x"));
  EXPECT_THAT(MatchingFiles(folder + "*.z"), IsEmpty());
}

class CopiedFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/copy.XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { RemoveTree(folder_); }

  std::string Path(const std::string& name) const {
    return folder_ + "/" + name;
  }
  std::string Write(const std::string& name, const std::string& content) {
    EXPECT_TRUE(WriteFileAtomically(Path(name), content).ok());
    return Path(name);
  }
  static struct stat Info(const std::string& path) {
    struct stat info = {};
    EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
    return info;
  }

  std::string folder_;
};

TEST_F(CopiedFile, KeepsContentAndPermissions) {
  const std::string content(3'000'001, 'x');
  const std::string from = Write("from", content);
  ASSERT_EQ(chmod(from.c_str(), 0640), 0);
  const absl::Status copied = CopyFile(from, Path("to"));
  ASSERT_TRUE(copied.ok()) << copied;
  EXPECT_EQ(*ReadFile(Path("to")), content);
  EXPECT_EQ(Info(Path("to")).st_mode & 0777, 0640);
  EXPECT_NE(Info(Path("to")).st_ino, Info(from).st_ino);
}

TEST_F(CopiedFile, CopiesAnEmptyFile) {
  const absl::Status copied = CopyFile(Write("from", ""), Path("to"));
  ASSERT_TRUE(copied.ok()) << copied;
  EXPECT_EQ(*ReadFile(Path("to")), "");
}

TEST_F(CopiedFile, KeepsHoles) {
  constexpr off_t kSize = int64_t{5} << 30;
  constexpr off_t kPlace = int64_t{3} << 30;
  const std::string from = Write("from", "");
  const int fd = open(from.c_str(), O_WRONLY);
  ASSERT_EQ(ftruncate(fd, kSize), 0);
  ASSERT_EQ(pwrite(fd, "middle", 6, kPlace), 6);
  close(fd);
  const absl::Status copied = CopyFile(from, Path("to"));
  ASSERT_TRUE(copied.ok()) << copied;
  EXPECT_EQ(Info(Path("to")).st_size, kSize);
  EXPECT_LT(AllocatedBytes(Path("to")), 1 << 20);
  char text[6];
  const int copy = open(Path("to").c_str(), O_RDONLY);
  EXPECT_EQ(pread(copy, text, 6, kPlace), 6);
  close(copy);
  EXPECT_EQ(std::string(text, 6), "middle");
}

TEST_F(CopiedFile, FollowsLinks) {
  Write("real", "content");
  ASSERT_EQ(symlink("real", Path("from").c_str()), 0);
  ASSERT_TRUE(CopyFile(Path("from"), Path("copy")).ok());
  ASSERT_TRUE(LinkFile(Path("from"), Path("link")).ok());
  EXPECT_EQ(*ReadFile(Path("copy")), "content");
  EXPECT_EQ(Info(Path("link")).st_ino, Info(Path("real")).st_ino);
  struct stat info;
  ASSERT_EQ(lstat(Path("link").c_str(), &info), 0);
  EXPECT_TRUE(S_ISREG(info.st_mode));
}

// Few file systems can; what must hold is that nothing is left where it fails.
TEST_F(CopiedFile, IsClonedWholeOrNotAtAll) {
  const absl::Status cloned = CloneFile(Write("from", "content"), Path("to"));
  if (cloned.ok()) {
    EXPECT_EQ(*ReadFile(Path("to")), "content");
  } else {
    EXPECT_NE(access(Path("to").c_str(), F_OK), 0);
  }
}

TEST_F(CopiedFile, NeverReplacesAFile) {
  const std::string from = Write("from", "new"), to = Write("to", "old");
  EXPECT_FALSE(CopyFile(from, to).ok());
  EXPECT_FALSE(LinkFile(from, to).ok());
  EXPECT_EQ(*ReadFile(to), "old");
}

TEST_F(CopiedFile, RefusesPipesAndFolders) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0666), 0);
  EXPECT_FALSE(CopyFile(Path("pipe"), Path("to")).ok());
  EXPECT_FALSE(CopyFile(folder_, Path("to")).ok());
  EXPECT_TRUE(absl::IsNotFound(CopyFile(Path("missing"), Path("to"))));
  EXPECT_NE(access(Path("to").c_str(), F_OK), 0);
}

}  // namespace
}  // namespace requant::files_test
