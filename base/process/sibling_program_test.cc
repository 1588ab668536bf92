#include "base/process/sibling_program.h"

#include <filesystem>

#include "base/testing/testing.h"

namespace requant::sibling_program_test {
namespace {

namespace fs = std::filesystem;

class SiblingProgramTest : public testing::Test {
 protected:
  std::string AddProgram(const std::string& name) {
    const std::string path = root_.Write(name, "#!/bin/sh\n");
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }
  absl::StatusOr<std::string> Find() {
    return SiblingProgram(root_.Path("workflows/requant"), "transforms",
                          "tool");
  }

  ScratchFolder root_;
};

TEST_F(SiblingProgramTest, PrefersBazelsLayout) {
  const std::string in_package = AddProgram("transforms/tool");
  AddProgram("workflows/tool");
  EXPECT_EQ(*Find(), in_package);
}

TEST_F(SiblingProgramTest, TakesOneInTheSameFolder) {
  fs::create_directories(root_.Path("transforms/tool"));
  const std::string beside = AddProgram("workflows/tool");
  EXPECT_EQ(*Find(), beside);
}

TEST_F(SiblingProgramTest, NamesBothPlacesWhenItIsMissing) {
  root_.Write("transforms/tool", "not executable");
  EXPECT_THAT(Find(), FailsWith(AllOf(HasSubstr("/transforms/tool"),
                                      HasSubstr("/workflows/tool"))));
}

}  // namespace
}  // namespace requant::sibling_program_test
