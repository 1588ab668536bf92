#include "launch/mount.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace requant::launch::mount_test {
namespace {

using Parts = std::vector<std::string>;

TEST(SplitList, SplitsAtCommasThatHaveNoBackslash) {
  EXPECT_EQ(SplitList("a"), Parts({"a"}));
  EXPECT_EQ(SplitList("a,b,c"), Parts({"a", "b", "c"}));
  EXPECT_EQ(SplitList("a\\,b,c\\d"), Parts({"a,b", "c\\d"}));
  EXPECT_EQ(SplitList(""), Parts({""}));
  EXPECT_EQ(SplitList("a,"), Parts({"a", ""}));
}

TEST(ParseVolume, ReadsSourceTargetAndMode) {
  const Result<Mount> plain = ParseVolume("data:/data");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->source, "data");
  EXPECT_EQ(plain->target, "/data");
  EXPECT_FALSE(plain->read_only);
  EXPECT_TRUE(ParseVolume("/a:/b:ro")->read_only);
  EXPECT_FALSE(ParseVolume("/a:/b:rw")->read_only);
}

TEST(ParseVolume, LeavesColonsToTheSource) {
  const Result<Mount> volume = ParseVolume("/a:b/c:d:/e:ro");
  ASSERT_TRUE(volume.ok());
  EXPECT_EQ(volume->source, "/a:b/c:d");
  EXPECT_EQ(volume->target, "/e");
}

TEST(ParseVolume, NormalizesTheTarget) {
  EXPECT_EQ(ParseVolume("a:/b//c/../d/")->target, "/b/d");
  EXPECT_EQ(ParseVolume("a:/b/../..")->target, "/");
}

TEST(ParseVolume, RefusesWhatHasNoAbsoluteTarget) {
  for (const char* text : {"", "a", "/a", "a:", ":/b", "a:b", "a:ro", ":ro"}) {
    const Result<Mount> volume = ParseVolume(text);
    ASSERT_FALSE(volume.ok()) << text;
    EXPECT_NE(volume.failure().message.find("SRC:DST"), std::string::npos);
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

TEST(CheckTargets, RefusesTheRecipesOwnFolders) {
  for (const char* target :
       {"/workspace/quantization", "/workspace/tensorflow", "/tmp"}) {
    EXPECT_NE(TargetProblem({{"/a", target}}).find("which is taken"),
              std::string::npos)
        << target;
  }
  EXPECT_NE(TargetProblem({{"/a", "/workspace"}}).find("would hide"),
            std::string::npos);
}

TEST(CheckTargets, RefusesTheSystemsFoldersAndTheRoot) {
  for (const char* target : {"/", "/proc", "/proc/self", "/sys", "/dev/shm"}) {
    EXPECT_NE(TargetProblem({{"/a", target}}), "") << target;
  }
}

TEST(CheckTargets, RefusesTwoVolumesInOnePlace) {
  EXPECT_NE(TargetProblem({{"/a", "/data"}, {"/b", "/data"}}).find("another"),
            std::string::npos);
}

// The engine would make a folder in the user's directory, owned by root.
TEST(CheckTargets, BelowTheModelOnlyWhereThereIsAFolder) {
  const std::string model = testing::TempDir() + "/check_targets_model";
  std::filesystem::create_directories(model + "/data");
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

TEST(MountArgument, IsOneRecordOfCsv) {
  EXPECT_EQ(MountArgument({"/a b", "/c"}), "type=bind,source=/a b,target=/c");
  EXPECT_EQ(MountArgument({"/a", "/c", true}),
            "type=bind,source=/a,target=/c,readonly");
  EXPECT_EQ(MountArgument({"/a,b", "/c\"d"}),
            "type=bind,\"source=/a,b\",\"target=/c\"\"d\"");
  EXPECT_EQ(MountArgument({"/a\nb", "/c"}),
            "type=bind,\"source=/a\nb\",target=/c");
}

}  // namespace
}  // namespace requant::launch::mount_test
