#include "base/process/sibling_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace requant::sibling_program_test {
namespace {

namespace fs = std::filesystem;

class SiblingProgramTest : public testing::Test {
 protected:
  SiblingProgramTest() : root_(testing::TempDir() + "/siblings") {
    fs::remove_all(root_);
  }
  ~SiblingProgramTest() override { fs::remove_all(root_); }

  std::string AddFile(const std::string& path, bool executable) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << "#!/bin/sh\n";
    if (executable) fs::permissions(root_ / path, fs::perms::owner_all);
    return root_ / path;
  }
  std::string OwnPath() { return root_ / "workflows/requant"; }

  fs::path root_;
};

TEST_F(SiblingProgramTest, PrefersBazelsLayout) {
  const std::string in_package = AddFile("transforms/tool", true);
  AddFile("workflows/tool", true);
  EXPECT_EQ(*SiblingProgram(OwnPath(), "transforms", "tool"), in_package);
}

TEST_F(SiblingProgramTest, TakesOneInTheSameFolder) {
  fs::create_directories(root_ / "transforms/tool");
  const std::string beside = AddFile("workflows/tool", true);
  EXPECT_EQ(*SiblingProgram(OwnPath(), "transforms", "tool"), beside);
}

TEST_F(SiblingProgramTest, NamesBothPlacesWhenItIsMissing) {
  AddFile("transforms/tool", false);
  const auto path = SiblingProgram(OwnPath(), "transforms", "tool");
  ASSERT_FALSE(path.ok());
  EXPECT_THAT(path.status().message(), testing::HasSubstr("/transforms/tool"));
  EXPECT_THAT(path.status().message(), testing::HasSubstr("/workflows/tool"));
}

}  // namespace
}  // namespace requant::sibling_program_test
