#include "launch/host_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace requant::launch::host_path_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class HostPathTest : public testing::Test {
 protected:
  HostPathTest() {
    folder_ = fs::canonical(testing::TempDir()) / "host_path_test";
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    me_ = CallingUser();
  }
  ~HostPathTest() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ / name; }

  std::string Problem(const std::string& name) const {
    const Result<std::string> path = ResolvePath("--volume", name);
    return path.ok() ? "" : path.failure().message;
  }

  // Of a directory with that mode.
  std::string ModeProblem(mode_t mode) {
    fs::create_directories(Path("model"));
    chmod(Path("model").c_str(), mode);
    const std::optional<Failure> failure =
        CheckModelDirectory(Path("model"), me_, &warnings_);
    return failure.has_value() ? failure->message : "";
  }

  fs::path folder_;
  Identity me_;
  std::vector<std::string> warnings_;
};

TEST_F(HostPathTest, ResolvesSymlinksAndRelativePaths) {
  fs::create_directories(Path("real model"));
  fs::create_symlink("real model", Path("link"));
  const Result<std::string> path = ResolvePath("--volume", Path("x/../link/."));
  EXPECT_FALSE(path.ok()) << "x does not exist";
  EXPECT_EQ(*ResolvePath("--volume", Path("link/./")), Path("real model"));
  fs::current_path(folder_);
  EXPECT_EQ(*ResolvePath("--volume", "link"), Path("real model"));
}

TEST_F(HostPathTest, SaysWhyAPathCannotBeResolved) {
  fs::create_symlink("b", Path("a"));
  fs::create_symlink("a", Path("b"));
  std::ofstream(Path("file")) << "x";
  EXPECT_THAT(Problem(Path("a")), HasSubstr("lead in a circle"));
  EXPECT_THAT(Problem(Path("none")), HasSubstr("does not exist: check"));
  EXPECT_THAT(Problem(Path("file/x")), HasSubstr("a part of it is a file"));
  EXPECT_THAT(Problem("~/model"), HasSubstr("$HOME"));
  EXPECT_THAT(Problem(Path(std::string(300, 'x'))), HasSubstr("too long"));
  EXPECT_THAT(Problem(""), HasSubstr("empty"));
}

TEST_F(HostPathTest, RefusesNamesThatEnginesCannotMount) {
  fs::create_directories(Path("a\r\nb"));
  EXPECT_THAT(Problem(Path("a\r\nb")), HasSubstr("carriage return"));
  fs::create_directories(Path("a\xff"));
  EXPECT_THAT(Problem(Path("a\xff")), HasSubstr("not valid UTF-8"));
}

TEST_F(HostPathTest, AcceptsADirectoryThatCanBeWritten) {
  EXPECT_EQ(ModeProblem(0700), "");
  EXPECT_THAT(warnings_, testing::Each(HasSubstr("left")));
}

TEST_F(HostPathTest, RefusesADirectoryThatCannotBeReadOrSearched) {
  EXPECT_THAT(ModeProblem(0300), HasSubstr("cannot be read by user"));
  EXPECT_THAT(ModeProblem(0600), HasSubstr("cannot be read by user"));
}

TEST_F(HostPathTest, WarnsOfADirectoryThatCannotBeWritten) {
  EXPECT_EQ(ModeProblem(0500), "");
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("cannot be written by user")));
}

TEST_F(HostPathTest, RefusesFilesAndTheRoot) {
  std::ofstream(Path("file")) << "x";
  EXPECT_THAT(CheckModelDirectory(Path("file"), me_, &warnings_)->message,
              HasSubstr("is not a directory"));
  EXPECT_THAT(CheckModelDirectory("/", me_, &warnings_)->message,
              HasSubstr("whole machine"));
}

struct statvfs Disk(fsblkcnt_t free_blocks) {
  struct statvfs disk = {};
  disk.f_frsize = 4096;
  disk.f_blocks = 1 << 20;
  disk.f_bavail = free_blocks;
  disk.f_files = 1000;
  disk.f_favail = 10;
  return disk;
}

TEST(CheckSpace, RefusesAFullDisk) {
  std::vector<std::string> warnings;
  EXPECT_THAT(CheckSpace("/m", Disk(10), &warnings)->message,
              HasSubstr("is full"));
  struct statvfs no_files = Disk(1 << 20);
  no_files.f_favail = 0;
  EXPECT_THAT(CheckSpace("/m", no_files, &warnings)->message,
              HasSubstr("no more files"));
}

TEST(CheckSpace, WarnsWhenLittleIsLeft) {
  std::vector<std::string> warnings;
  EXPECT_FALSE(CheckSpace("/m", Disk(25600), &warnings).has_value());
  EXPECT_THAT(warnings, ElementsAre("the disk of /m has only 100 MB left"));
}

TEST(CheckSpace, IsContentWithEnoughAndWithDisksThatDoNotCount) {
  std::vector<std::string> warnings;
  EXPECT_FALSE(CheckSpace("/m", Disk(1 << 20), &warnings).has_value());
  EXPECT_FALSE(CheckSpace("/m", {}, &warnings).has_value());
  EXPECT_THAT(warnings, IsEmpty());
}

}  // namespace
}  // namespace requant::launch::host_path_test
