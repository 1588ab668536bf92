#include "base/files/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/files/sha256.h"
#include "base/testing/testing.h"

namespace requant::files_test {
namespace {

namespace fs = std::filesystem;

class FilesBelowTest : public testing::Test {
 protected:
  FilesBelowTest() {
    fs::create_directories(folder_ / "assets/empty");
    home_.Write("b", "four");
    home_.Write("assets/a", "seven..");
  }

  // Checks what callers that only look at the files see.
  void ExpectTheSameFiles() const {
    ASSERT_OK_AND_ASSIGN(const auto files,
                         FilesBelow(folder_, nullptr, OtherEntries::kLeaveOut));
    EXPECT_THAT(files, ElementsAre("assets/a", "b"));
    ASSERT_OK_AND_ASSIGN(const auto bytes, BytesOf(folder_));
    EXPECT_EQ(bytes, 11);
    ASSERT_OK_AND_ASSIGN(const auto digest, DigestOfPath(folder_));
    EXPECT_EQ(digest.bytes, 11);
    EXPECT_OK(ContentHash().AddFile(folder_));
  }

  ScratchFolder home_;
  const fs::path folder_ = home_.path();
};

TEST_F(FilesBelowTest, HasFilesAndFolders) {
  std::vector<std::string> folders;
  ASSERT_OK_AND_ASSIGN(const auto files, FilesBelow(folder_, &folders));
  EXPECT_THAT(files, ElementsAre("assets/a", "b"));
  EXPECT_THAT(folders, ElementsAre("assets", "assets/empty"));
  ExpectTheSameFiles();
}

TEST_F(FilesBelowTest, FollowsLinks) {
  fs::create_symlink("b", folder_ / "c");
  ASSERT_OK_AND_ASSIGN(const auto files, FilesBelow(folder_));
  EXPECT_THAT(files, ElementsAre("assets/a", "b", "c"));
}

TEST_F(FilesBelowTest, RefusesLinksToNothingAndToEachOther) {
  fs::create_symlink("gone", folder_ / "assets/vocabulary");
  EXPECT_THAT(FilesBelow(folder_),
              FailsWith(HasSubstr("assets/vocabulary is a link to nothing")));
  ExpectTheSameFiles();
  fs::remove(folder_ / "assets/vocabulary");
  fs::create_symlink("two", folder_ / "one");
  fs::create_symlink("one", folder_ / "two");
  EXPECT_THAT(FilesBelow(folder_),
              FailsWith(HasSubstr(" is a link to nothing")));
  ExpectTheSameFiles();
}

TEST_F(FilesBelowTest, RefusesAPipe) {
  ASSERT_EQ(mkfifo((folder_ / "assets/pipe").c_str(), 0600), 0);
  EXPECT_THAT(FilesBelow(folder_),
              FailsWith(EndsWith("assets/pipe is neither a file nor a folder; "
                                 "remove it")));
  ExpectTheSameFiles();
}

TEST_F(FilesBelowTest, RefusesALinkToAFolderAroundIt) {
  fs::create_directory_symlink("..", folder_ / "assets/up");
  EXPECT_THAT(FilesBelow(folder_),
              FailsWith(HasSubstr("is a link to a folder that it is in")));
}

TEST_F(FilesBelowTest, BytesAreOfAFileToo) {
  EXPECT_EQ(BytesOf(folder_ / "b").value_or(0), 4);
  EXPECT_FALSE(BytesOf(folder_ / "gone").ok());
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_FALSE(BytesOf(folder_ / "pipe").ok());
}

class CopiedFile : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_.Path(name); }

  ScratchFolder folder_;
};

using MatchingFilesTest = CopiedFile;

TEST_F(MatchingFilesTest, AreSortedByName) {
  for (const char* name : {"b.x", "a.x", "B.x", "c.y"}) folder_.Write(name, "");
  EXPECT_THAT(MatchingFiles(Path("*.x")),
              ElementsAre(Path("B.x"), Path("a.x"), Path("b.x")));
  EXPECT_THAT(MatchingFiles(Path("*.z")), IsEmpty());
}

TEST_F(CopiedFile, KeepsContentAndPermissions) {
  for (const std::string& content :
       {std::string(3'000'001, 'x'), std::string()}) {
    const std::string from = folder_.Write("from", content);
    fs::permissions(from, fs::perms(0640));
    EXPECT_OK(CopyFile(from, Path("to")));
    EXPECT_EQ(folder_.Read("to"), content);
    EXPECT_EQ(fs::status(Path("to")).permissions(), fs::perms(0640));
    EXPECT_FALSE(fs::equivalent(Path("to"), from));
    fs::remove(Path("to"));
  }
}

TEST_F(CopiedFile, KeepsHoles) {
  constexpr off_t kSize = int64_t{5} << 30;
  constexpr off_t kPlace = int64_t{3} << 30;
  const std::string from = folder_.Write("from", "");
  const int fd = open(from.c_str(), O_WRONLY);
  ASSERT_EQ(ftruncate(fd, kSize), 0);
  ASSERT_EQ(pwrite(fd, "middle", 6, kPlace), 6);
  close(fd);
  ASSERT_OK(CopyFile(from, Path("to")));
  EXPECT_EQ(fs::file_size(Path("to")), kSize);
  EXPECT_LT(AllocatedBytes(Path("to")), 1 << 20);
  char text[6];
  const int copy = open(Path("to").c_str(), O_RDONLY);
  EXPECT_EQ(pread(copy, text, 6, kPlace), 6);
  close(copy);
  EXPECT_EQ(std::string(text, 6), "middle");
}

TEST_F(CopiedFile, FollowsLinks) {
  folder_.Write("real", "content");
  fs::create_symlink("real", Path("from"));
  ASSERT_OK(CopyFile(Path("from"), Path("copy")));
  ASSERT_OK(LinkFile(Path("from"), Path("link")));
  EXPECT_EQ(folder_.Read("copy"), "content");
  EXPECT_TRUE(fs::equivalent(Path("link"), Path("real")));
  EXPECT_FALSE(fs::is_symlink(Path("link")));
}

// Few file systems support this; those that fail must leave nothing behind.
TEST_F(CopiedFile, IsClonedWholeOrNotAtAll) {
  if (CloneFile(folder_.Write("from", "content"), Path("to")).ok()) {
    EXPECT_EQ(folder_.Read("to"), "content");
  } else {
    EXPECT_THAT(folder_.Names(), ElementsAre("from"));
  }
}

TEST_F(CopiedFile, NeverReplacesAFile) {
  const std::string from = folder_.Write("from", "new");
  const std::string to = folder_.Write("to", "old");
  EXPECT_FALSE(CopyFile(from, to).ok());
  EXPECT_FALSE(LinkFile(from, to).ok());
  EXPECT_EQ(folder_.Read("to"), "old");
}

TEST_F(CopiedFile, RefusesPipesAndFolders) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0666), 0);
  EXPECT_FALSE(CopyFile(Path("pipe"), Path("to")).ok());
  EXPECT_FALSE(CopyFile(folder_.path(), Path("to")).ok());
  EXPECT_TRUE(absl::IsNotFound(CopyFile(Path("missing"), Path("to"))));
  EXPECT_THAT(folder_.Names(), ElementsAre("pipe"));
}

}  // namespace
}  // namespace requant::files_test
