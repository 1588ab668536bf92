#include "base/files/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "absl/status/status.h"

namespace requant::file_test {
namespace {

std::string Path(const std::string& name) { return testing::TempDir() + name; }

TEST(ReadFile, NamesAMissingFile) {
  const auto read = ReadFile(Path("absent"));
  EXPECT_EQ(read.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(read.status().message().find("absent"), std::string::npos);
}

TEST(ReadFile, RefusesADirectoryAndAFileOverTheLimit) {
  EXPECT_NE(ReadFile(testing::TempDir()).status().message().find("directory"),
            std::string::npos);
  ASSERT_TRUE(WriteFileAtomically(Path("five"), "12345").ok());
  EXPECT_EQ(ReadFile(Path("five"), 5).value(), "12345");
  EXPECT_EQ(ReadFile(Path("five"), 4).status().code(),
            absl::StatusCode::kOutOfRange);
}

TEST(WriteFileAtomically, LeavesTheOldFileWhenTheWriterFails) {
  ASSERT_TRUE(WriteFileAtomically(Path("kept"), "old").ok());
  const auto status = WriteFileAtomically(Path("kept"), [](int fd) {
    EXPECT_EQ(write(fd, "new", 3), 3);
    return absl::ResourceExhaustedError("disk full");
  });
  EXPECT_NE(status.message().find("kept: disk full"), std::string::npos);
  EXPECT_EQ(ReadFile(Path("kept")).value(), "old");
  EXPECT_NE(access(TemporaryName(Path("kept"), getpid()).c_str(), F_OK), 0);
}

TEST(WriteFileAtomically, FollowsASymbolicLink) {
  ASSERT_TRUE(WriteFileAtomically(Path("target"), "old").ok());
  unlink(Path("link").c_str());
  ASSERT_EQ(symlink(Path("target").c_str(), Path("link").c_str()), 0);
  ASSERT_TRUE(WriteFileAtomically(Path("link"), "new").ok());
  EXPECT_EQ(ReadFile(Path("target")).value(), "new");
  struct stat info;
  ASSERT_EQ(lstat(Path("link").c_str(), &info), 0);
  EXPECT_TRUE(S_ISLNK(info.st_mode));
}

TEST(WriteFileAtomically, CreatesWhatALinkLeadsTo) {
  unlink(Path("fresh").c_str());
  unlink(Path("ahead").c_str());
  ASSERT_EQ(symlink("fresh", Path("ahead").c_str()), 0);
  ASSERT_TRUE(WriteFileAtomically(Path("ahead"), "new").ok());
  EXPECT_EQ(ReadFile(Path("fresh")).value(), "new");
}

TEST(WriteFileAtomically, KeepsTheModeOfTheOldFile) {
  ASSERT_TRUE(WriteFileAtomically(Path("private"), "old").ok());
  ASSERT_EQ(chmod(Path("private").c_str(), 0600), 0);
  ASSERT_TRUE(WriteFileAtomically(Path("private"), "new").ok());
  struct stat info;
  ASSERT_EQ(stat(Path("private").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600);
}

TEST(WriteFileAtomically, WritesIntoADeviceInsteadOfReplacingIt) {
  ASSERT_TRUE(WriteFileAtomically("/dev/null", "x").ok());
  struct stat info;
  ASSERT_EQ(stat("/dev/null", &info), 0);
  EXPECT_TRUE(S_ISCHR(info.st_mode));
}

TEST(WriteFileAtomically, WritesIntoAnOpenDescriptorInsteadOfReplacingIt) {
  const std::string path = Path("redirected");
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0666);
  ASSERT_GE(fd, 0);
  ASSERT_TRUE(
      WriteFileAtomically("/proc/self/fd/" + std::to_string(fd), "xyz").ok());
  struct stat by_name, by_descriptor;
  ASSERT_EQ(stat(path.c_str(), &by_name), 0);
  ASSERT_EQ(fstat(fd, &by_descriptor), 0);
  EXPECT_EQ(by_name.st_ino, by_descriptor.st_ino);
  EXPECT_EQ(ReadFile(path).value(), "xyz");
  close(fd);
}

TEST(CheckWritable, ForeseesWhatWritingWouldSay) {
  EXPECT_TRUE(CheckWritable(Path("new")).ok());
  EXPECT_TRUE(CheckWritable("/dev/null").ok());
  EXPECT_EQ(CheckWritable(Path("no/such/dir")).code(),
            absl::StatusCode::kNotFound);
  EXPECT_NE(CheckWritable(testing::TempDir()).message().find("directory"),
            std::string::npos);
  EXPECT_NE(access(Path("new").c_str(), F_OK), 0);
}

TEST(WriteFileAtomically, NamesAMissingDirectory) {
  EXPECT_EQ(WriteFileAtomically(Path("no/such/dir"), "x").code(),
            absl::StatusCode::kNotFound);
}

TEST(WriteFilesAtomically, WritesNoneWhenOneFails) {
  unlink(Path("first").c_str());
  const auto status = WriteFilesAtomically(
      {{Path("first"), [](int) { return absl::OkStatus(); }},
       {Path("second"), [](int) { return absl::DataLossError("no rows"); }}});
  EXPECT_NE(status.message().find("second: no rows"), std::string::npos);
  EXPECT_NE(access(Path("first").c_str(), F_OK), 0);
  EXPECT_NE(access(TemporaryName(Path("first"), getpid()).c_str(), F_OK), 0);
}

// Interrupts itself while it writes to `path`.
[[noreturn]] void WriteInterrupted(const std::string& path) {
  CleanUpWhenInterrupted("prog");
  (void)WriteFileAtomically(path, [](int) {
    raise(SIGTERM);
    return absl::OkStatus();
  });
  _exit(0);
}

TEST(CleanUpWhenInterruptedDeathTest, LeavesNothing) {
  const std::string folder = Path("interrupted");
  mkdir(folder.c_str(), 0777);
  EXPECT_EXIT(WriteInterrupted(folder + "/out"),
              testing::ExitedWithCode(128 + SIGTERM),
              "^prog: interrupted; nothing was written\n$");
  EXPECT_EQ(rmdir(folder.c_str()), 0) << "something is left";
}

TEST(CleanUpWhenInterruptedDeathTest, DoesNotHideWhatWasWritten) {
  EXPECT_EXIT(WriteInterrupted("/dev/null"),
              testing::ExitedWithCode(128 + SIGTERM), "^prog: interrupted\n$");
}

TEST(CheckDistinct, RefusesAnInputAsOutputByAnyName) {
  ASSERT_TRUE(WriteFileAtomically(Path("in"), "x").ok());
  unlink(Path("hard").c_str());
  unlink(Path("soft").c_str());
  ASSERT_EQ(link(Path("in").c_str(), Path("hard").c_str()), 0);
  ASSERT_EQ(symlink("in", Path("soft").c_str()), 0);
  for (const char* name : {"in", "hard", "soft", "./in"}) {
    const auto status = CheckDistinct({Path("other"), Path("in")},
                                      {Path(std::string("/") + name)});
    EXPECT_NE(status.message().find("it is also read"), std::string::npos)
        << name;
  }
  EXPECT_TRUE(CheckDistinct({Path("in")}, {Path("out")}).ok());
}

TEST(CheckDistinct, RefusesTwoOutputsThatAreOneFileYetToBeMade) {
  EXPECT_NE(CheckDistinct({}, {Path("new"), Path("./new")})
                .message()
                .find("two outputs"),
            std::string::npos);
  EXPECT_TRUE(CheckDistinct({}, {Path("new"), Path("newer")}).ok());
  EXPECT_TRUE(CheckDistinct({"/dev/null"}, {"/dev/null", "/dev/null"}).ok());
}

TEST(CheckRegular, RefusesAPipe) {
  unlink(Path("pipe").c_str());
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0666), 0);
  EXPECT_NE(CheckRegular(Path("pipe")).message().find("no regular file"),
            std::string::npos);
  EXPECT_TRUE(CheckRegular(Path("absent")).ok());
}

TEST(RemoveTree, RemovesAFolderWithAllInIt) {
  const std::string folder = testing::TempDir() + "tree";
  std::filesystem::create_directories(folder + "/below");
  ASSERT_TRUE(WriteFileAtomically(folder + "/below/file", "x").ok());
  RemoveTree(folder);
  EXPECT_FALSE(std::filesystem::exists(folder));
}

}  // namespace
}  // namespace requant::file_test
