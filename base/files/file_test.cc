#include "base/files/file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/testing/testing.h"

namespace requant::file_test {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_.Path(name); }

  ScratchFolder folder_;
};

using ReadFileTest = Files;

TEST_F(ReadFileTest, NamesAMissingFile) {
  const auto read = ReadFile(Path("absent"));
  EXPECT_TRUE(absl::IsNotFound(read.status()));
  EXPECT_THAT(read, FailsWith(HasSubstr("absent")));
}

TEST_F(ReadFileTest, RefusesADirectoryAndAFileOverTheLimit) {
  EXPECT_THAT(ReadFile(folder_.path()), FailsWith(HasSubstr("directory")));
  const std::string five = folder_.Write("five", "12345");
  EXPECT_EQ(ReadFile(five, 5).value(), "12345");
  EXPECT_TRUE(absl::IsOutOfRange(ReadFile(five, 4).status()));
}

using WriteFileTest = Files;

TEST_F(WriteFileTest, LeavesTheOldFileWhenTheWriterFails) {
  folder_.Write("kept", "old");
  EXPECT_THAT(
      WriteFileAtomically(Path("kept"),
                          [](int fd) {
                            EXPECT_EQ(write(fd, "new", 3), 3);
                            return absl::ResourceExhaustedError("disk full");
                          }),
      FailsWith(HasSubstr("kept: disk full")));
  EXPECT_EQ(folder_.Read("kept"), "old");
  EXPECT_THAT(folder_.Names(), ElementsAre("kept"));
}

TEST_F(WriteFileTest, FollowsASymbolicLink) {
  fs::create_symlink(folder_.Write("target", "old"), Path("link"));
  folder_.Write("link", "new");
  EXPECT_EQ(folder_.Read("target"), "new");
  EXPECT_TRUE(fs::is_symlink(Path("link")));
}

TEST_F(WriteFileTest, CreatesWhatALinkLeadsTo) {
  fs::create_symlink("fresh", Path("ahead"));
  folder_.Write("ahead", "new");
  EXPECT_EQ(folder_.Read("fresh"), "new");
}

TEST_F(WriteFileTest, KeepsTheModeOfTheOldFile) {
  fs::permissions(folder_.Write("private", "old"), fs::perms(0600));
  folder_.Write("private", "new");
  EXPECT_EQ(fs::status(Path("private")).permissions(), fs::perms(0600));
}

TEST_F(WriteFileTest, WritesIntoADeviceInsteadOfReplacingIt) {
  EXPECT_OK(WriteFileAtomically("/dev/null", "x"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(WriteFileTest, WritesIntoAnOpenDescriptorInsteadOfReplacingIt) {
  const int fd = open(Path("redirected").c_str(), O_RDWR | O_CREAT, 0666);
  ASSERT_GE(fd, 0);
  EXPECT_OK(WriteFileAtomically(absl::StrCat("/proc/self/fd/", fd), "xyz"));
  char text[4] = "";
  EXPECT_EQ(pread(fd, text, sizeof(text), 0), 3);
  EXPECT_STREQ(text, "xyz");
  EXPECT_EQ(folder_.Read("redirected"), "xyz");
  close(fd);
}

TEST_F(WriteFileTest, IsForeseen) {
  EXPECT_OK(CheckWritable(Path("new")));
  EXPECT_OK(CheckWritable("/dev/null"));
  EXPECT_TRUE(absl::IsNotFound(CheckWritable(Path("no/such/dir"))));
  EXPECT_TRUE(absl::IsNotFound(WriteFileAtomically(Path("no/such/dir"), "x")));
  EXPECT_THAT(CheckWritable(folder_.path()), FailsWith(HasSubstr("directory")));
  EXPECT_THAT(folder_.Names(), IsEmpty());
}

TEST_F(WriteFileTest, WritesNoneOfSeveralWhenOneFails) {
  EXPECT_THAT(WriteFilesAtomically(
                  {{Path("first"), [](int) { return absl::OkStatus(); }},
                   {Path("second"),
                    [](int) { return absl::DataLossError("no rows"); }}}),
              FailsWith(HasSubstr("second: no rows")));
  EXPECT_THAT(folder_.Names(), IsEmpty());
}

// Interrupts this process while it writes to `path`.
[[noreturn]] void WriteInterrupted(const std::string& path) {
  CleanUpWhenInterrupted("prog");
  (void)WriteFileAtomically(path, [](int) {
    raise(SIGTERM);
    return absl::OkStatus();
  });
  _exit(0);
}

using InterruptedDeathTest = Files;

TEST_F(InterruptedDeathTest, LeavesNothing) {
  EXPECT_EXIT(WriteInterrupted(Path("out")),
              testing::ExitedWithCode(128 + SIGTERM),
              "^prog: interrupted; nothing was written\n$");
  EXPECT_THAT(folder_.Names(), IsEmpty());
}

TEST_F(InterruptedDeathTest, DoesNotHideWhatWasWritten) {
  EXPECT_EXIT(WriteInterrupted("/dev/null"),
              testing::ExitedWithCode(128 + SIGTERM), "^prog: interrupted\n$");
}

using CheckDistinctTest = Files;

TEST_F(CheckDistinctTest, RefusesAnInputAsOutputByAnyName) {
  fs::create_hard_link(folder_.Write("in", "x"), Path("hard"));
  fs::create_symlink("in", Path("soft"));
  for (const char* name : {"in", "hard", "soft", "./in"}) {
    EXPECT_THAT(CheckDistinct({Path("other"), Path("in")}, {Path(name)}),
                FailsWith(HasSubstr("it is also read")))
        << name;
  }
  EXPECT_OK(CheckDistinct({Path("in")}, {Path("out")}));
}

TEST_F(CheckDistinctTest, RefusesTwoOutputsThatAreOneFileYetToBeMade) {
  EXPECT_THAT(CheckDistinct({}, {Path("new"), Path("./new")}),
              FailsWith(HasSubstr("two outputs")));
  EXPECT_OK(CheckDistinct({}, {Path("new"), Path("newer")}));
  EXPECT_OK(CheckDistinct({"/dev/null"}, {"/dev/null", "/dev/null"}));
}

TEST_F(Files, ThatArePipesAreRefused) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0666), 0);
  EXPECT_THAT(CheckRegular(Path("pipe")),
              FailsWith(HasSubstr("no regular file")));
  EXPECT_OK(CheckRegular(Path("absent")));
}

TEST_F(Files, InATreeAreRemovedWithIt) {
  folder_.Write("tree/below/file", "x");
  RemoveTree(Path("tree"));
  EXPECT_THAT(folder_.Names(), IsEmpty());
}

}  // namespace
}  // namespace requant::file_test
