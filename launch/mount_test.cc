#include "launch/mount.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace requant::launch::mount_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST(ParseVolume, ReadsSourceTargetAndMode) {
  struct Case {
    const char* text;
    Mount mount;
  };
  for (const auto& [text, mount] :
       std::vector<Case>{{"data:/data", {"data", "/data", false}},
                         {"/a:/b:ro", {"/a", "/b", true}},
                         {"/a:/b:rw", {"/a", "/b", false}},
                         // The source has colons, and the target is normalized.
                         {"/a:b/c:d:/e:ro", {"/a:b/c:d", "/e", true}},
                         {"a:/b//c/../d/", {"a", "/b/d", false}},
                         {"a:/b/../..", {"a", "/", false}}}) {
    const Result<Mount> volume = ParseVolume(text);
    ASSERT_TRUE(volume.ok()) << text;
    EXPECT_EQ(volume->source, mount.source);
    EXPECT_EQ(volume->target, mount.target);
    EXPECT_EQ(volume->read_only, mount.read_only) << text;
  }
}

TEST(ParseVolume, RefusesWhatHasNoAbsoluteTarget) {
  for (const char* text : {"", "a", "/a", "a:", ":/b", "a:b", "a:ro", ":ro"}) {
    const Result<Mount> volume = ParseVolume(text);
    ASSERT_FALSE(volume.ok()) << text;
    EXPECT_THAT(volume.failure().message, HasSubstr("SRC:DST"));
  }
  EXPECT_FALSE(ParseVolume("a:/b\r\nc").ok());
}

std::string TargetProblem(const std::vector<Mount>& volumes,
                          const std::string& model_dir = "") {
  const std::optional<Failure> failure = CheckTargets(volumes, model_dir);
  return failure.has_value() ? failure->message : "";
}

TEST(CheckTargets, AcceptsWhatIsInNobodysWay) {
  EXPECT_EQ(TargetProblem({{"/a", "/data"}, {"/b", "/data2"}}), "");
  EXPECT_EQ(TargetProblem({{"/a", "/workspace/tensorflow/data"}}), "");
  EXPECT_EQ(TargetProblem({{"/a", "/workspace/quantization2"}}), "");
}

TEST(CheckTargets, RefusesFoldersThatAreTaken) {
  const std::map<std::string, std::string> problems = {
      {"/workspace/quantization", "which is taken"},
      {"/workspace/tensorflow", "which is taken"},
      {"/tmp", "which is taken"},
      {"/workspace", "would hide"},
      {"/", "own root"},
      {"/proc", "the kernel"},
      {"/proc/self", "the kernel"},
      {"/sys", "the kernel"},
      {"/dev/shm", "the kernel"}};
  for (const auto& [target, problem] : problems) {
    EXPECT_THAT(TargetProblem({{"/a", target}}), HasSubstr(problem)) << target;
  }
  EXPECT_THAT(TargetProblem({{"/a", "/data"}, {"/b", "/data"}}),
              HasSubstr("another"));
}

// The engine would create a folder in the user's directory, owned by root.
TEST(CheckTargets, BelowTheModelOnlyWhereThereIsAFolder) {
  const std::string model = testing::TempDir() + "/check_targets_model";
  fs::create_directories(model + "/data");
  EXPECT_EQ(TargetProblem({{"/a", "/workspace/quantization/data"}}, model), "");
  EXPECT_NE(TargetProblem({{"/a", "/workspace/quantization/other"}}, model),
            "");
}

TEST(CheckName, AcceptsWhatPeopleCallTheirFiles) {
  for (const char* name :
       {"/a b", "/$(x)`y`;&|<>*?[]{}!#~", "/it's \"it\"", "/a,b:c=d",
        "/Größe/模型/😀", "/a\\b", "/a\nb\tc\rd", ""}) {
    EXPECT_FALSE(CheckName(name).has_value()) << name;
  }
}

TEST(CheckName, RefusesWhatEnginesWouldChange) {
  for (const char* name :
       {"/a\r\nb", "/a\xff", "/a\xc3", "/a\xc0\x80", "/a\xe0\x80\x80",
        "/a\xed\xa0\x80", "/a\xf4\x90\x80\x80", "/a\xf8\x88\x80\x80\x80",
        "/a\x80"}) {
    EXPECT_TRUE(CheckName(name).has_value()) << name;
  }
}

struct stat File(mode_t mode, uid_t uid, gid_t gid) {
  struct stat file = {};
  file.st_mode = mode;
  file.st_uid = uid;
  file.st_gid = gid;
  return file;
}

TEST(ModeAllows, LooksAtTheBitsOfTheOwnerOrTheGroupOrOthers) {
  const Identity owner{1000, 1000, {}};
  EXPECT_TRUE(ModeAllows(File(0700, 1000, 1000), owner, 7));
  EXPECT_FALSE(ModeAllows(File(0500, 1000, 1000), owner, 2));
  EXPECT_FALSE(ModeAllows(File(0077, 1000, 1000), owner, 4));
  const Identity member{1000, 1000, {27, 50}};
  EXPECT_TRUE(ModeAllows(File(0070, 0, 50), member, 7));
  EXPECT_TRUE(ModeAllows(File(0070, 0, 1000), member, 7));
  EXPECT_FALSE(ModeAllows(File(0707, 0, 50), member, 4));
  EXPECT_FALSE(ModeAllows(File(0070, 0, 51), member, 4));
  // The container's root has no capabilities.
  EXPECT_FALSE(ModeAllows(File(0755, 1000, 1000), {0, 0, {}}, 2));
}

TEST(CallingUser, IsWhoCalledSudo) {
  unsetenv("SUDO_UID");
  unsetenv("SUDO_GID");
  EXPECT_EQ(CallingUser().uid, geteuid());
  EXPECT_EQ(CallingUser().gid, getegid());
  setenv("SUDO_UID", "1234", 1);
  setenv("SUDO_GID", "5678", 1);
  // Anyone can set these variables; they matter for root only.
  EXPECT_EQ(CallingUser().uid, geteuid() == 0 ? 1234 : geteuid());
  EXPECT_EQ(CallingUser().gid, geteuid() == 0 ? 5678 : getegid());
  setenv("SUDO_UID", "nobody", 1);
  EXPECT_EQ(CallingUser().uid, geteuid());
}

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

  // Returns the error for a directory with that mode.
  std::string ModeProblem(mode_t mode) {
    fs::create_directories(Path("model"));
    chmod(Path("model").c_str(), mode);
    const std::optional<Failure> failure =
        CheckModelDirectory(Path("model"), me_, &warning_);
    return failure.has_value() ? failure->message : "";
  }

  fs::path folder_;
  Identity me_;
  std::string warning_;
};

TEST_F(HostPathTest, ResolvesSymlinksAndRelativePaths) {
  fs::create_directories(Path("real model"));
  fs::create_symlink("real model", Path("link"));
  const Result<std::string> path = ResolvePath("--volume", Path("x/../link/."));
  EXPECT_FALSE(path.ok()) << "x does not exist";
  EXPECT_EQ(*ResolvePath("--volume", Path("link/./")), Path("real model"));
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  EXPECT_EQ(*ResolvePath("--volume", "link"), Path("real model"));
  fs::current_path(before);
}

TEST_F(HostPathTest, SaysWhyAPathCannotBeResolved) {
  std::ofstream(Path("file")) << "x";
  EXPECT_THAT(Problem(Path("none")), HasSubstr("does not exist: check"));
  EXPECT_THAT(Problem(Path("file/x")), HasSubstr("a part of it is a file"));
  EXPECT_THAT(Problem("~/model"), HasSubstr("$HOME"));
  EXPECT_THAT(Problem(Path(std::string(300, 'x'))), HasSubstr("too long"));
  EXPECT_THAT(Problem(""), HasSubstr("empty"));
  fs::create_symlink("b", Path("a"));
  fs::create_symlink("a", Path("b"));
  EXPECT_THAT(Problem(Path("a")), HasSubstr("lead in a circle"));
  fs::create_directories(Path("a\xff"));
  EXPECT_THAT(Problem(Path("a\xff")), HasSubstr("not valid UTF-8"));
  fs::create_directories(Path("a\r\nb"));
  EXPECT_THAT(Problem(Path("a\r\nb")), HasSubstr("carriage return"));
}

TEST_F(HostPathTest, LooksAtWhatTheDirectoryAllows) {
  EXPECT_THAT(CheckModelDirectory("/", me_, &warning_)->message,
              HasSubstr("this whole machine"));
  EXPECT_EQ(ModeProblem(0700), "");
  EXPECT_THAT(ModeProblem(0300), HasSubstr("cannot be read by user"));
  EXPECT_THAT(ModeProblem(0600), HasSubstr("cannot be read by user"));
  EXPECT_EQ(warning_, "");
  EXPECT_EQ(ModeProblem(0500), "");
  EXPECT_THAT(warning_, HasSubstr("cannot be written by user"));
}

}  // namespace
}  // namespace requant::launch::mount_test
