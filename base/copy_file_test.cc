#include "base/copy_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "base/file.h"

namespace requant {
namespace {

class CopyFile : public testing::Test {
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

TEST_F(CopyFile, KeepsContentAndPermissions) {
  const std::string content(3'000'001, 'x');
  const std::string from = Write("from", content);
  ASSERT_EQ(chmod(from.c_str(), 0640), 0);
  const auto placed = CloneOrCopyFile(from, Path("to"));
  ASSERT_TRUE(placed.ok()) << placed.status();
  EXPECT_EQ(*ReadFile(Path("to")), content);
  EXPECT_EQ(Info(Path("to")).st_mode & 0777, 0640);
  EXPECT_NE(Info(Path("to")).st_ino, Info(from).st_ino);
}

TEST_F(CopyFile, CopiesAnEmptyFile) {
  const auto placed = CloneOrCopyFile(Write("from", ""), Path("to"));
  ASSERT_TRUE(placed.ok()) << placed.status();
  EXPECT_EQ(*ReadFile(Path("to")), "");
}

TEST_F(CopyFile, KeepsHoles) {
  constexpr off_t kSize = int64_t{5} << 30;
  constexpr off_t kPlace = int64_t{3} << 30;
  const std::string from = Write("from", "");
  const int fd = open(from.c_str(), O_WRONLY);
  ASSERT_EQ(ftruncate(fd, kSize), 0);
  ASSERT_EQ(pwrite(fd, "middle", 6, kPlace), 6);
  close(fd);
  const auto placed = CloneOrCopyFile(from, Path("to"));
  ASSERT_TRUE(placed.ok()) << placed.status();
  EXPECT_EQ(Info(Path("to")).st_size, kSize);
  EXPECT_LT(AllocatedBytes(Path("to")), 1 << 20);
  char text[6];
  const int copy = open(Path("to").c_str(), O_RDONLY);
  EXPECT_EQ(pread(copy, text, 6, kPlace), 6);
  close(copy);
  EXPECT_EQ(std::string(text, 6), "middle");
}

TEST_F(CopyFile, FollowsLinks) {
  Write("real", "content");
  ASSERT_EQ(symlink("real", Path("from").c_str()), 0);
  ASSERT_TRUE(CloneOrCopyFile(Path("from"), Path("copy")).ok());
  ASSERT_TRUE(LinkFile(Path("from"), Path("link")).ok());
  EXPECT_EQ(*ReadFile(Path("copy")), "content");
  EXPECT_EQ(Info(Path("link")).st_ino, Info(Path("real")).st_ino);
  struct stat info;
  ASSERT_EQ(lstat(Path("link").c_str(), &info), 0);
  EXPECT_TRUE(S_ISREG(info.st_mode));
}

TEST_F(CopyFile, NeverReplacesAFile) {
  const std::string from = Write("from", "new"), to = Write("to", "old");
  EXPECT_FALSE(CloneOrCopyFile(from, to).ok());
  EXPECT_FALSE(LinkFile(from, to).ok());
  EXPECT_EQ(*ReadFile(to), "old");
}

TEST_F(CopyFile, RefusesPipesAndFolders) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0666), 0);
  EXPECT_FALSE(CloneOrCopyFile(Path("pipe"), Path("to")).ok());
  EXPECT_FALSE(CloneOrCopyFile(folder_, Path("to")).ok());
  EXPECT_TRUE(absl::IsNotFound(
      CloneOrCopyFile(Path("missing"), Path("to")).status()));
  EXPECT_NE(access(Path("to").c_str(), F_OK), 0);
}

}  // namespace
}  // namespace requant
